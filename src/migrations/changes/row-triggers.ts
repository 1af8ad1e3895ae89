/** Triggers of the service: each table has a function of its own, whose text is compared, so that an unchanged one takes no lock. */
import type { Queryable } from '../../database/contract.ts';
import { ident, quotedText, raw, type Sql, sql, tableIdent } from '../../sql.ts';
import type { Step } from '../step.ts';

export interface TriggerKind {
  /** The beginning of the names of its functions. */
  readonly functions: string;
  /** The table of the first one is that which calls a function. */
  readonly triggers: readonly {
    readonly name: string;
    readonly when: string;
    readonly each: 'ROW' | 'STATEMENT';
  }[];
}

export interface RowTrigger {
  readonly table: string;
  /** The name of the function. */
  readonly name: string;
  readonly body: string;
}

export interface ActualFunction {
  readonly body: string;
  /** The quoted name of the table that calls it. */
  readonly table: string | null;
}

export async function readFunctions(
  db: Queryable,
  { functions, triggers }: TriggerKind,
): Promise<ReadonlyMap<string, ActualFunction>> {
  const rows = await db.rows(sql`
    SELECT p.proname::text, p.prosrc,
           (SELECT format('%I.%I', n.nspname, c.relname)
              FROM pg_trigger g
              JOIN pg_class c ON c.oid = g.tgrelid
              JOIN pg_namespace n ON n.oid = c.relnamespace
             WHERE g.tgfoid = p.oid AND g.tgparentid = 0 AND g.tgenabled <> 'D' AND g.tgname = ${raw(quotedText(triggers[0]!.name))})
      FROM pg_proc p
     WHERE p.pronamespace = current_schema()::regnamespace
       AND p.proname LIKE ${raw(quotedText(`${functions.replaceAll('_', '\\_')}%`))}`);
  return new Map(rows.map(([name, body, table]) => [name!, { body: body!, table: table ?? null }]));
}

interface PrintedColumn {
  readonly name: string;
  readonly type: string;
}

/** The text that a SELECT prints: a cast prints a boolean as a word. @param row `OLD` or `NEW` */
export function printedCell({ name, type }: PrintedColumn, row: string): string {
  const text = `${row}.${ident(name).text}::text`;
  return type === 'boolean' ? `left(${text}, 1)` : text;
}

interface TriggerPlace {
  readonly kind: TriggerKind;
  readonly actual: ActualFunction | undefined;
  /** The schema of the database. */
  readonly own: string;
}

export function rowTriggerSteps(
  { table, name, body }: RowTrigger,
  { kind, actual, own }: TriggerPlace,
): readonly Step[] {
  const quoted = table.includes('.') ? tableIdent(table).text : ident(own, table).text;
  const isCalled = typeof actual?.table === 'string' && sameName(actual.table, quoted);
  const made = actual?.body === body ? [] : [createFunction(name, body, own)];
  const called = isCalled ? [] : createTriggers(kind, tableIdent(table), name);
  return [...made, ...called].map((statement) => ({ sql: statement }));
}

/** `format('%I')` quotes a name only where it has to. */
const sameName = (a: string, b: string): boolean => a.replaceAll('"', '') === b.replaceAll('"', '');

/** The cells are printed as the connections of the service print them, under any settings of the writer. */
const createFunction = (name: string, body: string, own: string): Sql =>
  raw(`CREATE OR REPLACE FUNCTION ${ident(name).text}() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, ${ident(own).text}, pg_temp
SET "TimeZone" = 'UTC'
SET "DateStyle" = 'ISO'
SET bytea_output = 'hex'
SET extra_float_digits = 1
AS $bylaw$${body}$bylaw$`);

function createTriggers({ triggers }: TriggerKind, table: Sql, name: string): readonly Sql[] {
  const call = sql`EXECUTE FUNCTION ${ident(name)}()`;
  return [
    ...triggers.map((each) => sql`DROP TRIGGER IF EXISTS ${ident(each.name)} ON ${table}`),
    ...triggers.map(
      (each) =>
        sql`CREATE TRIGGER ${ident(each.name)} ${raw(each.when)} ON ${table} FOR EACH ${raw(each.each)} ${call}`,
    ),
  ];
}
