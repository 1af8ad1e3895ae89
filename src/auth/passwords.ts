/**
 * Passwords: argon2id on libuv's threads, never more at once than leave the event loop a processor, and never more waiting than memory and patience allow.
 * Parameters: OWASP Password Storage Cheat Sheet (19 MiB, 2 passes, 1 lane).
 */
import { availableParallelism } from 'node:os';
import { hash as argonHash, verify as argonVerify, parseOptions } from '@node-rs/argon2';
import { type Fault, Problem } from '../problem.ts';
import { isCommon } from './common-passwords.ts';

/** Memory in KiB. */
export interface HashCost {
  readonly memoryCost: number;
  readonly timeCost: number;
  readonly parallelism: number;
}
const COST: HashCost = { memoryCost: 19_456, timeCost: 2, parallelism: 1 };
const MIN = 8;
const MAX = 256;
/** NFKC makes at most 18 code points of one, and nobody types more than this. */
const MAX_RAW = 4 * MAX;

export interface PasswordPool {
  /** Why a new password is refused, or undefined. `pointer` says where it stood. */
  fault(password: string, email: string, pointer: string): Fault | undefined;
  hash(password: string): Promise<string>;
  /** The same work with and without a stored hash. `rehash`: right, and made with weaker parameters than today's. */
  verify(password: string, stored: string | undefined): Promise<{ readonly ok: boolean; readonly rehash: boolean }>;
}

export interface PoolSize {
  readonly running: number;
  readonly waiting: number;
}
const DEFAULT_SIZE: PoolSize = { running: Math.max(1, availableParallelism() - 1), waiting: 64 };

/** A bounded queue: what does not fit is refused at once with 503. No setting reaches the cost: another one is for tests. */
export function createPasswordPool(size: PoolSize = DEFAULT_SIZE, cost: HashCost = COST): PasswordPool {
  const enter = boundedQueue(size);
  const dummy = enter(() => argonHash('nobody has this one', cost));
  dummy.catch(() => undefined);
  return {
    fault: passwordFault,
    hash: (password) => enter(() => argonHash(normal(password), cost)),
    async verify(password, stored) {
      const readable = password.length <= MAX_RAW && password.isWellFormed();
      const target = stored ?? (await dummy);
      const matches = await enter(() => argonVerify(target, readable ? normal(password) : ''));
      const ok = matches && readable && stored !== undefined;
      return { ok, rehash: ok && isWeaker(target, cost) };
    },
  };
}

const normal = (password: string): string => password.normalize('NFKC');

function isWeaker(stored: string, { memoryCost, timeCost }: HashCost): boolean {
  const options = parseOptions(stored);
  return options.algorithm !== 2 || options.memoryCost < memoryCost || options.timeCost < timeCost;
}

function passwordFault(password: string, email: string, pointer: string): Fault | undefined {
  if (!password.isWellFormed() || password.includes('\0')) {
    return { pointer, code: 'invalid_value', detail: 'the password holds a character that is not valid Unicode text' };
  }
  const text = password.length > MAX_RAW ? password : normal(password);
  const length = [...text].length;
  if (length < MIN) return { pointer, code: 'too_short', detail: `a password has at least ${MIN} characters` };
  if (length > MAX) return { pointer, code: 'too_long', detail: `a password has at most ${MAX} characters` };
  if (isCommon(text, email)) {
    return {
      pointer,
      code: 'common_password',
      detail: 'this password is among the first that are guessed; choose another',
    };
  }
  return undefined;
}

function boundedQueue(size: PoolSize): <T>(work: () => Promise<T>) => Promise<T> {
  const waiting: (() => void)[] = [];
  let running = 0;
  const leave = (): void => {
    const next = waiting.shift();
    if (next === undefined) running--;
    else next();
  };
  return async (work) => {
    if (running < size.running) running++;
    else if (waiting.length < size.waiting) await new Promise<void>((go) => waiting.push(go));
    else {
      throw new Problem('unavailable', 'too many passwords are being checked; try again shortly', {
        headers: { 'Retry-After': '1' },
      });
    }
    try {
      return await work();
    } finally {
      leave();
    }
  };
}
