/**
 * Exclusion constraints: records of one place do not overlap in time. A place is a range of its one text, of a range
 * type that PostgreSQL makes without an extension: btree_gist is missing where its role cannot add it.
 */
import type { Queryable } from '../../database/contract.ts';
import { ident, join, param, raw, regclassOf, type Sql, sql, tableIdent } from '../../sql.ts';
import type { Step } from '../step.ts';
import type { TableDiff } from '../table-diff.ts';
import type { ExclusionKey, Table } from '../tables.ts';

const TEXT_RANGE = 'bylaw_text_range';
const CREATE_TEXT_RANGE = raw(`CREATE TYPE ${TEXT_RANGE} AS RANGE (subtype = text, collation = "C")`);

/** The steps that make the range type, if a table needs it. */
export async function textRangeSteps(db: Queryable, tables: Iterable<Table>): Promise<readonly Step[]> {
  if (![...tables].some(({ exclusion }) => exclusion !== undefined)) return [];
  const [row] = await db.rows(sql`SELECT to_regtype(${param('text', TEXT_RANGE)}) IS NOT NULL`);
  return row?.[0] === 't' ? [] : [{ sql: CREATE_TEXT_RANGE }];
}

interface Overlapping {
  /** Each is equal for two records of one place. */
  readonly places: readonly Sql[];
  readonly period: Sql;
  readonly where: Sql;
}

/** @param column the column of a row */
function overlapping({ on, from, to, range, where }: ExclusionKey, column: (name: string) => Sql): Overlapping {
  const [start, end] = [column(from), column(to)];
  const isReversed = sql`${end} < ${start}`;
  const first = sql`CASE WHEN ${isReversed} THEN ${end} ELSE ${start} END`;
  const last = sql`CASE WHEN ${isReversed} THEN ${start} ELSE ${end} END`;
  const isPlaced = [
    ...on.map((name) => sql`${column(name)} IS NOT NULL`),
    sql`(${start} IS NOT NULL OR ${end} IS NOT NULL)`,
    ...(where === undefined ? [] : [where]),
  ];
  return {
    places: on.map((name) => sql`${column(name)}::text`),
    period: sql`${raw(range)}(${first}, ${last})`,
    where: join(isPlaced, ' AND '),
  };
}

export function addExclusion(table: string, key: ExclusionKey): Sql {
  const { places, period, where } = overlapping(key, (name) => ident(name));
  const elements = [...places.map((place) => sql`${raw(TEXT_RANGE)}(${place}, ${place}, '[]')`), period];
  const list = join(
    elements.map((element) => sql`(${element}) WITH &&`),
    ', ',
  );
  return sql`ALTER TABLE ${tableIdent(table)} ADD CONSTRAINT ${ident(key.name)} EXCLUDE USING gist (${list}) WHERE (${where})`;
}

/** The step that adds the missing constraint, then the steps that drop the constraints of former definitions. */
export async function exclusionSteps(db: Queryable, t: TableDiff): Promise<readonly Step[]> {
  const { exclusion, name } = t.table;
  const existing = await readExclusions(db, t.actual.name);
  const former = existing.filter((constraint) => constraint !== exclusion?.name);
  const drops = former.map((constraint) => ({
    sql: sql`${t.alter} DROP CONSTRAINT IF EXISTS ${ident(constraint)}`,
    // Nodes of a newer version may rely on it.
    ...(exclusion === undefined && { isExtra: true }),
  }));
  if (exclusion === undefined || existing.includes(exclusion.name)) return drops;
  const add = addExclusion(name, exclusion);
  const broken = overlaps(t, exclusion);
  const [place] = exclusion.on;
  if (await t.finds(broken)) {
    const destructive =
      `rows of "${name}" overlap in "${exclusion.from}" and "${exclusion.to}" at one "${place}"; change them first; ` +
      `${broken.text} finds them`;
    return [{ sql: add, destructive, isImpossible: true }];
  }
  const rewrites = `the constraint on "${exclusion.from}" of "${name}" is built while all writers of the table wait`;
  return [{ sql: add, ...((await t.isLarge()) && { rewrites }) }, ...drops];
}

/** INVARIANT: a name that ends in a digest is of a constraint that an earlier schema declared. */
async function readExclusions(db: Queryable, table: string): Promise<readonly string[]> {
  const rows = await db.rows(sql`
    SELECT conname
      FROM pg_constraint
     WHERE conrelid = ${regclassOf(table)}
       AND contype = 'x'
       AND conname ~ '_[0-9a-f]{8,10}_apart$'`);
  return rows.map(([name]) => name!);
}

/** Pairs of rows that the constraint keeps apart. */
function overlaps(t: TableDiff, key: ExclusionKey): Sql {
  const id = t.table.primaryKey.at(-1)!;
  const { places, period, where } = overlapping(key, (name) => ident(name));
  const columns = [...new Set([id, ...key.on, key.from, key.to, ...key.whereColumns])];
  const named = places.map((place, i) => sql`${place} AS ${ident(`place${i}`)}`);
  const rows = sql`SELECT ${ident(id)} AS id, ${join([...named, sql`${period} AS period`], ', ')} FROM ${t.rowsToBe(columns)} WHERE ${where}`;
  const samePlace = places.map((_, i) => sql`a.${ident(`place${i}`)} = b.${ident(`place${i}`)}`);
  const isPair = join([...samePlace, sql`a.period && b.period`, sql`a.id < b.id`], ' AND ');
  return sql`SELECT a.id, b.id FROM (${rows}) AS a JOIN (${rows}) AS b ON ${isPair}`;
}
