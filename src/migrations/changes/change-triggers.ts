/**
 * The change log and the triggers that write it. Each logged table has a function of its own, whose text states its
 * columns: a plan compares the texts, and an unchanged one needs no lock of the table.
 */
import type { Queryable } from '../../database/contract.ts';
import { type LoggedTable, loggedTablesOf } from '../../schema/model/logged-tables.ts';
import type { Schema } from '../../schema/model/model.ts';
import { loggedShape, shortDigest } from '../../schema/model/stored-names.ts';
import { ident, quotedText, raw, type Sql, sql } from '../../sql.ts';
import { tableExists } from '../catalog.ts';
import type { Step } from '../step.ts';
import type { Table } from '../tables.ts';
import type { extraColumnsLeft } from './extra-columns.ts';
import type { ExtraLinks } from './extra-links.ts';
import { type KnownTriggers, printedCell, printing, type RowTrigger, type TriggerKind } from './row-triggers.ts';

/** No program but this one has triggers of this name; other rooms know them by `bylaw_`. */
const TRIGGER = 'bylaw_changes';
const TRUNCATION_TRIGGER = 'bylaw_changes_truncate';
const LOG_TABLE = 'bylaw_changes';
const LOG_STATE_TABLE = 'bylaw_change_log';
const FUNCTION_PREFIX = 'bylaw_log_';
export const CHANGE_TRIGGERS: TriggerKind = {
  functions: FUNCTION_PREFIX,
  triggers: [
    {
      name: TRIGGER,
      when: 'AFTER INSERT OR UPDATE OR DELETE',
      each: 'ROW',
      // An import writes one entry for all of its rows. The call of the function for each of them would take 1.5 µs; PostgreSQL
      // reads the condition in 2.5 µs for each statement.
      condition: "current_setting('bylaw.bulk', true) IS DISTINCT FROM 'on'",
    },
    { name: TRUNCATION_TRIGGER, when: 'AFTER TRUNCATE', each: 'STATEMENT' },
  ],
};

/**
 * `before` and `after`: the cells of the row as text, in the order of the columns; null: the row does not exist. An entry
 * without an `id` means any number of changes. `xid` decides which snapshots see an entry.
 */
const CREATE_LOG: readonly Sql[] = [
  raw(`CREATE TABLE IF NOT EXISTS "${LOG_TABLE}" (
  seq bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  xid xid8 NOT NULL,
  source text COLLATE "C" NOT NULL,
  id text,
  shape text NOT NULL,
  before text[],
  after text[],
  at timestamptz NOT NULL DEFAULT clock_timestamp()
)`),
  raw(`CREATE INDEX IF NOT EXISTS "${LOG_TABLE}_xid" ON "${LOG_TABLE}" (xid)`),
  // `life`: positions of another one are void. `samples`: earlier snapshots, by which the log is pruned.
  raw(`CREATE TABLE IF NOT EXISTS "${LOG_STATE_TABLE}" (
  one boolean PRIMARY KEY DEFAULT true CHECK (one),
  life uuid NOT NULL DEFAULT gen_random_uuid(),
  server text NOT NULL DEFAULT '',
  samples jsonb NOT NULL DEFAULT '[]',
  pruned_at timestamptz NOT NULL DEFAULT '-infinity'
)`),
  raw(`INSERT INTO "${LOG_STATE_TABLE}" DEFAULT VALUES ON CONFLICT DO NOTHING`),
];
const DROP_LOG = raw(`DROP TABLE IF EXISTS "${LOG_TABLE}", "${LOG_STATE_TABLE}"`);

export interface TriggerPlan {
  readonly db: Queryable;
  readonly schema: Schema;
  readonly wanted: ReadonlyMap<string, Table>;
  readonly known: KnownTriggers;
  readonly extra: ReturnType<typeof extraColumnsLeft>;
  readonly extraLinks: readonly ExtraLinks[];
  readonly isCluster: boolean;
}

const TRIGGERS_OF_COPIES = raw('SET LOCAL citus.enable_unsafe_triggers TO');

/** Citus makes and drops triggers of a reference table only under this setting. */
function ofCopies(steps: readonly Step[]): readonly Step[] {
  if (steps.length === 0) return [];
  const isExtra = steps.every((step) => step.isExtra === true);
  const told = (to: string): Step => ({ sql: sql`${TRIGGERS_OF_COPIES} ${raw(to)}`, isExtra });
  return [told('on'), ...steps, told('DEFAULT')];
}

