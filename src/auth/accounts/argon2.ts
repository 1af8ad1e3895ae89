/**
 * argon2id, as strings of the PHC form: by the package @node-rs/argon2, whose binary npm installs as an optional package,
 * or by Node itself (24.7 and newer).
 */
// A name that Node 22 does not export would be an error of the import.
import * as nodeCrypto from 'node:crypto';
import { type Argon2Parameters, randomBytes, timingSafeEqual } from 'node:crypto';
import { promisify } from 'node:util';
import { MissingPackage } from '../../optional-package.ts';

/** Memory in KiB. */
export interface HashCost {
  readonly memoryCost: number;
  readonly timeCost: number;
  readonly parallelism: number;
}

export interface Argon2 {
  hash(password: string, cost: HashCost): Promise<string>;
  /** False for a hash of another form. */
  verify(stored: string, password: string): Promise<boolean>;
}

/** Throws MissingPackage. */
export function requireArgon2(ofPackage: Argon2 | undefined, ofNode: typeof nodeCrypto.argon2 | undefined): Argon2 {
  if (ofPackage !== undefined) return ofPackage;
  if (ofNode === undefined) throw new MissingPackage(['@node-rs/argon2'], 'passwords are hashed by argon2id');
  return new Argon2OfNode(ofNode);
}

/** Undefined: its binary is not installed. */
const ofPackage: Argon2 | undefined = await import('@node-rs/argon2').catch(() => undefined);

/** Throws MissingPackage. */
export const installedArgon2 = (): Argon2 =>
  requireArgon2(ofPackage, nodeCrypto.argon2 as typeof nodeCrypto.argon2 | undefined);

const SALT_BYTES = 16;
const HASH_BYTES = 32;

class Argon2OfNode implements Argon2 {
  readonly #derive: (parameters: Argon2Parameters) => Promise<Buffer>;

  constructor(argon2: typeof nodeCrypto.argon2) {
    const derive = promisify(argon2);
    this.#derive = (parameters) => derive('argon2id', parameters);
  }

  async hash(password: string, cost: HashCost): Promise<string> {
    const nonce = randomBytes(SALT_BYTES);
    const { memoryCost, timeCost, parallelism } = cost;
    const hash = await this.#derive(argon2Parameters(password, { cost, nonce, tagLength: HASH_BYTES }));
    return `$argon2id$v=19$m=${memoryCost},t=${timeCost},p=${parallelism}$${base64(nonce)}$${base64(hash)}`;
  }

  async verify(stored: string, password: string): Promise<boolean> {
    const read = parseHash(stored);
    if (read === undefined) return false;
    const found = await this.#derive(argon2Parameters(password, { ...read, tagLength: read.hash.length }));
    return timingSafeEqual(found, read.hash);
  }
}

interface Derivation {
  readonly cost: HashCost;
  readonly nonce: Buffer;
  readonly tagLength: number;
}

const argon2Parameters = (password: string, { cost, nonce, tagLength }: Derivation): Argon2Parameters => ({
  message: Buffer.from(password),
  nonce,
  tagLength,
  memory: cost.memoryCost,
  passes: cost.timeCost,
  parallelism: cost.parallelism,
});

const base64 = (bytes: Buffer): string => bytes.toString('base64').replaceAll('=', '');

const PHC = /^\$argon2id\$v=19\$m=(\d{1,8}),t=(\d{1,4}),p=(\d{1,3})\$([A-Za-z0-9+/]{11,86})\$([A-Za-z0-9+/]{16,172})$/;

interface ReadHash {
  readonly cost: HashCost;
  readonly nonce: Buffer;
  readonly hash: Buffer;
}

/** Undefined: not a hash by argon2id, version 19. */
export function parseHash(stored: string): ReadHash | undefined {
  const [, memory, passes, lanes, salt, hash] = PHC.exec(stored) ?? [];
  if (hash === undefined || salt === undefined) return undefined;
  const cost = { memoryCost: Number(memory), timeCost: Number(passes), parallelism: Number(lanes) };
  return { cost, nonce: Buffer.from(salt, 'base64'), hash: Buffer.from(hash, 'base64') };
}
