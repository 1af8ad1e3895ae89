/** Brings the database to the schema, in one transaction. Nothing that loses data happens unasked. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Schema } from '../../schema/model.ts';
import { param, raw, type Sql, sql, text } from '../../sql.ts';
import type { Database, Queryable, Transaction } from '../database/contract.ts';
import { readStrings } from '../database/text-array.ts';
import { isLockTimeout } from '../database/to-store-error.ts';
import { IDEMPOTENCY_TABLES } from '../idempotency.ts';
import { makeVersionKey, VERSION_KEY_TABLE } from '../version-key.ts';
import { readCatalog } from './catalog.ts';
import { planSteps, type Step } from './diff.ts';
import { fingerprintOf } from './fingerprint.ts';
import { extraOf } from './readiness.ts';
import { fillCopies } from './search-columns.ts';
import { tablesOf } from './tables.ts';

export interface Migration {
  /** As they run, in order; empty when the database is as the schema wants it. */
  readonly statements: readonly string[];
  /** Those of them that lose data or may refuse what is there. */
  readonly destructive: readonly RiskyStatement[];
}

interface RiskyStatement {
  readonly sql: string;
  readonly why: string;
  /** It fails as long as the rows are as they are. */
  readonly isImpossible?: boolean;
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
  /**
   * Keeps tables and columns that the schema does not know, so that a version of the program can
   * serve a database that a newer one has migrated. Default: they are dropped, which is destructive.
   */
  readonly keepsExtra?: boolean;
  /** Hears what the operator should know: what is kept, what is waited for. */
  readonly onNote?: (note: string) => void;
}

export class MigrationRefused extends Error {
  readonly migration: Migration;
  constructor(migration: Migration) {
    const impossible = migration.destructive.filter(({ isImpossible }) => isImpossible);
    const losing = migration.destructive.filter(({ isImpossible }) => !isImpossible);
    const parts = [
      impossible.length > 0 && `the schema asks for changes that the rows do not allow:\n${listOf(impossible)}`,
      losing.length > 0 &&
        `the schema asks for changes that lose data or may refuse it:\n${listOf(losing)}\n` +
          'to do it nevertheless: bylaw migrate apply --allow-destructive (bylaw migrate plan shows every statement)',
    ];
    super(parts.filter((part) => part !== false).join('\n'));
    this.name = 'MigrationRefused';
    this.migration = migration;
  }
}

const listOf = (steps: Migration['destructive']): string =>
  steps.map(({ why, sql: statement }) => `- ${why}\n  ${statement.replaceAll('\n', '\n  ')}`).join('\n');

/** 'bylaw' as a number, so that no other program uses the same lock. */
const LOCK = 0x62_79_6c_61_77;

const SCHEMA_RECORD = raw(`CREATE TABLE IF NOT EXISTS "bylaw_schema" (
  id int PRIMARY KEY CHECK (id = 1),
  fingerprint text NOT NULL,
  tables jsonb NOT NULL,
  applied_at timestamptz NOT NULL
)`);

export async function planMigration(db: Database, schema: Schema, options: MigrateOptions = {}): Promise<Migration> {
  return migrationOf(await stepsOf(db, schema, options), await missingSystemTables(db, options.systemTables ?? []));
}

/** Milliseconds that a change may wait for a lock: meanwhile, everybody waits who uses the table. */
const LOCK_TIMEOUT_MS = 2_000;
const LOCK_ATTEMPTS = 30;
const LOCK_PAUSE_MS = 1_000;

/** What was done. Throws MigrationRefused. */
export async function applyMigration(db: Database, schema: Schema, options: MigrateOptions = {}): Promise<Migration> {
  for (let attempt = 1; ; attempt++) {
    try {
      // The time limit of requests does not apply to long changes.
      return await db.transaction((tx) => migrate(tx, schema, { ...options, kind: db.kind }), { unlimited: true });
    } catch (error) {
      if (!isLockTimeout(error)) throw error;
      if (attempt === LOCK_ATTEMPTS) throw new TableInUse(error);
    }
    options.onNote?.(
      `a table that has to change is in use by another program for more than ${LOCK_TIMEOUT_MS / 1_000} s; ` +
        `trying again (${attempt} of ${LOCK_ATTEMPTS})`,
    );
    await sleep(LOCK_PAUSE_MS);
  }
}

