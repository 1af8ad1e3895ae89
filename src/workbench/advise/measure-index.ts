/**
 * The statistics of a table, and the time of a list without and with an index, on a sample: a temporary table
 * hides the real one from the statement. The transaction is rolled back, and the real table gets no index.
 */
import type { Database, Queryable } from '../../database/contract.ts';
import type { Policy, PolicyRequest } from '../../policy/types.ts';
import { keyOf } from '../../policy/types.ts';
import type { Store } from '../../records/access-context.ts';
import { scopeOf } from '../../records/scope.ts';
import { ident, join, raw, regclassOf, type Sql, sql, text } from '../../sql.ts';
import type { MissingIndex } from './missing-indexes.ts';

const MOST_SAMPLED = 100_000;
/** The records of a page, and one more, which shows that there is another page. */
const LISTED_ROWS = 21;
const REPETITIONS = 3;

export interface MeasuredIndex {
  /** The estimate of PostgreSQL. */
  readonly rows: number;
  readonly bytes: number;
  /** The plan of the list on the real table. */
  readonly plan: readonly string[];
  /** The plan with the index; given where the database has the extension hypopg. */
  readonly plan_with_index?: readonly string[];
  /** Undefined: the table cannot be sampled. */
  readonly sample?: { readonly rows: number; readonly before_ms: number; readonly after_ms: number };
}

interface TableFacts {
  readonly schema: string;
  readonly kind: string;
  readonly rows: number;
  readonly bytes: number;
}

/** The real table has an index that begins with the column. */
export async function hasIndex(db: Database, { collection, field }: MissingIndex): Promise<boolean> {
  const found = await db.rows(sql`
    SELECT 1
      FROM pg_index AS x
      JOIN pg_attribute AS a ON a.attrelid = x.indrelid AND a.attnum = x.indkey[0]
     WHERE x.indrelid = ${regclassOf(collection.table)} AND x.indisvalid AND x.indpred IS NULL
       AND a.attname = ${text(field.column)}`);
  return found.length > 0;
}

/** Undefined: the database has no such table, or the caller may list nothing by these rules. */
export async function measureIndex(
  store: Store,
  missing: MissingIndex,
  request: PolicyRequest,
): Promise<MeasuredIndex | undefined> {
  const { db } = store;
  const facts = await tableFactsOf(db, missing.collection.table);
  const list = facts && measuredList(store, missing, request);
  if (facts === undefined || list === undefined) return undefined;
  const plan = await planLinesOf(db, list);
  const planned = await planWithIndex(db, { missing, list, facts });
  const { rows, bytes } = facts;
  const measured = { rows, bytes, plan, ...(planned && { plan_with_index: planned }) };
  const isSampled = !missing.collection.table.includes('.') && ['r', 'p', 'm'].includes(facts.kind);
  return isSampled ? { ...measured, sample: await timesOnSample(db, { missing, list, facts }) } : measured;
}

const planLinesOf = async (db: Pick<Queryable, 'rows'>, list: Sql): Promise<readonly string[]> =>
  (await db.rows(sql`EXPLAIN ${list}`)).map(([line]) => String(line));

/** Undefined: the database has no hypopg. The hypothetical index is of this session alone, and is gone afterwards. */
async function planWithIndex(db: Database, { missing, list, facts }: Sampling): Promise<readonly string[] | undefined> {
  const [found] = await db.rows(sql`
    SELECT n.nspname
      FROM pg_extension AS e
      JOIN pg_namespace AS n ON n.oid = e.extnamespace
     WHERE e.extname = 'hypopg'`);
  // Only tables, partitioned ones and materialized views have indexes.
  if (found === undefined || !['r', 'p', 'm'].includes(facts.kind)) return undefined;
  const extension = String(found[0]);
  const columns = missing.columns.map((column) => ident(column));
  const name = missing.collection.table.split('.').at(-1)!;
  const made = sql`CREATE INDEX ON ${ident(facts.schema, name)} (${join(columns, ', ')})`;
  return db.transaction(
    async (tx) => {
      await tx.rows(sql`SELECT indexrelid FROM ${ident(extension, 'hypopg_create_index')}(${text(made.text)})`);
      try {
        return await planLinesOf(tx, list);
      } finally {
        await tx.rows(sql`SELECT ${ident(extension, 'hypopg_reset')}()`);
      }
    },
    { unlimited: true },
  );
}

