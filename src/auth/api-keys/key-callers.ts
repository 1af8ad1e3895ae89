/** Finds the caller of an API key. A key is remembered as sessions are: a change acts within a second on every node. */

import { BoundedMap } from '../../bounded-map.ts';
import { type Database, inLane } from '../../database/contract.ts';
import { GUEST_ROW } from '../../policy/check/guests.ts';
import { effectiveRoles } from '../../schema/model/effective-roles.ts';
import type { Schema } from '../../schema/model/model.ts';
import type { Caller } from '../caller.ts';
import { invalidToken } from '../sessions/access-tokens.ts';
import { GatheredReads } from '../sessions/gathered-reads.ts';
import { hashSecret } from '../sessions/secrets.ts';
import { type ApiKeyState, apiKeyStatesOf } from './api-key-rows.ts';
import { type BoundsInput, KeyBounds } from './key-bounds.ts';
import { idPartOf, readKeyToken } from './key-token.ts';

const MAX_REMEMBERED = 10_000;
const MAX_COMPARED = 256;
const MAX_COMMON = 1_000;
/** Milliseconds after which a secret that a remembered key has not is looked for again: wrong ones must not make a statement each. */
const ASK_AGAIN_MS = 50;

interface KnownKey {
  /** Milliseconds, before the key was read. */
  readonly at: number;
  /** Little more than what a request compares: a server may know thousands of keys. */
  readonly state: Pick<ApiKeyState, 'createdBy' | 'hash' | 'formers' | 'expiresAt'>;
  readonly caller: Caller;
}

interface KeyCallerParts {
  readonly db: Database;
  readonly schema: Schema;
  /** Milliseconds for which a key may be remembered. */
  readonly ttl: () => number;
}

export class KeyCallers {
  readonly #parts: KeyCallerParts;
  readonly #known = new BoundedMap<string, KnownKey>(MAX_REMEMBERED);
  readonly #common = new CommonParts();
  /** When a key was last read for a secret that the remembered one had not. */
  readonly #askedAgain = new BoundedMap<string, number>(MAX_COMMON);
  /**
   * The keys of present secrets, by the text that was compared: a digest is the dearest part of finding a caller. The
   * process forgets the texts within a second: its memory must not hold credentials.
   */
  readonly #compared = new Map<string, KnownKey>();
  #loading = new Map<string, Promise<KnownKey | undefined>>();
  /** INVARIANT: a key that was read before the last change of any is used, but not remembered. */
  #changes = 0;

  readonly #rows: GatheredReads<ApiKeyState>;

  constructor(parts: KeyCallerParts) {
    this.#parts = parts;
    const db = inLane(parts.db, 'urgent');
    this.#rows = new GatheredReads((ids) => apiKeyStatesOf(db, ids));
  }

