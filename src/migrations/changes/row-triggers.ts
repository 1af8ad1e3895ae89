/** Triggers of the service: each table has a function of its own, whose text is compared, so that an unchanged one takes no lock. */
import { isDeepStrictEqual } from 'node:util';
import type { Queryable } from '../../database/contract.ts';
import { CELL_FORMAT } from '../../database/server-url.ts';
import { present } from '../../invariant.ts';
import { empty, ident, param, quotedText, raw, type Sql, sql, tableIdent } from '../../sql.ts';
import type { Step } from '../step.ts';

export interface TriggerKind {
  /** The beginning of the names of its functions. */
  readonly functions: string;
  readonly triggers: readonly {
    readonly name: string;
    readonly when: string;
    readonly each: 'ROW' | 'STATEMENT';
    /** Without it, the function is not called. */
    readonly condition?: string;
  }[];
}

export interface RowTrigger {
  readonly table: string;
  /** The name of the function. */
  readonly name: string;
  readonly body: string;
  /** The partitions of the table get the triggers of statements too: one can be truncated by itself. */
  readonly isPartitioned?: boolean;
  /** The body prints cells as `CELL_FORMAT` says by itself. */
  readonly printsItself?: boolean;
  /** Runs where the triggers are made: writes before that were not theirs. Default: nothing. */
  readonly onMade?: Sql;
}

interface ActualFunction {
  readonly body: string;
  /** The quoted name of the table that calls it. */
  readonly table: string | null;
  /** The triggers by which it does, in the order of their names. */
  readonly triggers: readonly { readonly name: string; readonly isConditional: boolean }[];
}

/** The trigger functions that the database has, and the steps from them to those of a schema. */
export class KnownTriggers {
  /** The schema of the database. */
  readonly own: string;
  readonly #functions: ReadonlyMap<string, ActualFunction>;
  readonly #replaced: ReadonlySet<string>;

  private constructor(own: string, functions: ReadonlyMap<string, ActualFunction>, replaced: ReadonlySet<string>) {
    this.own = own;
    this.#functions = functions;
    this.#replaced = replaced;
  }

  /** @param replaced tables that the migration replaces, with their triggers */
  static async read(
    db: Queryable,
    kinds: readonly TriggerKind[],
    replaced: ReadonlySet<string>,
  ): Promise<KnownTriggers> {
    const prefixes = kinds.map(({ functions }) => `${functions.replaceAll('_', '\\_')}%`);
    const rows = await db.rows(sql`
      SELECT s.own::text, p.proname::text, p.prosrc, g.table_name, g.triggers
        FROM (SELECT current_schema() AS own) s
        LEFT JOIN pg_proc p
          ON p.pronamespace = s.own::regnamespace
         AND p.proname LIKE ANY(${param('text[]', prefixes)})
        LEFT JOIN (
             SELECT tgfoid, format('%I.%I', n.nspname, c.relname) AS table_name,
                    json_agg(json_build_object('name', tgname, 'isConditional', tgqual IS NOT NULL) ORDER BY tgname) AS triggers
               FROM pg_trigger
               JOIN pg_class c ON c.oid = tgrelid
               JOIN pg_namespace n ON n.oid = c.relnamespace
              WHERE NOT c.relispartition
                AND tgenabled <> 'D'
              GROUP BY tgfoid, n.nspname, c.relname
             ) g
          ON g.tgfoid = p.oid`);
    const functions = rows.flatMap(([, name, body, table, triggers]) =>
      name == null
        ? []
        : [[name, { body: body!, table: table ?? null, triggers: JSON.parse(triggers ?? '[]') }] as const],
    );
    return new KnownTriggers(present(rows[0]?.[0], 'the current schema'), new Map(functions), replaced);
  }

  has(kind: TriggerKind): boolean {
    return this.#namesOf(kind).length > 0;
  }

