/** The row of `bylaw_schema`: which schema the database has, by a fingerprint, and which tables the schemas created. */
import { createHash } from 'node:crypto';
import { readStrings } from '../database/cells.ts';
import type { Queryable, Transaction } from '../database/contract.ts';
import { memoizedBy } from '../memoized.ts';
import { loggedTablesOf } from '../schema/model/logged-tables.ts';
import type { Schema } from '../schema/model/model.ts';
import { param, raw, type Sql, sql, text } from '../sql.ts';
import { tablesOf } from './tables.ts';

export const SCHEMA_RECORD_TABLE: Sql = raw(`CREATE TABLE IF NOT EXISTS "bylaw_schema" (
  id int PRIMARY KEY CHECK (id = 1),
  fingerprint text NOT NULL,
  tables jsonb NOT NULL,
  applied_at timestamptz NOT NULL
)`);

/** A short text that is equal for schemas that want the same tables. Each readiness probe compares fingerprints. */
export const fingerprintOf = memoizedBy((schema: Schema) => {
  const logged = [...loggedTablesOf(schema).values()];
  const described = logged.length === 0 ? [...tablesOf(schema)] : [[...tablesOf(schema)], logged];
  return createHash('sha256').update(JSON.stringify(described)).digest('base64url');
});

/** Both schemas want the same tables, so a change from one to the other needs no migration. */
export const haveSameTables = (a: Schema, b: Schema): boolean => fingerprintOf(a) === fingerprintOf(b);

/** The placeholder for a fingerprint while steps that run apart are pending. */
export const pendingFingerprint = (migration: string): string => `under way: ${migration}`;
export const isPending = (fingerprint: string): boolean => fingerprint.startsWith('under way: ');

/** The tables that an earlier schema created. */
export async function ownedTables(db: Queryable): Promise<readonly string[]> {
  const [row] = await db.rows(raw('SELECT tables FROM bylaw_schema WHERE id = 1'));
  return row ? readStrings(row[0]) : [];
}

export async function writeSchemaRecord(
  tx: Transaction,
  fingerprint: string,
  tables: readonly string[],
): Promise<void> {
  await tx.run(sql`
    INSERT INTO bylaw_schema (id, fingerprint, tables, applied_at)
    VALUES (1, ${text(fingerprint)}, ${param('jsonb', JSON.stringify(tables))}, now())
        ON CONFLICT (id) DO UPDATE
       SET fingerprint = excluded.fingerprint, tables = excluded.tables, applied_at = excluded.applied_at`);
}
