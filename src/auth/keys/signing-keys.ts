/** Stores signing keys as rows, so that every node signs and verifies with the same keys. */
import { namedCells } from '../../database/cells.ts';
import { type Database, inLane, type Queryable } from '../../database/contract.ts';
import { seconds, sql, text } from '../../sql.ts';
import { isWrapped, unwrapKey, wrapKey } from './key-wrapping.ts';

export interface KeyRow {
  readonly kid: string;
  /** As stored: JSON, or wrapped. */
  readonly stored: string;
  /** Milliseconds since the epoch. The key signs from then on, until a later key does. */
  readonly activeAt: number;
}

export interface NewKey {
  readonly kid: string;
  /** JSON. Secret. */
  readonly privateJwk: string;
}

/**
 * Seconds from a rotation until the new key signs. Every node, and every client that polls the JWKS
 * often, has the key then.
 */
export const HEAD_START = 2;
/**
 * Seconds that a key verifies beyond the last token it can have signed, for nodes that were slow to
 * notice.
 */
const RETIREMENT_GRACE = 300;

export class SigningKeys {
  readonly #db: Database;
  /** 32 bytes that wrap the private keys, if the operator gives any. */
  readonly #secret: Buffer | undefined;

  constructor(db: Database, secret: Buffer | undefined) {
    this.#db = db;
    this.#secret = secret;
  }

  /** Reads the keys that verify, oldest first. */
  async read(): Promise<readonly KeyRow[]> {
    const rows = await inLane(this.#db, 'urgent').rows(sql`
      SELECT kid, private_jwk, (extract(epoch FROM active_at) * 1000)::int8
        FROM "_auth_keys"
       WHERE retired_at IS NULL
          OR retired_at > now()
       ORDER BY active_at, kid`);
    return rows.map((cells) => {
      const { activeAt, ...key } = namedCells(cells, 'kid', 'stored', 'activeAt');
      return { ...key, activeAt: Number(activeAt) };
    });
  }

  /** The private key as JSON. Throws KeySecretError. */
  unwrap({ kid, stored }: KeyRow): string {
    return unwrapKey({ kid, stored }, this.#secret);
  }

  /** Wraps keys that were stored before there was a secret. */
  async wrapStored(): Promise<void> {
    if (this.#secret === undefined) return;
    const rows = await this.#db.rows(sql`SELECT kid, private_jwk FROM "_auth_keys"`);
    for (const cells of rows) {
      const { kid, stored } = namedCells(cells, 'kid', 'stored');
      if (isWrapped(stored)) continue;
      await this.#db.run(sql`
        UPDATE "_auth_keys"
           SET private_jwk = ${text(wrapKey(kid, stored, this.#secret))}
         WHERE kid = ${text(kid)}
           AND private_jwk = ${text(stored)}`);
    }
  }

  /**
   * Inserts the first key. Two nodes that start at once on an empty database may both insert; both
   * keys verify, and the later one signs.
   */
  async insertFirst(key: NewKey): Promise<void> {
    await this.#db.run(sql`
      INSERT INTO "_auth_keys" (kid, private_jwk, created_at, active_at)
      SELECT ${text(key.kid)}, ${this.#stored(key)}, now(), now()
       WHERE NOT EXISTS (SELECT 1 FROM "_auth_keys" WHERE retired_at IS NULL)`);
  }

  /**
   * Inserts a key; older keys verify until every token that they can have signed has expired.
   * `tokenLifetime` in seconds.
   */
  async insertNext(key: NewKey, tokenLifetime: number): Promise<void> {
    await this.#db.transaction(async (tx) => {
      await tx.run(sql`
        UPDATE "_auth_keys"
           SET retired_at = now() + ${seconds(HEAD_START + tokenLifetime + RETIREMENT_GRACE)}
         WHERE retired_at IS NULL`);
      await tx.run(sql`DELETE FROM "_auth_keys" WHERE retired_at < now() - interval '1 day'`);
      await this.#insert(tx, key, HEAD_START);
    });
  }

  /**
   * Replaces all keys after a leak, or if they can no longer be unwrapped: no older key is kept.
   */
  async replaceAll(key: NewKey): Promise<void> {
    await this.#db.transaction(async (tx) => {
      await tx.run(sql`DELETE FROM "_auth_keys"`);
      await this.#insert(tx, key, 0);
    });
  }

  async #insert(tx: Queryable, key: NewKey, delay: number): Promise<void> {
    await tx.run(sql`
      INSERT INTO "_auth_keys" (kid, private_jwk, created_at, active_at)
      VALUES (${text(key.kid)}, ${this.#stored(key)}, now(), now() + ${seconds(delay)})`);
  }

  #stored({ kid, privateJwk }: NewKey) {
    return text(this.#secret === undefined ? privateJwk : wrapKey(kid, privateJwk, this.#secret));
  }
}