/** A table drops its triggers before it becomes a reference table, or a local one. */
export const dropsOfCopied = (tables: readonly string[], known: KnownTriggers): readonly Step[] =>
  ofCopies(known.dropsFrom(tables, CHANGE_TRIGGERS));

/** The steps come after those of the tables. Throws for a feed that a cluster cannot have. */
export async function changeLogSteps(plan: TriggerPlan): Promise<readonly Step[]> {
  const { db, schema, wanted, known } = plan;
  const logged = [...loggedTablesOf(schema).values()].filter(({ table }) => wanted.has(table));
  const isLogged = await tableExists(db, LOG_STATE_TABLE);
  if (logged.length === 0 && !isLogged && !known.has(CHANGE_TRIGGERS)) return [];
  if (plan.isCluster) assertNoShards(logged, wanted);
  const triggers = known.stepsTo(
    CHANGE_TRIGGERS,
    logged.map((each) => triggerOf(each, plan)),
  );
  return [
    ...(logged.length > 0 && !isLogged ? CREATE_LOG.map((statement) => ({ sql: statement })) : []),
    ...(plan.isCluster ? ofCopies(triggers) : triggers),
    ...(logged.length === 0 && isLogged ? [{ sql: DROP_LOG, isExtra: true }] : []),
  ];
}

function triggerOf(logged: LoggedTable, { known, wanted, isCluster }: TriggerPlan): RowTrigger {
  const name = `${FUNCTION_PREFIX}${shortDigest(logged.table)}`;
  const { table } = logged;
  const layout = wanted.get(table)?.tenantLayout?.kind;
  const log = ident(known.own, LOG_TABLE).text;
  // Each machine of a cluster runs the trigger for its copy of a reference table, and the coordinator alone has the log.
  const isCopied = isCluster && layout === 'reference';
  const guard = isCopied ? `\n  IF to_regclass(${quotedText(log)}) IS NULL THEN RETURN NULL; END IF;` : '';
  const body = functionBodyOf(logged, log, guard);
  // A reader from before lists again: the log has nothing of the time without the triggers.
  const onMade = raw(
    `INSERT INTO ${log} (xid, source, shape) VALUES (pg_current_xact_id(), ${quotedText(logged.source)}, '${loggedShape(logged)}')`,
  );
  return { table, name, body, isPartitioned: !isCluster && layout === 'by', printsItself: true, onMade };
}

/** An UPDATE that changes the id is the end of one row and the beginning of another. */
function functionBodyOf(logged: LoggedTable, log: string, guard: string): string {
  const { source, columns } = logged;
  const shape = loggedShape(logged);
  const cells = (row: string): string => `ARRAY[${columns.map((column) => printedCell(column, row)).join(', ')}]`;
  const id = ident(columns[0]!.name).text;
  const entry = (row: string, before: string, after: string): string =>
    `INSERT INTO ${log} (xid, source, id, shape, before, after)
    VALUES (pg_current_xact_id(), ${quotedText(source)}, ${row}, '${shape}', ${before}, ${after});`;
  const entries = printing(`
  IF TG_OP = 'INSERT' THEN
    ${entry(`NEW.${id}::text`, 'NULL', cells('NEW'))}
  ELSIF TG_OP = 'DELETE' THEN
    ${entry(`OLD.${id}::text`, cells('OLD'), 'NULL')}
  ELSIF TG_OP = 'TRUNCATE' THEN
    ${entry('NULL', 'NULL', 'NULL')}
  ELSIF OLD.${id} IS DISTINCT FROM NEW.${id} THEN
    ${entry(`OLD.${id}::text`, cells('OLD'), 'NULL')}
    ${entry(`NEW.${id}::text`, 'NULL', cells('NEW'))}
  ELSE
    ${entry(`NEW.${id}::text`, cells('OLD'), cells('NEW'))}
  END IF;`);
  return `
DECLARE
  kept text[];
BEGIN${guard}${entries}
  RETURN NULL;
END`;
}

/** Each machine of a cluster numbers its own transactions, and row triggers of distributed tables do not run. */
function assertNoShards(logged: readonly LoggedTable[], wanted: ReadonlyMap<string, Table>): void {
  const spread = logged.filter(({ table }) => wanted.get(table)?.tenantLayout?.kind === 'by');
  if (spread.length === 0) return;
  const names = spread.map(({ source }) => `\`${source}\``).join(', ');
  throw new Error(
    `a cluster of Citus reports no changes of ${names}, whose records are distributed by tenant; remove \`changes\` from the ` +
      'collections whose feed needs them',
  );
}
