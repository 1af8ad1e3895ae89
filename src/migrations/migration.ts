/** What a migration is: its plan, what may keep it from happening, and what callers may ask for. */

import { assertCitusFits, tenantStorageOf } from '../database/citus.ts';
import type { Database, Queryable, Transaction } from '../database/contract.ts';
import { readStrings } from '../database/text-array.ts';
import { VERSION_KEY_TABLE } from '../database/version-key.ts';
import { hasTenants, type Schema } from '../schema/model/model.ts';
import { raw, type Sql, sql, text } from '../sql.ts';
import { readCatalog } from './catalog.ts';
import { planSteps } from './diff.ts';
import { HISTORY_TABLE } from './history.ts';
import { IDEMPOTENCY_TABLES } from './idempotency-tables.ts';
import { extraOf } from './readiness.ts';
import { renamedTables } from './renamed-tables.ts';
import type { Step } from './step.ts';
import { tablesOf } from './tables.ts';

export interface Migration {
  /** As they run, in order; empty when the database is as the schema wants it. */
  readonly statements: readonly string[];
  /** Those of them that do not happen unasked. */
  readonly destructive: readonly RiskyStatement[];
  /** Those that run after the others are committed, while the tables are in use. */
  readonly apart: readonly string[];
}

export interface RiskyStatement {
  readonly sql: string;
  readonly why: string;
  /**
   * `impossible`: it fails as long as the rows are as they are. `rewrites`: nobody can use the table
   * while it runs. Otherwise it loses data or may fail.
   */
  readonly kind: 'destructive' | 'impossible' | 'rewrites';
}

export interface MigrateOptions {
  readonly allowDestructive?: boolean;
  /**
   * Decides about each destructive statement, in the transaction that would run it. Default: none
   * is allowed.
   */
  readonly allows?: (tx: Transaction, step: Step) => Promise<boolean>;
  /** Default: true. Without it, a large table is not written again. */
  readonly mayRewrite?: boolean;
  /** Idempotent statements of other rooms, run after the collections' tables exist. */
  readonly systemTables?: readonly Sql[];
  /**
   * Keeps tables and columns that the schema does not know, so that a version of the program can
   * serve a database that a newer one has migrated. Default: they are dropped, which is destructive.
   */
  readonly keepsExtra?: boolean;
  /** Copies of search fields are made again, for rows that an older version has written since. */
  readonly repeatsCopies?: boolean;
  /** Of the program, for the history. */
  readonly version?: string;
  /** Hears what the operator should know: what is kept, what is waited for, what takes long. */
  readonly onNote?: (note: string) => void;
  /** Before each statement; what it throws ends the migration there. */
  readonly onStatement?: (statement: string) => void;
  /** Bytes from which tables are changed while they are in use; for tests. */
  readonly largeFrom?: number;
}

export class MigrationRefused extends Error {
  readonly migration: Migration;
  constructor(migration: Migration) {
    const of = (kind: RiskyStatement['kind']) => migration.destructive.filter((risky) => risky.kind === kind);
    const parts = [
      said('the schema asks for changes that the rows do not allow', of('impossible')),
      said(
        'the schema asks for changes that lose data or may refuse it',
        of('destructive'),
        'to do it nevertheless: bylaw migrate apply --allow-destructive (bylaw migrate plan shows every statement)',
      ),
      said(
        'the schema asks for changes that shut a large table while they run',
        of('rewrites'),
        'to do it at a quiet time: bylaw migrate apply',
      ),
    ];
    super(parts.filter((part) => part !== '').join('\n'));
    this.name = 'MigrationRefused';
    this.migration = migration;
  }
}

function said(what: string, risky: Migration['destructive'], remedy?: string): string {
  if (risky.length === 0) return '';
  const list = risky.map(({ why, sql: statement }) => `- ${why}\n  ${statement.replaceAll('\n', '\n  ')}`);
  return [`${what}:`, ...list, ...(remedy === undefined ? [] : [remedy])].join('\n');
}

export async function planMigration(db: Database, schema: Schema, options: MigrateOptions = {}): Promise<Migration> {
  const canRunApart = db.openSession !== undefined;
  const steps = await stepsOf(db, { schema, canRunApart, ...options });
  return migrationOf(steps, await missingSystemTables(db, options.systemTables ?? []));
}

export function migrationOf(steps: readonly Step[], systemTables: readonly Sql[]): Migration {
  const first = steps.filter(({ apart }) => apart === undefined);
  const later = steps.filter(({ apart }) => apart !== undefined);
  const textsOf = (some: readonly Step[]): readonly string[] => some.map((step) => step.sql);
  return {
    statements: [...textsOf(first), ...systemTables.map(({ text }) => text), ...textsOf(later)],
    destructive: steps.flatMap((step) => riskOf(step) ?? []),
    apart: textsOf(later),
  };
}

export function riskOf({ sql: statement, destructive, isImpossible, rewrites }: Step): RiskyStatement | undefined {
  if (destructive !== undefined)
    return { sql: statement, why: destructive, kind: isImpossible === true ? 'impossible' : 'destructive' };
  return rewrites === undefined ? undefined : { sql: statement, why: rewrites, kind: 'rewrites' };
}

export interface Planning extends MigrateOptions {
  readonly schema: Schema;
  readonly canRunApart: boolean;
}

export async function stepsOf(db: Queryable, planning: Planning): Promise<readonly Step[]> {
  const { schema, keepsExtra, onNote } = planning;
  const actual = await readCatalog(db);
  const owned = actual.has('bylaw_schema') ? await ownedTables(db) : [];
  const wanted = tablesOf(schema);
  if (keepsExtra === true) {
    const extra = extraOf(wanted, renamedTables(wanted, actual).actual, owned);
    for (const name of extra) onNote?.(`kept, though the schema does not have it: ${name}`);
  }
  const layout = await tenantStorageOf(db);
  if (layout === 'citus' && hasTenants(schema)) await assertCitusFits(db);
  return planSteps({ ...planning, db, wanted, actual, owned, layout });
}

const SCHEMA_RECORD = raw(`CREATE TABLE IF NOT EXISTS "bylaw_schema" (
  id int PRIMARY KEY CHECK (id = 1),
  fingerprint text NOT NULL,
  tables jsonb NOT NULL,
  applied_at timestamptz NOT NULL
)`);

const OWN_TABLES: readonly Sql[] = [SCHEMA_RECORD, HISTORY_TABLE, VERSION_KEY_TABLE, ...IDEMPOTENCY_TABLES];

const CREATES = /^\s*CREATE\s+(?:UNIQUE\s+)?(?:TABLE|INDEX)\s+IF\s+NOT\s+EXISTS\s+"?(\w+)"?/i;

/** Of the idempotent statements, those that would do something. */
export async function missingSystemTables(db: Queryable, more: readonly Sql[]): Promise<readonly Sql[]> {
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

export async function ownedTables(db: Queryable): Promise<readonly string[]> {
  const [row] = await db.rows(raw('SELECT tables FROM bylaw_schema WHERE id = 1'));
  return row ? readStrings(row[0]) : [];
}
