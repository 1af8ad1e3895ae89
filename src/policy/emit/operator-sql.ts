/** The meaning of the operators in SQL. Apart from their table, which pages have without SQL. */
import type { CompareOp } from '../../../grammar/syntax.ts';
import { invariant } from '../../invariant.ts';
import { join, raw, type Sql, type SqlType, sql } from '../../sql.ts';
import type { ConditionOperand } from '../condition.ts';
import { foldedColumn } from '../fold.ts';
import { elementOf, isText, scalarOf } from '../scalar-types.ts';
import { boxAround, circleOf } from '../scalars/places.ts';
import { ofHaversine } from './distance.ts';

/**
 * The two sides of a test as SQL. `render` prints a side, `successor` the least string above
 * all strings that start with a value.
 */
interface SqlSides {
  readonly left: ConditionOperand;
  readonly right: ConditionOperand;
  readonly negated: boolean;
  render(operand: ConditionOperand): Sql;
  successor(operand: ConditionOperand): Sql | undefined;
  /** A value that follows from a side that the text states. */
  literal(type: SqlType, value: number): Sql;
  /** The LIKE pattern for the texts that contain the folded operand. */
  pattern(operand: ConditionOperand): Sql;
}

// Explicit on an ordering: the statement then means the same under every default collation, and an
// index on a "C" column still serves it.
const CODE_POINTS = raw(' COLLATE "C"');

function infix(symbol: string, { left, right, render }: SqlSides): Sql {
  return join([render(left), render(right)], ` ${symbol} `);
}

function boolean(sides: SqlSides, wanted: boolean): Sql | undefined {
  const { left, right, render } = sides;
  if (right.kind !== 'literal' || typeof right.value !== 'boolean') return undefined;
  // A boolean index matches only the bare column.
  return right.value === wanted ? render(left) : sql`NOT ${render(left)}`;
}

const orderingSql =
  (symbol: string) =>
  (sides: SqlSides): Sql =>
    isText(sides.left.type) ? sql`${infix(symbol, sides)}${CODE_POINTS}` : infix(symbol, sides);

/** PostgreSQL has no equality of points, but one of their texts. */
const equalitySql =
  (symbol: string) =>
  (sides: SqlSides): Sql =>
    sides.left.type === 'point'
      ? infix(symbol, { ...sides, render: (operand) => sql`${sides.render(operand)}::text` })
      : infix(symbol, sides);

export const OPERATOR_SQL: Readonly<Record<CompareOp, (sides: SqlSides) => Sql>> = {
  '=': (sides) => boolean(sides, true) ?? equalitySql('=')(sides),
  '!=': (sides) => boolean(sides, false) ?? equalitySql('<>')(sides),
  '<': orderingSql('<'),
  '<=': orderingSql('<='),
  '>': orderingSql('>'),
  '>=': orderingSql('>='),
  in: ({ left, right, render }) => sql`${render(left)} = ANY(${render(right)})`,
  'not in': ({ left, right, render }) => sql`${render(left)} <> ALL(${render(right)})`,
  // Not LIKE, which would read wildcards in the value.
  contains: (sides) => listContains(sides) ?? strpos(sides),
  'starts with': startsWith,
  'ends with': ({ left, right, negated, render }) =>
    sql`right(${render(left)}, char_length(${render(right)})) ${raw(negated ? '<>' : '=')} ${render(right)}`,
  matches: ({ left, right, negated, render, pattern }) => {
    invariant(left.kind === 'column', 'matches looks in a field');
    const copy = render({ ...left, column: foldedColumn(left.column) });
    return sql`${copy} ${raw(negated ? 'NOT LIKE' : 'LIKE')} ${pattern(right)}`;
  },
  within: placeWithin,
};

const not = (negated: boolean, condition: Sql): Sql => (negated ? sql`NOT ${condition}` : condition);

const strpos = ({ left, right, negated, render }: SqlSides): Sql =>
  sql`strpos(${render(left)}, ${render(right)}) ${raw(negated ? '= 0' : '> 0')}`;

/** An index of a list field finds the lists that hold a value. NULLs in the array of another program hold for nothing. */
function listContains({ left, right, negated, render }: SqlSides): Sql | undefined {
  const element = elementOf(left.type);
  if (element === undefined) return undefined;
  const value = render(right);
  const held = sql`(${render(left)} @> ARRAY[${value}]::${raw(scalarOf(element).sqlType)}[])`;
  // An array with a NULL is in no array, which would be known.
  return negated && right.kind === 'column' ? sql`(NOT ${held} AND ${value} IS NOT NULL)` : not(negated, held);
}

/**
 * Sargable: a range of the "C" order, which holds exactly the strings with that prefix, rechecked
 * by the function.
 */
function startsWith({ left, right, negated, render, successor }: SqlSides): Sql {
  const test = sql`starts_with(${render(left)}, ${render(right)})`;
  if (negated || left.kind !== 'column' || right.kind === 'column') return not(negated, test);
  const low = sql`${render(left)} >= ${render(right)}${CODE_POINTS}`;
  const above = successor(right);
  const high = above && sql`${render(left)} < ${above}${CODE_POINTS}`;
  return sql`(${join(high ? [low, high, test] : [low, test], ' AND ')})`;
}

/** As `isWithin`. An index finds the places of a box around the circle. */
function placeWithin({ left, right, negated, render, literal }: SqlSides): Sql {
  invariant(right.kind === 'literal', 'the circle is in the text');
  const circle = circleOf(String(right.value));
  const number = (value: number): Sql => literal('float8', value);
  const point = sql`(${render(left)})`;
  const centre = { lat: number(circle.lat), lng: number(circle.lng), cosine: number(circle.cosine) };
  const test = ofHaversine(point, centre, {
    of: (haversine) => sql`${haversine} <= ${number(circle.most)}`,
    beyond: raw('FALSE'),
  });
  if (negated) return sql`NOT ${test}`;
  const [west, south, east, north] = boxAround(circle).map(number) as [Sql, Sql, Sql, Sql];
  return sql`(${point} <@ box(point(${west}, ${south}), point(${east}, ${north})) AND ${test})`;
}
