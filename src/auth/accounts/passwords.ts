/**
 * Hashes passwords by argon2id on libuv's threads, at most as many at once as leave the event loop a processor.
 * Parameters: OWASP Password Storage Cheat Sheet (19 MiB, 2 passes, 1 lane).
 */
import { availableParallelism } from 'node:os';
import { FairQueue, type Refused } from '../../fair-queue.ts';
import { type ErrorDetail, Problem, problemOfError } from '../../problem.ts';
import type { QueueSize } from '../../queue-per-key.ts';
import { type Argon2, type HashCost, installedArgon2, parseHash } from './argon2.ts';
import { isCommon } from './common-passwords.ts';

const COST: HashCost = { memoryCost: 19_456, timeCost: 2, parallelism: 1 };
const MIN = 8;
const MAX = 256;
/** NFKC expands a code point to 18 at most, and no typed password is longer than this. */
const MAX_RAW = 4 * MAX;
const DEFAULT_SIZE: QueueSize = { running: Math.max(1, availableParallelism() - 1), waiting: 64 };

export interface PasswordPool {
  hash(password: string): Promise<string>;
  /**
   * Does the same work with and without a stored hash. `rehash`: the password is correct, but its hash
   * has weaker parameters than today's.
   */
  verify(password: string, stored: string | undefined): Promise<{ readonly ok: boolean; readonly rehash: boolean }>;
}

/** No setting reaches `cost`: only tests give another. Throws MissingPackage. */
export function createPasswordPool(size: QueueSize = DEFAULT_SIZE, cost: HashCost = COST): PasswordPool {
  return new ArgonPool(size, cost);
}

/** Throws `unavailable` at once when the queue is full. */
class ArgonPool implements PasswordPool {
  readonly #argon: Argon2 = installedArgon2();
  readonly #cost: HashCost;
  readonly #queue: FairQueue;
  /** The hash that is verified for an unknown account. */
  readonly #dummy: Promise<string>;

  constructor(size: QueueSize, cost: HashCost) {
    this.#cost = cost;
    this.#queue = new FairQueue({ places: size.running, mostWaiting: size.waiting, refuse: queueIsFull });
    this.#dummy = this.#queue.serve(() => this.#argon.hash('no account has this password', cost));
    this.#dummy.catch(() => undefined);
  }

  hash(password: string): Promise<string> {
    return this.#queue.serve(() => this.#argon.hash(normal(password), this.#cost));
  }

  async verify(password: string, stored: string | undefined) {
    const isReadable = password.length <= MAX_RAW && password.isWellFormed();
    const target = stored ?? (await this.#dummy);
    const matches = await this.#queue.serve(() => this.#argon.verify(target, isReadable ? normal(password) : ''));
    const ok = matches && isReadable && stored !== undefined;
    return { ok, rehash: ok && isWeaker(target, this.#cost) };
  }
}

const queueIsFull = ({ reason }: Refused): Problem =>
  new Problem(
    reason === 'own' ? 'rate_limited' : 'unavailable',
    'too many passwords are being checked; try again shortly',
  );

const normal = (password: string): string => password.normalize('NFKC');

function isWeaker(stored: string, { memoryCost, timeCost }: HashCost): boolean {
  const found = parseHash(stored)?.cost;
  return found === undefined || found.memoryCost < memoryCost || found.timeCost < timeCost;
}

/** Checks a new password of the account `email`, sent at `pointer`. Throws `validation_failed`. */
export function checkNewPassword(password: string, email: string, pointer: string): void {
  const error = passwordErrorOf(password, email);
  if (error !== undefined) throw problemOfError('validation_failed', { pointer, ...error });
}

function passwordErrorOf(password: string, email: string): ErrorDetail | undefined {
  if (!password.isWellFormed() || password.includes('\0')) {
    return { code: 'invalid_value', detail: 'the password contains a character that is not valid Unicode text' };
  }
  const normalized = password.length > MAX_RAW ? password : normal(password);
  const length = [...normalized].length;
  if (length < MIN) return { code: 'too_short', detail: `a password has at least ${MIN} characters` };
  if (length > MAX) return { code: 'too_long', detail: `a password has at most ${MAX} characters` };
  if (isCommon(normalized, email)) {
    return { code: 'common_password', detail: 'this password is one of the first that are guessed; choose another' };
  }
  return undefined;
}