  /** Makes the triggers that are missing or differ, and drops the others of their kind. */
  stepsTo(kind: TriggerKind, triggers: readonly RowTrigger[]): readonly Step[] {
    const kept = new Set(triggers.map(({ name }) => name));
    const lost = this.#namesOf(kind).filter((name) => !kept.has(name));
    return [
      ...triggers.flatMap((trigger) => this.#stepsOf(kind, trigger)),
      ...lost.map((name) => ({ sql: sql`DROP FUNCTION IF EXISTS ${ident(name)}() CASCADE`, isExtra: true })),
    ];
  }

  /** Drops the triggers of a kind that these tables have. */
  dropsFrom(tables: readonly string[], { functions, triggers }: TriggerKind): readonly Step[] {
    const having = new Set(
      [...this.#functions].flatMap(([name, { table }]) =>
        name.startsWith(functions) && table !== null ? [table] : [],
      ),
    );
    const quoted = tables.map((table) => ident(this.own, table));
    return quoted
      .filter(({ text }) => [...having].some((table) => sameName(table, text)))
      .flatMap((table) =>
        triggers.map(({ name }) => ({ sql: sql`DROP TRIGGER IF EXISTS ${ident(name)} ON ${table}` })),
      );
  }

  #namesOf({ functions }: TriggerKind): readonly string[] {
    return [...this.#functions.keys()].filter((name) => name.startsWith(functions));
  }

  #stepsOf(kind: TriggerKind, trigger: RowTrigger): readonly Step[] {
    const { table, name, body, isPartitioned = false, onMade } = trigger;
    const actual = this.#replaced.has(table) ? undefined : this.#functions.get(name);
    const quoted = table.includes('.') ? tableIdent(table).text : ident(this.own, table).text;
    const isCalled =
      typeof actual?.table === 'string' &&
      sameName(actual.table, quoted) &&
      isDeepStrictEqual(actual.triggers, calledFor(kind));
    const made = actual?.body === body ? [] : [createFunction(trigger, this.own)];
    const old = new Set([...(actual?.triggers ?? []), ...kind.triggers].map((each) => each.name));
    const called = isCalled ? [] : createTriggers(kind, { table: tableIdent(table), name, old });
    const ofParts = isCalled || !isPartitioned ? [] : partitionTriggers(kind, tableIdent(table), name);
    const first = isCalled || onMade === undefined ? [] : [onMade];
    return [...made, ...called, ...ofParts, ...first].map((statement) => ({ sql: statement }));
  }
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

/** `format('%I')` quotes a name only where it has to. */
const sameName = (a: string, b: string): boolean => a.replaceAll('"', '') === b.replaceAll('"', '');

/** The cells are printed as the connections of the service print them, under any settings of the writer. */
function createFunction({ name, body, printsItself = false }: RowTrigger, own: string): Sql {
  const settings = Object.entries(printsItself ? {} : CELL_FORMAT);
  return raw(`CREATE OR REPLACE FUNCTION ${ident(name).text}() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, ${ident(own).text}, pg_temp
${settings.map(([setting, value]) => `SET "${setting}" = '${value}'\n`).join('')}AS $bylaw$${body}$bylaw$`);
}

/**
 * Runs statements under `CELL_FORMAT`, in a function that declares `kept text[]`. Nearly every writer has these settings
 * already, and a SET clause costs each call more than a comparison.
 */
export function printing(statements: string): string {
  const settings = Object.keys(CELL_FORMAT);
  const present = settings.map((name) => `current_setting('${name}')`);
  // The order of day and month is a part of the style, which ISO does without.
  const compared = present.map((value, i) => (settings[i] === 'DateStyle' ? `left(${value}, 3)` : value));
  const wanted = Object.values(CELL_FORMAT).map((value) => `'${value}'`);
  const set = (values: readonly string[]): string =>
    settings.map((name, i) => `set_config('${name}', ${values[i]}, true)`).join(', ');
  return `
  IF (${compared.join(', ')}) IS DISTINCT FROM (${wanted.join(', ')}) THEN
    kept := ARRAY[${present.join(', ')}];
    PERFORM ${set(wanted)};
  END IF;
  ${statements.trim()}
  IF kept IS NOT NULL THEN
    PERFORM ${set(settings.map((_, i) => `kept[${i + 1}]`))};
  END IF;`;
}

/** The triggers of a kind as the catalog has them. */
const calledFor = ({ triggers }: TriggerKind): ActualFunction['triggers'] =>
  triggers
    .map(({ name, condition }) => ({ name, isConditional: condition !== undefined }))
    .toSorted((a, b) => (a.name < b.name ? -1 : 1));

const triggerCondition = ({ condition }: TriggerKind['triggers'][number]): Sql =>
  condition === undefined ? empty : raw(`WHEN (${condition}) `);

interface Calls {
  readonly table: Sql;
  /** The name of the function. */
  readonly name: string;
  /** The names of the triggers that go. */
  readonly old: ReadonlySet<string>;
}

function createTriggers({ triggers }: TriggerKind, { table, name, old }: Calls): readonly Sql[] {
  const call = sql`EXECUTE FUNCTION ${ident(name)}()`;
  return [
    ...[...old].map((each) => sql`DROP TRIGGER IF EXISTS ${ident(each)} ON ${table}`),
    ...triggers.map(
      (each) =>
        sql`CREATE TRIGGER ${ident(each.name)} ${raw(each.when)} ON ${table} FOR EACH ${raw(each.each)} ${triggerCondition(each)}${call}`,
    ),
  ];
}

/** PostgreSQL gives partitions the triggers of rows by itself. */
const partitionTriggers = ({ triggers }: TriggerKind, table: Sql, name: string): readonly Sql[] =>
  triggers
    .filter(({ each }) => each === 'STATEMENT')
    .map((each) => {
      const create = `CREATE OR REPLACE TRIGGER ${ident(each.name).text} ${each.when} ON %s FOR EACH STATEMENT EXECUTE FUNCTION ${ident(name).text}()`;
      return raw(`DO $bylaw$
DECLARE part regclass;
BEGIN
  FOR part IN SELECT inhrelid FROM pg_inherits WHERE inhparent = ${quotedText(table.text)}::regclass LOOP
    EXECUTE format(${quotedText(create)}, part);
  END LOOP;
END
$bylaw$`);
    });
