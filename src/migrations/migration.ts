/** A migration: its plan, the reasons to refuse it, and the options of callers. */
import { isCitus } from '../database/citus.ts';
import type { Database, Queryable, Transaction } from '../database/contract.ts';
import { hasTenants, type Schema } from '../schema/model/model.ts';
import { storedTables, unmanagedTables } from '../schema/model/stored-names.ts';
import { raw, type Sql } from '../sql.ts';
import { type NamedObject, objectsExist, readCatalog } from './catalog.ts';
import { CHANGE_TRIGGERS, changeLogSteps, dropsOfCopied } from './changes/change-triggers.ts';
import { assertNothingKept } from './changes/copied-rows.ts';
import { DELETED_ROW_TRIGGERS, deletedRowSteps } from './changes/deleted-row-triggers.ts';
import { extraColumnsLeft } from './changes/extra-columns.ts';
import { extraLinksLeft } from './changes/extra-links.ts';
import { historyRenames } from './changes/history-renames.ts';
import { HISTORY_TRIGGERS, historySteps } from './changes/history-triggers.ts';
import { linkRenames } from './changes/link-renames.ts';
import { KnownTriggers } from './changes/row-triggers.ts';
import { planSteps } from './diff.ts';
import { HISTORY_TABLE } from './history.ts';
import { extraOf } from './readiness.ts';
import { renamedTables } from './renamed-tables.ts';
import { ownedTables, SCHEMA_RECORD_TABLE } from './schema-record.ts';
import type { Step } from './step.ts';
import { type ForeignKey, type Table, tablesOf } from './tables.ts';
import { needsMove } from './tenant-move.ts';
import { assertCitusFits, needsFreedKeys } from './tenant-tables.ts';
import { findDifferences, type OwnersNote, UnservableTables } from './unmanaged/differences.ts';
import { type OwnersTable, readOwnersTables } from './unmanaged/owners-tables.ts';

export interface Migration {
  /** The steps are in the order of execution; empty if the database matches the schema. */
  readonly statements: readonly string[];
  /** The statements that need the operator's consent. */
  readonly destructive: readonly RiskyStatement[];
  /** The statements that run after the others are committed, while the tables are in use. */
  readonly apart: readonly string[];
}

export interface RiskyStatement {
  readonly sql: string;
  readonly why: string;
  /**
   * `impossible`: it fails unless rows change. `rewrites`: it blocks the table while it runs.
   * `destructive`: it loses data or may fail.
   */
  readonly kind: 'destructive' | 'impossible' | 'rewrites';
}

export interface MigrateOptions {
  readonly allowDestructive?: boolean;
  /**
   * Decides about each destructive statement, in the transaction that would run it. Default: none is
   * allowed.
   */
  readonly allows?: (tx: Transaction, step: Step) => Promise<boolean>;
  /** Default: true. Otherwise, no large table is rewritten. */
  readonly mayRewrite?: boolean;
  /** Idempotent statements of other rooms; they run after the tables of collections exist. */
  readonly systemTables?: readonly Sql[];
  /**
   * Keeps tables and columns that the schema does not have, so that a version of the program can
   * serve a database that a newer one has migrated. Default: they are dropped, which is destructive.
   */
  readonly keepsExtra?: boolean;
  /** Copies the search fields of all rows again: an older version may have written rows since. */
  readonly repeatsCopies?: boolean;
  /** The version of the program, for the history. */
  readonly version?: string;
  /** Receives notes for the operator: kept tables, waits, slow statements. */
  readonly onNote?: (note: string) => void;
  /** Called before each statement; an exception ends the migration there. */
  readonly onStatement?: (statement: string) => void;
  /** The bytes from which tables are changed while they are in use; tests set it. */
  readonly largeFrom?: number;
}