async function tableFactsOf(db: Database, table: string): Promise<TableFacts | undefined> {
  const [found] = await db.rows(sql`
    SELECT n.nspname, c.relkind, c.reltuples::bigint, pg_total_relation_size(c.oid)
      FROM pg_class AS c
      JOIN pg_namespace AS n ON n.oid = c.relnamespace
     WHERE c.oid = ${regclassOf(table)}`);
  if (found === undefined) return undefined;
  const [schema, kind, rows, bytes] = found.map(String) as [string, string, string, string];
  return { schema, kind, rows: Math.max(0, Number(rows)), bytes: Number(bytes) };
}

/** The first page of a list: by the rules that lack the index, or sorted by the field. */
function measuredList(
  store: Store,
  { collection, field, because, rules }: MissingIndex,
  request: PolicyRequest,
): Sql | undefined {
  const own = because === 'policy' ? rules.map((i) => collection.access.list[i]!) : collection.access.list;
  const conditions = listConditions(own, request);
  if (conditions.length === 0) return undefined;
  const key = ident('t', keyOf(collection).column);
  const order = because === 'policy' ? key : sql`${ident('t', field.column)}, ${key}`;
  const rows = scopeOf({ store }).from(collection.name, 't');
  return sql`
    SELECT ${key}
      FROM ${rows.where(sql`(${join(conditions, ' OR ')})`)}
     ORDER BY ${order}
     LIMIT ${raw(String(LISTED_ROWS))}`;
}

const listConditions = (rules: readonly Policy[], request: PolicyRequest): readonly Sql[] =>
  rules
    .map((rule) => rule.specialise(request))
    .filter(({ verdict }) => verdict !== 'deny')
    .map((residual) => sql`(${residual.where('t')})`);

interface Sampling {
  readonly missing: MissingIndex;
  readonly list: Sql;
  readonly facts: TableFacts;
}

/** Ends the transaction without its changes. */
class SampleTaken extends Error {
  readonly sample: NonNullable<MeasuredIndex['sample']>;
  constructor(sample: NonNullable<MeasuredIndex['sample']>) {
    super('the sample is rolled back');
    this.sample = sample;
  }
}

async function timesOnSample(db: Database, sampling: Sampling): Promise<NonNullable<MeasuredIndex['sample']>> {
  try {
    return await db.transaction(
      async (tx) => {
        throw new SampleTaken(await timesOn(tx, sampling));
      },
      { unlimited: true },
    );
  } catch (error) {
    if (error instanceof SampleTaken) return error.sample;
    throw error;
  }
}

async function timesOn(
  tx: Queryable,
  { missing, list, facts }: Sampling,
): Promise<NonNullable<MeasuredIndex['sample']>> {
  const { columns, collection } = missing;
  const real = ident(facts.schema, collection.table);
  const copy = ident('pg_temp', collection.table);
  const share = facts.rows > MOST_SAMPLED ? Math.min(100, (110 * MOST_SAMPLED) / facts.rows) : 100;
  await tx.run(sql`CREATE TEMPORARY TABLE ${ident(collection.table)} (LIKE ${real} INCLUDING INDEXES) ON COMMIT DROP`);
  const part = share === 100 ? raw('') : sql`TABLESAMPLE SYSTEM (${raw(share.toFixed(4))})`;
  const rows = await tx.run(sql`INSERT INTO ${copy} SELECT * FROM ${real} ${part} LIMIT ${raw(String(MOST_SAMPLED))}`);
  await tx.run(sql`ANALYZE ${copy}`);
  const before = await medianTime(tx, list);
  await tx.run(
    sql`CREATE INDEX ON ${copy} (${join(
      columns.map((column) => ident(column)),
      ', ',
    )})`,
  );
  await tx.run(sql`ANALYZE ${copy}`);
  return { rows, before_ms: before, after_ms: await medianTime(tx, list) };
}

/** Milliseconds, the way to the database included. */
async function medianTime(tx: Queryable, list: Sql): Promise<number> {
  await tx.rows(list);
  const times: number[] = [];
  for (let i = 0; i < REPETITIONS; i++) {
    const start = performance.now();
    await tx.rows(list);
    times.push(performance.now() - start);
  }
  const median = times.toSorted((a, b) => a - b)[Math.floor(REPETITIONS / 2)]!;
  return Math.round(median * 100) / 100;
}
