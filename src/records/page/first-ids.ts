/** The SQL of first ids: those of the ranges of branches, and those that a walk of bounded length meets. */
import { present } from '../../invariant.ts';
import type { Permit } from '../../policy/access.ts';
import type { Branch } from '../../policy/branch.ts';
import { empty, ident, join, raw, type Sql, sql, tested, typedLiteral } from '../../sql.ts';

export interface RowSource {
  /** The listed rows, named `t`, for FROM. */
  readonly rows: { where(...conditions: readonly Sql[]): Sql };
  /** The rows come after a position of the order. */
  readonly after: readonly Sql[];
  /** Other conditions that every row meets, besides the branch. */
  readonly conditions: readonly Sql[];
  /** The id of a row. */
  readonly id: Sql;
  readonly length: number;
  readonly descending: boolean;
}

/** The first rows of the order, tested by the whole rule. */
export type FirstIdsWalk = Omit<WalkedRows, 'columns' | 'most' | 'further'>;

/** INVARIANT: the list holds the first `length` ids of the rows that meet the conditions and a branch. */
export function amongFirstIds(
  branches: readonly Branch[],
  source: RowSource,
  walks: readonly FirstIdsWalk[] = [],
): Sql {
  const parts = branches.map((branch) => sql`(${firstIds(branch, source)})`);
  if (walks.length === 0) return sql`${source.id} = ANY(ARRAY(${join(parts, ' UNION ALL ')}))`;
  const most = typedLiteral('int8', source.length);
  return sql`${source.id} = ANY(ARRAY${afterWalks(
    walks.map((walk) => ({ ...walk, columns: [], most })),
    parts,
  )})`;
}

/** The ids of the first walk that finds enough, or else of the parts, in parentheses. */
export const afterWalks = ([first, ...others]: readonly WalkedRows[], parts: readonly Sql[]): Sql =>
  sql`(${walkedIds(first, others.length === 0 ? parts : [afterWalks(others, parts)])})`;

export interface WalkedRows {
  readonly from: Sql;
  /** The column of the ids. */
  readonly key: string;
  /** The rows have one value of a column, which begins the order. */
  readonly isRange: boolean;
  /** The columns that the order names. */
  readonly columns: readonly Sql[];
  readonly order: Sql;
  /** The rows that the walk passes, and the most of these that it takes. */
  readonly rows: number;
  readonly most: Sql;
  /** The most of those that meet the conditions for which the rule looks up related rows; undefined: all. */
  readonly tested: number | undefined;
  /** So many times the rows are passed where those that the walk has taken nearly fill the page; undefined: it ends. */
  readonly further?: number | undefined;
  readonly conditions: readonly Sql[];
  /** It is tested after the conditions. Undefined: they have it. */
  readonly rule: Permit | undefined;
}

/** No condition for a permit of every record. */
export const conditionOf = (permit: Permit): readonly Sql[] => (permit.verdict === 'allow' ? [] : [permit.where('t')]);

/** Keys by which rows are found if there are not more than so many. */
export interface BoundedKeys {
  readonly list: Sql;
  readonly most: number;
}

/**
 * A SELECT of ids.
 *
 * @param walk undefined: no walk
 * @param parts SELECTs of ids, which are read only if the walk has not found enough
 * @param keys the first part finds its rows by these; where they are too many, the second part is read in its place
 */
export function walkedIds(walk: WalkedRows | undefined, parts: readonly Sql[], keys?: BoundedKeys): Sql {
  const lists: Sql[] = [];
  const read: Sql[] = [];
  const conditions: Sql[] = [];
  if (walk !== undefined) {
    const key = ident(walk.key);
    const isShort = (name: string): Sql => sql`(SELECT count(*) FROM ${ident(name)}) < ${walk.most}`;
    lists.push(sql`"walked" AS MATERIALIZED (${walkedRows(walk)})`);
    read.push(sql`SELECT ${key} AS id FROM "walked"`);
    conditions.push(isShort('walked'));
    if (walk.further !== undefined) {
      lists.push(sql`"further" AS MATERIALIZED (
         SELECT t.* FROM (${walkedRows(furtherWalk(walk, walk.further))}) AS t
          WHERE ${isShort('walked')} AND (SELECT count(*) FROM "walked") >= ${walk.most} * ${NEARLY_FULL})`);
      read.push(sql`SELECT ${key} AS id FROM "further"`);
      conditions.push(isShort('further'));
    }
  }
  if (keys !== undefined)
    lists.push(sql`"keys" (key) AS MATERIALIZED (${keys.list} LIMIT ${typedLiteral('int8', keys.most + 1)})`);
  for (const [i, part] of parts.entries()) {
    const count =
      keys && sql`(SELECT count(*) FROM "keys") ${raw(i === 0 ? '<=' : '>')} ${typedLiteral('int8', keys.most)}`;
    const where = join(count === undefined ? conditions : [...conditions, count], ' AND ');
    read.push(sql`(SELECT "first".id FROM ${part} AS "first" WHERE ${where})`);
  }
  return sql`
    WITH ${join(lists, ', ')}
    ${join(read, ' UNION ALL ')}`;
}

