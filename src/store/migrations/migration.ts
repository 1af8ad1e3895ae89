/** Brings the database to the schema, in one transaction. Nothing that loses data happens unasked. */
import { createHash } from 'node:crypto';
import type { Schema } from '../../schema/model.ts';
import { param, raw, type Sql, sql, text } from '../../sql.ts';
import type { Database, Queryable, Transaction } from '../database/contract.ts';
import { readStrings } from '../database/text-array.ts';
import { IDEMPOTENCY_TABLES } from '../idempotency.ts';
import { makeVersionKey, VERSION_KEY_TABLE } from '../version-key.ts';
import { readCatalog } from './catalog.ts';
import { planSteps, type Step } from './diff.ts';
import { tablesOf } from './tables.ts';

export interface Migration {
  /** As they run, in order; empty when the database is as the schema wants it. */
  readonly statements: readonly string[];
  /** Those of them that lose data or may refuse what is there. */
  readonly destructive: readonly { readonly sql: string; readonly why: string }[];
}
export interface MigrateOptions {
  readonly allowDestructive?: boolean;
  /**
   * Decides about each destructive statement, in the transaction that would run it. Default: none
   * is allowed.
   */
  readonly allows?: (tx: Transaction, step: Step) => Promise<boolean>;
  /** Idempotent statements of other rooms, run after the collections' tables exist. */
  readonly systemTables?: readonly Sql[];
}

export class MigrationRefused extends Error {
  readonly migration: Migration;
  constructor(migration: Migration) {
    const reasons = migration.destructive.map(
      ({ why, sql: statement }) => `- ${why}\n  ${statement.replaceAll('\n', '\n  ')}`,
    );
    super(
      `the schema asks for changes that lose data or may refuse it:\n${reasons.join('\n')}\n` +
        'to do it nevertheless: bylaw migrate apply --allow-destructive (bylaw migrate plan shows every statement)',
    );
    this.name = 'MigrationRefused';
    this.migration = migration;
  }
}

/** 'bylaw' as a number, so that no other program uses the same lock. */
const LOCK = 0x62_79_6c_61_77;

const SCHEMA_RECORD = raw(`CREATE TABLE IF NOT EXISTS "bylaw_schema" (
  id int PRIMARY KEY CHECK (id = 1),
  fingerprint text NOT NULL,
  tables jsonb NOT NULL,
  applied_at timestamptz NOT NULL
)`);

export async function planMigration(db: Database, schema: Schema, options: MigrateOptions = {}): Promise<Migration> {
  return migrationOf(await stepsOf(db, schema), await missingSystemTables(db, options.systemTables ?? []));
}

/** What was done. Throws MigrationRefused. */
export async function applyMigration(db: Database, schema: Schema, options: MigrateOptions = {}): Promise<Migration> {
  const systemTables = options.systemTables ?? [];
  return db.transaction(
    async (tx) => {
      if (db.kind === 'postgres') await tx.rows(sql`SELECT pg_advisory_xact_lock(${param('int8', LOCK)})`);
      const steps = await stepsOf(tx, schema);
      const missing = await missingSystemTables(tx, systemTables);
      const migration = migrationOf(steps, missing);
      if (options.allowDestructive !== true) {
        const refused = await refusedOf(tx, steps, options.allows);
        if (refused.length > 0) throw new MigrationRefused({ ...migration, destructive: refused });
      }
      for (const step of steps) await tx.run(raw(step.sql));
      // Only those: a role without rights on the schema can serve a database that is current.
      for (const statement of missing) await tx.run(statement);
      await writeFingerprint(tx, schema);
      await makeVersionKey(tx);
      return migration;
      // The time limit of requests does not apply to long changes.
    },
    { unlimited: true },
  );
}

/** Whether both schemas want the same tables, so that nothing lies to be migrated between them. */
export const haveSameTables = (a: Schema, b: Schema): boolean => fingerprintOf(a) === fingerprintOf(b);

/** Whether the last migration was to this schema: what readiness asks. */
export async function isCurrent(db: Queryable, schema: Schema): Promise<boolean> {
  if (!(await tableExists(db, 'bylaw_schema'))) return false;
  const [row] = await db.rows(raw('SELECT fingerprint FROM bylaw_schema WHERE id = 1'));
  return row?.[0] === fingerprintOf(schema);
}

const OWN_TABLES: readonly Sql[] = [SCHEMA_RECORD, VERSION_KEY_TABLE, ...IDEMPOTENCY_TABLES];

async function stepsOf(db: Queryable, schema: Schema): Promise<readonly Step[]> {
  const actual = await readCatalog(db);
  const owned = actual.has('bylaw_schema') ? await ownedTables(db) : [];
  return planSteps({ db, wanted: tablesOf(schema), actual, owned });
}

function migrationOf(steps: readonly Step[], systemTables: readonly Sql[]): Migration {
  return {
    statements: [...steps.map((step) => step.sql), ...systemTables.map(({ text }) => text)],
    destructive: steps.flatMap((step) => (step.destructive ? [{ sql: step.sql, why: step.destructive }] : [])),
  };
}

async function refusedOf(
  tx: Transaction,
  steps: readonly Step[],
  allows: MigrateOptions['allows'],
): Promise<Migration['destructive']> {
  const refused: { readonly sql: string; readonly why: string }[] = [];
  for (const step of steps) {
    if (step.destructive === undefined || (await allows?.(tx, step))) continue;
    refused.push({ sql: step.sql, why: step.destructive });
  }
  return refused;
}

const CREATES = /^\s*CREATE\s+(?:UNIQUE\s+)?(?:TABLE|INDEX)\s+IF\s+NOT\s+EXISTS\s+"?(\w+)"?/i;

/** Of the idempotent statements, those that would do something. */
async function missingSystemTables(db: Queryable, more: readonly Sql[]): Promise<readonly Sql[]> {
  const missing: Sql[] = [];
  for (const statement of [...OWN_TABLES, ...more]) {
    const name = CREATES.exec(statement.text)?.[1];
    if (name === undefined || !(await tableExists(db, name))) missing.push(statement);
  }
  return missing;
}

async function tableExists(db: Queryable, name: string): Promise<boolean> {
  const [row] = await db.rows(sql`SELECT to_regclass(quote_ident(${text(name)})) IS NOT NULL`);
  return row?.[0] === 't';
}

async function ownedTables(db: Queryable): Promise<readonly string[]> {
  const [row] = await db.rows(raw('SELECT tables FROM bylaw_schema WHERE id = 1'));
  return row ? readStrings(row[0]) : [];
}

async function writeFingerprint(tx: Transaction, schema: Schema): Promise<void> {
  const names = JSON.stringify([...tablesOf(schema).keys()]);
  await tx.run(sql`
    INSERT INTO bylaw_schema (id, fingerprint, tables, applied_at)
    VALUES (1, ${text(fingerprintOf(schema))}, ${param('jsonb', names)}, now())
        ON CONFLICT (id) DO UPDATE
       SET fingerprint = excluded.fingerprint, tables = excluded.tables, applied_at = excluded.applied_at`);
}

function fingerprintOf(schema: Schema): string {
  return createHash('sha256')
    .update(JSON.stringify([...tablesOf(schema)]))
    .digest('base64url');
}