/** A table stayed locked through all attempts. */
class TableInUse extends Error {
  constructor(cause: unknown) {
    super(
      'a table that has to change is in use by another program; ' +
        "end its transaction (SELECT * FROM pg_stat_activity WHERE xact_start < now() - interval '1 minute' finds it) and try again",
      { cause },
    );
    this.name = 'TableInUse';
  }
}

interface MigrateRun extends MigrateOptions {
  readonly kind: Database['kind'];
}

async function migrate(tx: Transaction, schema: Schema, run: MigrateRun): Promise<Migration> {
  if (run.kind === 'postgres') {
    await tx.rows(sql`SELECT pg_advisory_xact_lock(${param('int8', LOCK)})`);
    // After that lock, which another node may hold for long.
    await tx.run(raw(`SET LOCAL lock_timeout = ${LOCK_TIMEOUT_MS}`));
  }
  const steps = await stepsOf(tx, schema, run);
  const missing = await missingSystemTables(tx, run.systemTables ?? []);
  const migration = migrationOf(steps, missing);
  const refused = await refusedOf(tx, steps, run);
  if (refused.length > 0) throw new MigrationRefused({ ...migration, destructive: refused });
  for (const step of steps) await take(tx, step);
  // Only those: a role without rights on the schema can serve a database that is current.
  for (const statement of missing) await tx.run(statement);
  await writeFingerprint(tx, schema, run);
  await makeVersionKey(tx);
  return migration;
}

/** Whether both schemas want the same tables, so that nothing lies to be migrated between them. */
export const haveSameTables = (a: Schema, b: Schema): boolean => fingerprintOf(a) === fingerprintOf(b);

const OWN_TABLES: readonly Sql[] = [SCHEMA_RECORD, VERSION_KEY_TABLE, ...IDEMPOTENCY_TABLES];

async function stepsOf(
  db: Queryable,
  schema: Schema,
  { keepsExtra, onNote }: MigrateOptions,
): Promise<readonly Step[]> {
  const actual = await readCatalog(db);
  const owned = actual.has('bylaw_schema') ? await ownedTables(db) : [];
  const wanted = tablesOf(schema);
  if (keepsExtra === true)
    for (const name of extraOf(wanted, actual, owned)) onNote?.(`kept, though the schema does not have it: ${name}`);
  return planSteps({ db, wanted, actual, owned, keepsExtra });
}

function migrationOf(steps: readonly Step[], systemTables: readonly Sql[]): Migration {
  return {
    statements: [...steps.map((step) => step.sql), ...systemTables.map(({ text }) => text)],
    destructive: steps.flatMap((step) => (step.destructive ? [riskOf(step, step.destructive)] : [])),
  };
}

async function refusedOf(
  tx: Transaction,
  steps: readonly Step[],
  { allows, allowDestructive = false }: MigrateOptions,
): Promise<Migration['destructive']> {
  const refused: RiskyStatement[] = [];
  for (const step of steps) {
    if (step.destructive === undefined) continue;
    const isAllowed = step.isImpossible !== true && (allowDestructive || (await allows?.(tx, step)));
    if (!isAllowed) refused.push(riskOf(step, step.destructive));
  }
  return refused;
}

const riskOf = ({ sql: statement, isImpossible }: Step, why: string): RiskyStatement =>
  isImpossible === true ? { sql: statement, why, isImpossible } : { sql: statement, why };

async function take(tx: Transaction, { sql: statement, filling }: Step): Promise<void> {
  await tx.run(raw(statement));
  if (filling !== undefined) await fillCopies(tx, filling);
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

async function writeFingerprint(tx: Transaction, schema: Schema, { keepsExtra }: MigrateOptions): Promise<void> {
  const wanted = [...tablesOf(schema).keys()];
  const names = JSON.stringify(keepsExtra === true ? [...new Set([...(await ownedTables(tx)), ...wanted])] : wanted);
  await tx.run(sql`
    INSERT INTO bylaw_schema (id, fingerprint, tables, applied_at)
    VALUES (1, ${text(fingerprintOf(schema))}, ${param('jsonb', names)}, now())
        ON CONFLICT (id) DO UPDATE
       SET fingerprint = excluded.fingerprint, tables = excluded.tables, applied_at = excluded.applied_at`);
}
