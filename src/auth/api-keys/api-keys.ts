/** API keys: who may make, see, change, rotate and revoke them. A caller who may not sees no difference from a missing key. */
import { v7 } from 'uuid';
import type { Database, Transaction } from '../../database/contract.ts';
import { present } from '../../invariant.ts';
import { parseUuid } from '../../policy/values.ts';
import { Problem } from '../../problem.ts';
import { mayAssign } from '../../records/write/role-changes.ts';
import type { Schema } from '../../schema/model/model.ts';
import { sql, uuid } from '../../sql.ts';
import { type RequestClient, recordAudit } from '../audit-trail.ts';
import type { Caller } from '../caller.ts';
import { requireUsedFactor } from '../factors/used-factor.ts';
import { invalidToken } from '../sessions/access-tokens.ts';
import type { Authenticator } from '../sessions/authenticator.ts';
import {
  type ApiKey,
  type ApiKeyEdit,
  countApiKeys,
  findApiKey,
  formerSecretsOf,
  insertApiKey,
  listApiKeys,
  lockApiKey,
  operatorKeyNamed,
  removeApiKey,
  replaceSecret,
  updateApiKey,
} from './api-key-rows.ts';
import { checkEdit, checkNewKey, type KeyRequest } from './key-requests.ts';
import { newKeyToken } from './key-token.ts';

/** Keys that a user may have. */
const MAX_KEYS = 100;
/** Former secrets of a key that may be good at a time. */
const MAX_FORMERS = 20;

/** The user who asks. Undefined: the operator, at the command line. */
export interface KeyActor {
  readonly caller: Caller;
  readonly client: RequestClient;
}

export interface IssuedKey {
  readonly data: ApiKey;
  /** The token, which is shown once. */
  readonly secret: string;
}

interface ApiKeyParts {
  readonly db: Database;
  readonly schema: Schema;
  readonly authenticator: Authenticator;
}

export class ApiKeys {
  readonly #parts: ApiKeyParts;

  constructor(parts: ApiKeyParts) {
    this.#parts = parts;
  }

  /** Throws `validation_failed`, `too_many`; `forbidden`, also in a session that lacks the second factor of its user. */
  async create(request: KeyRequest, actor?: KeyActor): Promise<IssuedKey> {
    const { db, schema } = this.#parts;
    const { name, publishable = false, ...bounds } = checkNewKey(schema, request);
    const roles = publishable ? [] : [...new Set(bounds.roles)];
    if (actor !== undefined) this.#requireAssignable(actor, publishable ? [...schema.roles.keys()] : roles);
    if (actor !== undefined) await requireUsedFactor(db, actor.caller);
    const id = v7();
    const { token, hash } = newKeyToken(id);
    const owner = actor?.caller.principal;
    const data = await db.transaction(async (tx) => {
      if (owner !== undefined) await requireRoom(tx, owner);
      await insertApiKey(tx, { ...bounds, id, name, roles, publishable, hash, createdBy: owner });
      await this.#record(tx, 'api_key_created', { id, name, roles, created_by: owner ?? null }, actor);
      return present(await findApiKey(tx, id), 'the key');
    });
    return { data, secret: token };
  }

  /** Lists the caller's own keys, and for an admin all. */
  list(actor?: KeyActor): Promise<readonly ApiKey[]> {
    return listApiKeys(this.#parts.db, actor === undefined || isAdminActor(actor) ? undefined : actor.caller.principal);
  }

  /** Throws `not_found`. */
  async read(id: string, actor?: KeyActor): Promise<ApiKey> {
    return visibleTo(actor, await findApiKey(this.#parts.db, id));
  }

  /**
   * The present caller of the key with this id, or of the newest with this name that the command line made: users choose
   * the names of theirs. Throws `invalid_token`.
   */
  async callerOf(idOrName: string): Promise<Caller> {
    const { db, authenticator } = this.#parts;
    const id = parseUuid(idOrName) ?? (await operatorKeyNamed(db, idOrName));
    if (id === undefined) throw invalidToken();
    return authenticator.callerOfLink({ kind: 'key', sessionId: id, userId: id });
  }

  /** Throws `not_found`, `validation_failed`. */
  edit(id: string, edit: Partial<ApiKeyEdit>, actor?: KeyActor): Promise<ApiKey> {
    const { schema } = this.#parts;
    return this.#change(id, actor, async (tx, key) => {
      await updateApiKey(tx, id, { ...key, ...checkEdit(schema, key, edit) });
      await this.#record(tx, 'api_key_changed', key, actor);
    });
  }

  /**
   * @param overlap seconds for which the present secret stays good; former ones keep their own time. Zero ends them all.
   * Throws `not_found`, `too_many`, `forbidden` as for a new key.
   */
  async rotate(id: string, overlap: number, actor?: KeyActor): Promise<IssuedKey> {
    if (actor !== undefined) await requireUsedFactor(this.#parts.db, actor.caller);
    const { token, hash } = newKeyToken(id);
    const data = await this.#change(id, actor, async (tx, key) => {
      const formers = overlap === 0 ? [] : await formerSecretsOf(tx, id);
      if (formers.length >= MAX_FORMERS) throw tooManyFormers();
      await replaceSecret(tx, id, { hash, overlap, formers });
      await this.#record(tx, 'api_key_rotated', key, actor);
    });
    return { data, secret: token };
  }

