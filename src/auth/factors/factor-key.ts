/**
 * The key that wraps the secrets of second factors, and under which recovery codes are hashed: 32 random bytes,
 * made for the first second factor. It is stored wrapped by the secret of the operator; without one it lies in
 * plain in the database, which the start reports.
 */
import { createHmac, randomBytes } from 'node:crypto';
import type { Database } from '../../database/contract.ts';
import { invariant } from '../../invariant.ts';
import { sql, text } from '../../sql.ts';
import { isWrapped, unwrapKey, wrapKey } from '../keys/key-wrapping.ts';

const KEY_NAME = 'second_factors';
const KEY_BYTES = 32;
const NAMED = {
  label: 'the key of second factors',
  remedy: 'or let users enrol anew: `bylaw user second-factor EMAIL --reset`',
};

export class FactorKey {
  readonly #db: Database;
  /** 32 bytes of the operator. */
  readonly #secret: Buffer | undefined;
  #key: Promise<Buffer> | undefined;

  constructor(db: Database, secret: Buffer | undefined) {
    this.#db = db;
    this.#secret = secret;
  }

  /** Throws KeySecretError. `purpose` is authenticated: a wrapped secret fits no other one. */
  async wrap(purpose: string, secret: string): Promise<string> {
    return wrapKey(purpose, secret, await this.#read());
  }

  /** Throws KeySecretError. */
  async unwrap(purpose: string, wrapped: string): Promise<string> {
    return unwrapKey({ kid: purpose, stored: wrapped, ...NAMED }, await this.#read());
  }

  /** Throws KeySecretError. */
  async hash(purpose: string, code: string): Promise<string> {
    return createHmac('sha256', await this.#read())
      .update(`${purpose} ${code}`)
      .digest('base64url');
  }

  /**
   * Wraps a key that was stored before there was a secret. Returns true if second factors depend on a key in plain.
   */
  async secure(): Promise<boolean> {
    const stored = await this.#stored();
    if (stored === undefined || isWrapped(stored)) return false;
    if (this.#secret === undefined) {
      const rows = await this.#db.rows(sql`SELECT 1 FROM "_auth_totp" WHERE confirmed_at IS NOT NULL LIMIT 1`);
      return rows.length > 0;
    }
    await this.#db.run(sql`
      UPDATE "_auth_secrets"
         SET value = ${text(wrapKey(KEY_NAME, stored, this.#secret))}
       WHERE name = ${text(KEY_NAME)}
         AND value = ${text(stored)}`);
    return false;
  }

  /** Remembered once it could be read. */
  #read(): Promise<Buffer> {
    this.#key ??= this.#load().catch((error: unknown) => {
      this.#key = undefined;
      throw error;
    });
    return this.#key;
  }

  async #load(): Promise<Buffer> {
    const stored = (await this.#stored()) ?? (await this.#insert());
    return Buffer.from(unwrapKey({ kid: KEY_NAME, stored, ...NAMED }, this.#secret), 'base64url');
  }

  /** Nodes that insert at the same time all use the key of the first. */
  async #insert(): Promise<string> {
    const key = randomBytes(KEY_BYTES).toString('base64url');
    await this.#db.run(sql`
      INSERT INTO "_auth_secrets" (name, value)
      VALUES (${text(KEY_NAME)}, ${text(this.#secret === undefined ? key : wrapKey(KEY_NAME, key, this.#secret))})
          ON CONFLICT (name) DO NOTHING`);
    const stored = await this.#stored();
    invariant(stored !== undefined, 'the key of second factors is stored');
    return stored;
  }

  async #stored(): Promise<string | undefined> {
    const [cells] = await this.#db.rows(sql`SELECT value FROM "_auth_secrets" WHERE name = ${text(KEY_NAME)}`, {
      lane: 'urgent',
    });
    return cells?.[0] ?? undefined;
  }
}