  /** Throws `invalid_token`. Synchronous for a remembered key. */
  authenticate(text: string): Caller | Promise<Caller> {
    const compared = this.#compared.get(text);
    if (compared !== undefined && this.#isRecent(compared)) return inForce(compared).caller;
    // The hash of a remembered key says more of the text than its form and its checksum do.
    const known = this.#recent(idPartOf(text));
    const caller = known && this.#comparedCaller(known, text);
    if (caller !== undefined) return caller;
    const token = readKeyToken(text);
    if (token === undefined) throw invalidToken();
    // Another node may have rotated the key a moment ago.
    if (known !== undefined && !this.#mayAskAgain(token.id)) throw invalidToken();
    return this.#load(token.id).then((loaded) => callerBy(loaded, token.hash));
  }

  #mayAskAgain(id: string): boolean {
    const now = performance.now();
    if (now - (this.#askedAgain.get(id) ?? Number.NEGATIVE_INFINITY) < ASK_AGAIN_MS) return false;
    this.#askedAgain.set(id, now);
    return true;
  }

  /** Undefined: the key has another secret. */
  #comparedCaller(known: KnownKey, text: string): Caller | undefined {
    const hash = hashSecret(text);
    if (!hasSecret(inForce(known), hash)) return undefined;
    const { caller } = known;
    // A former secret ends before its key does.
    if (hash === known.state.hash && this.#compared.size < MAX_COMPARED) {
      if (this.#compared.size === 0) setTimeout(() => this.#compared.clear(), this.#parts.ttl()).unref();
      this.#compared.set(text, known);
    }
    return caller;
  }

  /**
   * The key's present caller, for a signed link or a stream of it. Throws `invalid_token`.
   *
   * @param mostAge milliseconds for which a key counts as read
   * @param secret the hash of the secret that has to be good still; default: any
   */
  async callerOf(id: string, { mostAge, secret }: { mostAge?: number | undefined; secret?: string | undefined } = {}) {
    const known = this.#recent(id, mostAge) ?? (await this.#load(id));
    return secret === undefined ? inForce(known).caller : callerBy(known, secret);
  }

  forget(id: string): void {
    this.#discardReads();
    this.#known.delete(id);
  }

  /** Forgets the keys that the user made. */
  forgetMaker(userId: string): void {
    this.#discardReads();
    for (const [id, { state }] of this.#known.entries()) if (state.createdBy === userId) this.#known.delete(id);
  }

  clear(): void {
    this.#discardReads();
    this.#known.clear();
  }

  #discardReads(): void {
    this.#changes++;
    this.#loading = new Map();
    this.#compared.clear();
  }

  #recent(id: string, mostAge?: number): KnownKey | undefined {
    const known = this.#known.get(id);
    return known !== undefined && this.#isRecent(known, mostAge) ? known : undefined;
  }

  #isRecent({ at }: KnownKey, mostAge = Number.POSITIVE_INFINITY): boolean {
    return performance.now() - at < Math.min(this.#parts.ttl(), mostAge);
  }

  /** Concurrent requests with one key share a read. */
  #load(id: string): Promise<KnownKey | undefined> {
    const loading = this.#loading;
    const underWay = loading.get(id);
    if (underWay !== undefined) return underWay;
    const promise = this.#read(id).finally(() => loading.delete(id));
    loading.set(id, promise);
    return promise;
  }

  async #read(id: string): Promise<KnownKey | undefined> {
    const at = performance.now();
    const changes = this.#changes;
    const state = await this.#rows.of(id);
    const caller = state && callerOfState(state, this.#parts.schema, this.#common);
    if (state === undefined || caller === undefined) return undefined;
    const { createdBy, hash, formers, expiresAt } = state;
    const known = { at, state: { createdBy, hash, formers, expiresAt }, caller };
    // INVARIANT: `id` may be a slice of the token, which would keep the whole token in memory.
    if (changes === this.#changes) this.#known.set(state.id, known);
    return known;
  }
}

/** Many keys have the same roles and the same bounds: the callers share them. */
class CommonParts {
  readonly #roles = new BoundedMap<string, readonly string[]>(MAX_COMMON);
  readonly #bounds = new BoundedMap<string, KeyBounds>(MAX_COMMON);

  roles(made: readonly string[]): readonly string[] {
    return commonOf(this.#roles, JSON.stringify(made), () => Object.freeze(made));
  }

  bounds({ limit, addresses, origins }: BoundsInput): KeyBounds {
    const input = { limit, addresses, origins };
    return commonOf(this.#bounds, JSON.stringify(input), () => new KeyBounds(input));
  }
}

function commonOf<T>(known: BoundedMap<string, T>, text: string, make: () => T): T {
  const found = known.get(text);
  if (found !== undefined) return found;
  const made = make();
  known.set(text, made);
  return made;
}

/** Without guests, the publishable keys of a former schema open nothing. */
export function callerOfState(state: ApiKeyState, schema: Schema, common = new CommonParts()): Caller | undefined {
  const { id, isPublishable } = state;
  const shared = { principal: id, sessionId: id, by: 'key', bounds: common.bounds(state) } as const;
  if (isPublishable)
    return schema.guests ? Object.freeze({ ...shared, kind: 'guest', isShared: true, auth: GUEST_ROW }) : undefined;
  const roles = common.roles(effectiveRoles(schema, state.roles));
  return Object.freeze({ ...shared, kind: 'key', auth: Object.freeze({ id, roles, second_factor: false }) });
}

/** Throws `invalid_token`. */
function inForce(known: KnownKey | undefined): KnownKey {
  if (known === undefined || known.state.expiresAt <= Date.now()) throw invalidToken();
  return known;
}

function callerBy(known: KnownKey | undefined, hash: string): Caller {
  const found = inForce(known);
  if (!hasSecret(found, hash)) throw invalidToken();
  return found.caller;
}

const hasSecret = ({ state }: KnownKey, hash: string): boolean =>
  state.hash === hash || state.formers.some((each) => each.hash === hash && each.until > Date.now());