  /** Throws `not_found`. */
  async revoke(id: string, actor?: KeyActor): Promise<void> {
    const { db, authenticator } = this.#parts;
    await db.transaction(async (tx) => {
      const key = await lockedKey(tx, id, actor);
      await removeApiKey(tx, id);
      await this.#record(tx, 'api_key_revoked', key, actor);
    });
    await authenticator.sessionEnded(id);
  }

  async #change(id: string, actor: KeyActor | undefined, work: (tx: Transaction, key: ApiKey) => Promise<void>) {
    const { db, authenticator } = this.#parts;
    const changed = await db.transaction(async (tx) => {
      await work(tx, await lockedKey(tx, id, actor));
      return present(await findApiKey(tx, id), 'the key');
    });
    await authenticator.sessionEnded(id);
    return changed;
  }

  /** Throws `forbidden`. */
  #requireAssignable({ caller }: KeyActor, roles: readonly string[]): void {
    const missing = roles.filter((role) => !mayAssign(this.#parts.schema, caller.auth, role));
    if (missing.length === 0) return;
    const names = missing.map((role) => `\`${role}\``).join(', ');
    throw new Problem('forbidden', `you have no role that assigns ${names}, so you can give it to no key`);
  }

  #record(
    tx: Transaction,
    event: 'api_key_created' | 'api_key_changed' | 'api_key_rotated' | 'api_key_revoked',
    { id, name, roles, created_by }: Pick<ApiKey, 'id' | 'name' | 'roles' | 'created_by'>,
    actor: KeyActor | undefined,
  ): Promise<void> {
    const { principal, sessionId } = actor?.caller ?? {};
    const actorId = principal === created_by ? undefined : principal;
    const detail = { key: id, name, roles };
    return recordAudit(tx, {
      event,
      userId: created_by ?? undefined,
      actorId,
      sessionId,
      client: actor?.client,
      detail,
    });
  }
}

const isAdminActor = ({ caller }: KeyActor): boolean => caller.auth.roles.includes('admin');

/** Throws `not_found` for a key of another user, as for one that does not exist. */
function visibleTo(actor: KeyActor | undefined, key: ApiKey | undefined): ApiKey {
  const isVisible = actor === undefined || isAdminActor(actor) || key?.created_by === actor.caller.principal;
  if (key === undefined || !isVisible) throw new Problem('not_found', 'you have no such key');
  return key;
}

async function lockedKey(tx: Transaction, id: string, actor: KeyActor | undefined): Promise<ApiKey> {
  await lockApiKey(tx, id);
  return visibleTo(actor, await findApiKey(tx, id));
}

/** The lock makes concurrent requests of the user wait, and then count the key that this one makes. */
async function requireRoom(tx: Transaction, owner: string): Promise<void> {
  await tx.rows(sql`SELECT 1 FROM "users" WHERE id = ${uuid(owner)} FOR NO KEY UPDATE`);
  if ((await countApiKeys(tx, owner)) < MAX_KEYS) return;
  throw new Problem('too_many', `you have ${MAX_KEYS} keys, the most that a user may have; revoke one first`);
}

function tooManyFormers(): Problem {
  const detail = `${MAX_FORMERS} former secrets of this key are good still; rotate it without \`overlap\`, which ends them`;
  return new Problem('too_many', detail);
}