export class MigrationRefused extends Error {
  readonly migration: Migration;
  constructor(migration: Migration) {
    const of = (kind: RiskyStatement['kind']) => migration.destructive.filter((risky) => risky.kind === kind);
    const parts = [
      refusalText('the schema asks for changes that the rows do not allow', of('impossible')),
      refusalText(
        'the schema asks for changes that lose data or may refuse it',
        of('destructive'),
        'to do it nevertheless: bylaw migrate apply --allow-destructive (bylaw migrate plan shows every statement)',
      ),
      refusalText(
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

function refusalText(what: string, risky: Migration['destructive'], remedy?: string): string {
  if (risky.length === 0) return '';
  const list = risky.map(({ why, sql: statement }) => `- ${why}\n  ${statement.replaceAll('\n', '\n  ')}`);
  return [`${what}:`, ...list, ...(remedy === undefined ? [] : [remedy])].join('\n');
}

export async function planMigration(db: Database, schema: Schema, options: MigrateOptions = {}): Promise<Migration> {
  const canRunApart = db.openSession !== undefined;
  const { steps } = await readPlan(db, { schema, canRunApart, ...options });
  return migrationOf(steps, await missingSystemTables(db, options.systemTables ?? []));
}

export function migrationOf(steps: readonly Step[], systemTables: readonly Sql[]): Migration {
  const first = steps.filter(({ apart }) => apart === undefined);
  const later = steps.filter(({ apart }) => apart !== undefined);
  const textsOf = (some: readonly Step[]): readonly string[] => some.map((step) => step.sql.text);
  return {
    statements: [...textsOf(first), ...systemTables.map(({ text }) => text), ...textsOf(later)],
    destructive: steps.flatMap((step) => riskOf(step) ?? []),
    apart: textsOf(later),
  };
}

export function riskOf({
  sql: { text: statement },
  destructive,
  isImpossible,
  rewrites,
}: Step): RiskyStatement | undefined {
  if (destructive !== undefined)
    return { sql: statement, why: destructive, kind: isImpossible === true ? 'impossible' : 'destructive' };
  return rewrites === undefined ? undefined : { sql: statement, why: rewrites, kind: 'rewrites' };
}

export interface Planning extends MigrateOptions {
  readonly schema: Schema;
  readonly canRunApart: boolean;
}

export interface MigrationPlan {
  readonly steps: readonly Step[];
  /** The names of tables and columns that the schema does not have and that stay. */
  readonly kept: readonly string[];
}

export async function readPlan(db: Queryable, planning: Planning): Promise<MigrationPlan> {
  const { schema, keepsExtra } = planning;
  const actual = await readCatalog(db, storedTables(schema));
  const made = actual.has('bylaw_schema') ? await ownedTables(db) : [];
  const owned = made.filter((name) => !unmanagedTables(schema).has(name));
  const owners = await readOwnersTables(db, [...unmanagedTables(schema)]);
  const { errors } = findDifferences(schema, owners);
  if (errors.length > 0) throw new UnservableTables(errors);
  const wanted = withoutKeysToViews(tablesOf(schema), owners);
  const renamed = renamedTables(wanted, actual);
  const kept = keepsExtra === true ? extraOf(wanted, renamed.actual, owned) : [];
  const isCluster = await isCitus(db);
  if (isCluster && hasTenants(schema)) await assertCitusFits(db);
  if (isCluster) assertNothingKept(schema);
  const changes = [
    ...(await planSteps({ ...planning, db, wanted, actual, owned, isCluster })),
    ...(await historyRenames({ ...planning, db, wanted, renamed })),
    ...(await linkRenames({ ...planning, db, renamed })),
  ];
  const namesOf = (changes: typeof needsMove): readonly string[] =>
    [...wanted.values()].flatMap((table) => {
      const existing = actual.get(table.name);
      return existing !== undefined && changes(existing, table) ? [table.name] : [];
    });
  const copied = isCluster ? namesOf(needsFreedKeys) : [];
  const moved = namesOf(needsMove);
  const replaced = new Set([...moved, ...copied]);
  const known = await KnownTriggers.read(db, [CHANGE_TRIGGERS, DELETED_ROW_TRIGGERS, HISTORY_TRIGGERS], replaced);
  const extra = extraColumnsLeft({ wanted, renamed, steps: changes, moved });
  const extraLinks = extraLinksLeft({ wanted, actual: renamed.actual, owned, steps: changes });
  const plan = { db, schema, wanted, known, extra, extraLinks, isCluster };
  const triggers = [...(await changeLogSteps(plan)), ...deletedRowSteps(plan), ...historySteps(plan)];
  const later = triggers.filter(({ isExtra }) => keepsExtra !== true || isExtra !== true);
  return { steps: [...dropsOfCopied(copied, known), ...changes, ...later], kept };
}

/** No foreign key refers to a view. */
function withoutKeysToViews(
  tables: ReadonlyMap<string, Table>,
  owners: ReadonlyMap<string, OwnersTable>,
): ReadonlyMap<string, Table> {
  if (owners.size === 0) return tables;
  const isOfTable = ({ table }: ForeignKey): boolean => owners.get(table)?.isView !== true;
  return new Map(
    [...tables].map(([name, table]) => [name, { ...table, foreignKeys: table.foreignKeys.filter(isOfTable) }]),
  );
}

/** Differences of tables that other programs own, with which they can be served. */
export async function ownersNotes(db: Queryable, schema: Schema): Promise<readonly OwnersNote[]> {
  return findDifferences(schema, await readOwnersTables(db, [...unmanagedTables(schema)])).notes;
}

/**
 * Responses that are kept under idempotency keys. The version before kept them in `bylaw_idempotency`,
 * which stays where it is; see records/idempotency.ts.
 */
const IDEMPOTENCY_TABLES: readonly Sql[] = [
  // `answer`: a JSON object; its member `outline` is the text of the same answer without content. The key to `users`
  // also makes the table one that a cluster joins with distributed ones.
  raw(`CREATE TABLE IF NOT EXISTS "bylaw_kept_answers" (
  user_id uuid NOT NULL,
  path text COLLATE "C" NOT NULL,
  key text COLLATE "C" NOT NULL,
  body_hash text NOT NULL,
  answer text,
  created_at timestamptz NOT NULL DEFAULT now(),
  kind text NOT NULL DEFAULT 'user',
  users_id uuid GENERATED ALWAYS AS (CASE WHEN kind = 'user' THEN user_id END) STORED REFERENCES "users" (id) ON DELETE CASCADE,
  PRIMARY KEY (user_id, path, key)
)`),
  // `user_id` is any principal's: the version before knew users only.
  raw(`ALTER TABLE "bylaw_kept_answers"
  ADD COLUMN IF NOT EXISTS kind text NOT NULL DEFAULT 'user',
 DROP CONSTRAINT IF EXISTS "bylaw_kept_answers_user_id_fkey"`),
  raw('CREATE INDEX IF NOT EXISTS "bylaw_kept_answers_created_at" ON "bylaw_kept_answers" (created_at)'),
  // The records whose content is in an answer.
  raw(`CREATE TABLE IF NOT EXISTS "bylaw_kept_records" (
  user_id uuid NOT NULL,
  path text COLLATE "C" NOT NULL,
  key text COLLATE "C" NOT NULL,
  record_id uuid NOT NULL,
  collection text COLLATE "C" NOT NULL,
  PRIMARY KEY (user_id, path, key, record_id),
  FOREIGN KEY (user_id, path, key) REFERENCES "bylaw_kept_answers" ON DELETE CASCADE
)`),
  raw('CREATE INDEX IF NOT EXISTS "bylaw_kept_records_record_id" ON "bylaw_kept_records" (record_id)'),
  raw('CREATE INDEX IF NOT EXISTS "bylaw_kept_records_collection" ON "bylaw_kept_records" (collection)'),
];

/** At most one row. The database holds the key, so that dumps keep it and all nodes share it. */
const VERSION_KEY_TABLE = raw(`CREATE TABLE IF NOT EXISTS "bylaw_version_key" (
  one boolean PRIMARY KEY DEFAULT true CHECK (one),
  key text NOT NULL
)`);
const OWN_TABLES: readonly Sql[] = [SCHEMA_RECORD_TABLE, HISTORY_TABLE, VERSION_KEY_TABLE, ...IDEMPOTENCY_TABLES];

const CREATES = /^\s*CREATE\s+(?:UNIQUE\s+)?(?:TABLE|INDEX)\s+IF\s+NOT\s+EXISTS\s+"?(\w+)"?/i;
/** A later version of a table is found by its first new column. */
const ADDS = /^\s*ALTER\s+TABLE\s+"?(\w+)"?\s+ADD\s+COLUMN\s+IF\s+NOT\s+EXISTS\s+"?(\w+)"?/i;

/** The idempotent statements that would create something. */
export async function missingSystemTables(db: Queryable, more: readonly Sql[]): Promise<readonly Sql[]> {
  const made = [...OWN_TABLES, ...more].map((statement) => ({ statement, object: createdObject(statement) }));
  const exist = await objectsExist(
    db,
    made.map(({ object }) => object).filter((object) => object !== undefined),
  );
  const found = exist.values();
  return made.flatMap(({ statement, object }) => (object !== undefined && found.next().value ? [] : [statement]));
}

/** Undefined: any number of objects, or none. */
function createdObject({ text: statement }: Sql): NamedObject | undefined {
  const [, name, column] = ADDS.exec(statement) ?? CREATES.exec(statement) ?? [];
  return name === undefined ? undefined : { name, column };
}
