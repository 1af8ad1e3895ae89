/** Signing keys as rows, so that every node signs and verifies with the same ones. */
import { param, sql } from '../sql.ts';
import type { Database, Queryable } from '../store/database/contract.ts';

export interface KeyRow {
  readonly kid: string;
  /** JSON text. Secret. */
  readonly privateJwk: string;
  /** Milliseconds of the epoch; it signs from here on, until a later key does. */
  readonly activeAt: number;
}

/** Seconds from a rotation until the new key signs: by then every node, and who polls the JWKS often, knows it. */
const HEAD_START = 2;
/** Seconds that a key verifies beyond the last token it can have signed, for nodes that were slow to notice. */
const GRACE = 300;

export async function readKeys(db: Queryable): Promise<readonly KeyRow[]> {
  const rows = await db.rows(
    sql`SELECT kid, private_jwk, (extract(epoch FROM active_at) * 1000)::int8 FROM "_auth_keys" WHERE retired_at IS NULL OR retired_at > now() ORDER BY active_at, kid`,
  );
  return rows.map(([kid, privateJwk, activeAt]) => ({
    kid: kid!,
    privateJwk: privateJwk!,
    activeAt: Number(activeAt),
  }));
}

/** Two nodes that start at once on an empty database may both insert; both keys verify, the later one signs. */
export async function insertFirstKey(
  db: Queryable,
  key: { readonly kid: string; readonly privateJwk: string },
): Promise<void> {
  await db.run(
    sql`INSERT INTO "_auth_keys" (kid, private_jwk, created_at, active_at) SELECT ${param('text', key.kid)}, ${param('text', key.privateJwk)}, now(), now() WHERE NOT EXISTS (SELECT 1 FROM "_auth_keys" WHERE retired_at IS NULL)`,
  );
}

/** The keys of before verify until every token they can have signed has expired. */
export async function insertNextKey(
  db: Database,
  key: { readonly kid: string; readonly privateJwk: string; readonly accessSeconds: number },
): Promise<void> {
  const keep = param('float8', HEAD_START + key.accessSeconds + GRACE);
  await db.transaction(async (tx) => {
    await tx.run(
      sql`UPDATE "_auth_keys" SET retired_at = now() + ${keep} * interval '1 second' WHERE retired_at IS NULL`,
    );
    await tx.run(sql`DELETE FROM "_auth_keys" WHERE retired_at < now() - interval '1 day'`);
    await tx.run(
      sql`INSERT INTO "_auth_keys" (kid, private_jwk, created_at, active_at) VALUES (${param('text', key.kid)}, ${param('text', key.privateJwk)}, now(), now() + ${param('float8', HEAD_START)} * interval '1 second')`,
    );
  });
}
