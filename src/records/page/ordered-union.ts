/**
 * The first ids of every branch, from which the first ids of all are taken. Branches may have records in common: the page
 * looks its ids up as a list, in which each counts once.
 */
import type { Branch } from '../../policy/branch.ts';
import { empty, ident, join, raw, type Sql, sql, typedLiteral } from '../../sql.ts';

export interface RowSource {
  /** The listed rows, named `t`, for FROM. */
  readonly rows: { where(...conditions: readonly Sql[]): Sql };
  /** What must hold of every row, besides the branch. */
  readonly conditions: readonly Sql[];
  /** Rows up to the end of the page. */
  readonly most: number;
  readonly descending: boolean;
}

/** INVARIANT: whatever row of the first `most` by id meets the conditions and a branch has its id in the list. */
export function amongFirstIds(branches: readonly Branch[], source: RowSource): Sql {
  const parts = branches.map((branch) => sql`(${firstIds(branch, source)})`);
  return sql`t.id = ANY(ARRAY(${join(parts, ' UNION ALL ')}))`;
}

function firstIds(branch: Branch, source: RowSource): Sql {
  const { column, keys, where, isOneRange } = branch;
  const rest = where === undefined ? [] : [where];
  const length = roundedUp(source.most);
  if (isOneRange || keys === undefined) return range(rest, source, length);
  // A key that is an id has one record, so in the order of the keys the first are enough.
  const isId = column === 'id';
  const order = raw(source.descending ? ' DESC' : '');
  return sql`
    SELECT b.id
      FROM (SELECT DISTINCT key FROM (${keys}) AS k (key)${isId ? sql` ORDER BY key${order}` : empty}) AS k
     CROSS JOIN LATERAL (${range([sql`t.${ident(column)} = k.key`, ...rest], source, isId ? 1 : length)}) AS b${
       isId ? sql` ORDER BY k.key${order} LIMIT ${typedLiteral('int8', length)}` : empty
     }`;
}

function range(branch: readonly Sql[], { rows, conditions, descending }: RowSource, length: number): Sql {
  return sql`
    SELECT t.id
      FROM ${rows.where(...branch, ...conditions)}
     ORDER BY t.id${raw(descending ? ' DESC' : '')}
     LIMIT ${typedLiteral('int8', length)}`;
}

/** Few lengths, so that statements are few: a longer range has the same first ids. Those of the first usual pages are exact. */
const LENGTHS = [11, 21, 41, 61, 81, 101, 151, 201, 301, 501, 1_001, 2_001, 5_001, 10_001];

const roundedUp = (rows: number): number => LENGTHS.find((length) => length >= rows) ?? rows;