function walkedRows(walk: WalkedRows): Sql {
  const { from, isRange, columns, order, rows, most, tested, conditions, rule } = walk;
  const passed = sql`(
    SELECT ${join([raw('t.*'), ...columns], ', ')}
      FROM ${from}
     ORDER BY ${order}
     LIMIT ${typedLiteral('int8', rows)}) AS t`;
  const permitted = rule === undefined ? [] : conditionOf(rule);
  // The rule looks up related rows for the rows that meet the rest: PostgreSQL might begin with it. A range would lose its
  // order, where one of the conditions tests for its value.
  const isLast = !isRange && rule !== undefined && rule.lookUps.length > 0 && conditions.length > 0;
  const few = tested === undefined ? raw('OFFSET 0') : sql`LIMIT ${typedLiteral('int8', tested)}`;
  const found = isLast
    ? sql`(SELECT t.* FROM ${passed} WHERE ${join(conditions, ' AND ')} ORDER BY ${order} ${few}) AS t`
    : passed;
  const tests = isLast ? permitted : [...conditions, ...permitted];
  const where = tests.length === 0 ? empty : sql` WHERE ${join(tests, ' AND ')}`;
  return sql`
         SELECT t.*
           FROM ${found}${where}
          ORDER BY ${order}
          LIMIT ${most}`;
}

/** The share of a page in the rows of a walk of which others are expected soon. */
const NEARLY_FULL = typedLiteral('float8', 0.4);

const furtherWalk = (walk: WalkedRows, times: number): WalkedRows => ({
  ...walk,
  rows: walk.rows * times,
  tested: walk.tested && walk.tested * times,
});

function firstIds(branch: Branch, source: RowSource): Sql {
  const { column, isId, keys, where, range: oneRange } = branch;
  const rest = where === undefined ? [] : [where];
  const { length } = source;
  if (keys === undefined)
    return range({ of: [present(oneRange, 'the range of a branch')], rest, column, isId }, source, length);
  // A key that is an id has one record, so in the order of the keys the first are enough.
  const order = raw(source.descending ? ' DESC' : '');
  const isOfKey = isId ? sql`${source.id} = k.key` : sql`t.${ident(column)} BETWEEN k.key AND k.key`;
  // PostgreSQL 15 takes the rows of one worker for those of all, where a DISTINCT has a parallel plan.
  return sql`
    SELECT b.id
      FROM (SELECT key FROM (${keys}) AS k (key) GROUP BY key${isId ? sql` ORDER BY key${order}` : empty}) AS k
     CROSS JOIN LATERAL (${range({ of: [isOfKey], rest, column, isId }, source, isId ? 1 : length)}) AS b${
       isId ? sql` ORDER BY k.key${order} LIMIT ${typedLiteral('int8', length)}` : empty
     }`;
}

interface IdRange {
  /** The conditions that bound it. */
  readonly of: readonly Sql[];
  readonly rest: readonly Sql[];
  readonly column: string;
  readonly isId: boolean;
}

/** All rows have one value of the column, so they come in the order of the ids: no index but that on (column, id) has it. */
function range(
  { of, rest, column, isId }: IdRange,
  { rows, after, conditions, descending, id }: RowSource,
  length: number,
): Sql {
  const direction = raw(descending ? ' DESC' : '');
  const first = isId ? empty : sql`t.${ident(column)}${direction}, `;
  return sql`
    SELECT ${id} AS id
      FROM ${rows.where(...of, ...after, ...[...rest, ...conditions].map(tested))}
     ORDER BY ${first}${id}${direction}
     LIMIT ${typedLiteral('int8', length)}`;
}
