/**
 * The order of a page: the keys that it sorts by, as columns of the row or of the readable record that to-one
 * relations lead to, and keyset pagination, the condition that a row comes after a position in that order. Nulls
 * are last in both directions. The first key bounds the condition by itself, so that an index on it begins where
 * the page does. `windowOf` limits how many rows of the order a statement takes.
 */
import type { Cells } from '../../database/contract.ts';
import { present } from '../../invariant.ts';
import type { Facts } from '../../policy/column-facts.ts';
import { ofHaversine } from '../../policy/emit/distance.ts';
import type { SortPath } from '../../policy/filters/sort-path.ts';
import { foldedColumn } from '../../policy/fold.ts';
import { RADIANS } from '../../policy/scalars/places.ts';
import { ident, join, param, raw, type Sql, type SqlType, sql, typedLiteral } from '../../sql.ts';
import type { AccessContext, Store } from '../access-context.ts';
import type { Position } from './cursor.ts';
import { byCodePoint, columnOnPath, maskOf, memberOf, type SeenRow, sqlTypeOf } from './path-column.ts';

/** A cell for each key, or a place for it. */
type BoundValues = readonly unknown[];

interface KeysetColumn {
  readonly sql: Sql;
  readonly type: SqlType;
  readonly nullable: boolean;
  readonly descending: boolean;
  /** A column of the row itself that an index is on. */
  readonly isIndexed: boolean;
}

/**
 * The rows with a value of the first key, and those without: each is one range of an index, as both
 * together are not.
 */
interface Halves {
  readonly column: Sql;
  /** The place of its cell in a position. */
  readonly at: number;
  readonly present: Keyset;
  readonly absent: Keyset;
}

/** INVARIANT: the last keys are those of an id, which no two rows share and no row lacks. */
export class Keyset {
  readonly #keys: readonly KeysetColumn[];
  /** The keys before it are equal in all rows. */
  readonly #from: number;
  /** The only key that is left, where the order is that of the ids. */
  readonly byId: KeysetColumn | undefined;
  /** The columns of a SELECT before those of the record. The id alone is the first cell of every record. */
  readonly columns: readonly Sql[];
  /** Names the columns, so that a statement around the SELECT keeps the order. */
  readonly order: Sql;

  constructor(keys: readonly KeysetColumn[], from = 0, order?: Sql) {
    this.#keys = keys;
    this.#from = from;
    this.byId = keys.length - from === 1 ? keys[from] : undefined;
    this.columns = keys.length > 1 ? keys.map((key, i) => sql`${key.sql} AS ${raw(keyAlias(i))}`) : [];
    const names = keys.map((key, i) => `${keyAlias(i)}${directionOf(key)}`);
    this.order =
      order ??
      (this.byId === undefined
        ? raw(names.slice(from).join(', '))
        : sql`${this.byId.sql}${raw(directionOf(this.byId))}`);
  }

  /** The position of a row that begins with the columns. */
  positionOf(cells: Cells): Position {
    return cells.slice(0, this.#keys.length);
  }

  /** Only where the first key is indexed and can be null. */
  get halves(): Halves | undefined {
    const at = this.#from;
    const first = this.#keys[at]!;
    if (!first.isIndexed || !first.nullable) return undefined;
    const present = new Keyset(this.#keys.with(at, { ...first, nullable: false }), at);
    return { column: first.sql, at, present, absent: new Keyset(this.#keys, at + 1) };
  }

  /** The same order of rows that have one value of the column: no other index has it than that on the column and the id. */
  within(column: string): Keyset {
    const { byId } = this;
    if (byId === undefined || byId.sql.text === ident('t', column).text) return this;
    const order = sql`t.${ident(column)}${raw(directionOf(byId))}, ${this.order}`;
    return new Keyset(this.#keys, this.#from, order);
  }

  /** @param position the cells, or places for them; null where the row has no value */
  after(position: BoundValues): Sql {
    const keys = this.#keys.slice(this.#from);
    const first = keys[0]!;
    const value = position[this.#from] ?? null;
    if (isRowComparison(keys)) return this.#rowAfter(keys, position.slice(this.#from));
    if (first.nullable || value === null) return this.#after(position, this.#from);
    const bound = sql`${first.sql} ${raw(first.descending ? '<=' : '>=')} ${param(first.type, value)}`;
    return sql`${bound} AND ${this.#after(position, this.#from)}`;
  }

  /** The rows whose first key is not beyond a value. */
  upTo(value: unknown): Sql {
    const { sql: column, type, descending } = this.#keys[this.#from]!;
    return sql`${column} ${raw(descending ? '>=' : '<=')} ${param(type, value)}`;
  }

  /** The same, where few rows come before those with this value, which an index on the first key and the next one has in their order. */
  upToAlone(value: unknown): readonly { readonly condition: Sql; readonly order: Sql }[] {
    const [first, next] = this.#keys.slice(this.#from);
    const { sql: column, type, descending } = first!;
    const bound = param(type, value);
    const order = (direction: string): Sql => sql`${column}${raw(direction)}, ${next!.sql}${raw(directionOf(next!))}`;
    return [
      { condition: sql`${column} ${raw(descending ? '>' : '<')} ${bound}`, order: order(directionOf(first!)) },
      { condition: sql`${column} BETWEEN ${bound} AND ${bound}`, order: order(directionOf(next!)) },
    ];
  }

  /** `(a, id) > ($1, $2)`: one range of an index on both. */
  #rowAfter(keys: readonly KeysetColumn[], position: BoundValues): Sql {
    const columns = keys.map((key) => key.sql);
    const values = keys.map(({ type }, i) => sql`${param(type, position[i])}`);
    const beyond = raw(keys[0]!.descending ? '<' : '>');
    return sql`(${join(columns, ', ')}) ${beyond} (${join(values, ', ')})`;
  }

  #after(position: BoundValues, i: number): Sql {
    const { sql: column, type, nullable, descending } = this.#keys[i]!;
    const value = position[i] ?? null;
    const isLast = i === this.#keys.length - 1;
    if (value === null) return isLast ? raw('FALSE') : sql`(${column} IS NULL AND ${this.#after(position, i + 1)})`;
    const beyond = sql`${column} ${raw(descending ? '<' : '>')} ${param(type, value)}`;
    const ways = [beyond];
    if (nullable) ways.push(sql`${column} IS NULL`);
    if (!isLast) ways.push(sql`(${column} = ${param(type, value)} AND ${this.#after(position, i + 1)})`);
    return ways.length === 1 ? beyond : sql`(${join(ways, ' OR ')})`;
  }
}

const isRowComparison = (keys: readonly KeysetColumn[]): boolean =>
  keys.every(({ nullable, descending }) => !nullable && descending === keys[0]!.descending);

/** INVARIANT: no column of a table has such a name. */
const keyAlias = (i: number): string => `"_k${i}"`;

/**
 * Ascending order has nulls last by itself. An index read backwards has them first, so they are
 * named only where there are some.
 */
function directionOf({ descending, nullable }: KeysetColumn): string {
  if (!descending) return '';
  return nullable ? ' DESC NULLS LAST' : ' DESC';
}

// ---------------------------------------------------------------- the keys that a request sorts by

export interface Sorting {
  readonly path: SortPath;
  readonly descending: boolean;
}

/** Values of the place that a key measures from. Default: those of the sort itself. */
export type CentreValues = (key: number) => { readonly lat: unknown; readonly lng: unknown; readonly cosine: unknown };

export function centreOf({ path: { from } }: Sorting) {
  const { lat, lng } = present(from, 'a place to measure from');
  return { lat, lng, cosine: Math.cos(lat * RADIANS) };
}

/**
 * Ends with the id, which breaks ties; what comes after it would settle nothing.
 * @param settled the first sorts of which all rows have one value
 */
export function keysetOf(
  sorts: readonly Sorting[],
  row: SeenRow,
  settled = 0,
  centre: CentreValues = (i) => centreOf(sorts[i]!),
): Keyset {
  const at = sorts.findIndex(isById);
  const keys = (at < 0 ? sorts : sorts.slice(0, at)).flatMap((sorting, i) => sortKeys(sorting, row, () => centre(i)));
  return new Keyset([...keys, ...idKeys(row, at >= 0 && sorts[at]!.descending)], settled);
}

/** The first sorts that order nothing, because all rows have the values of the facts, and none hides the member. */
export function settledSorts(sorts: readonly Sorting[], facts: Facts, isHidden: (member: string) => boolean): number {
  const isOpen = ({ path: { steps, field } }: Sorting): boolean =>
    steps.length > 0 || field === undefined || !Object.hasOwn(facts, field.name) || isHidden(memberOf(field));
  const first = sorts.findIndex(isOpen);
  return first < 0 ? sorts.length : first;
}

export const isById = ({ path }: Sorting): boolean => path.steps.length === 0 && path.field === undefined;

const idKeys = (
  { alias, scope, collection }: Pick<SeenRow, 'alias' | 'scope' | 'collection'>,
  descending: boolean,
): readonly KeysetColumn[] =>
  scope.key(collection).ordered.map(({ column, type }) => ({
    sql: ident(alias, column),
    type,
    nullable: false,
    descending,
    isIndexed: true,
  }));

/** The id of a related record is in the order of each of its columns. */
function sortKeys(sorting: Sorting, row: SeenRow, centre: () => ReturnType<CentreValues>): readonly KeysetColumn[] {
  const { path, descending } = sorting;
  if (path.field !== undefined) return [sortKey(sorting, row, centre)];
  return row.scope.key(path.at).ordered.map((keyColumn) => {
    const value = columnOnPath({ ...path, keyColumn }, row);
    return { sql: value, type: keyColumn.type, nullable: true, descending, isIndexed: false };
  });
}

function sortKey({ path, descending }: Sorting, row: SeenRow, centre: () => ReturnType<CentreValues>): KeysetColumn {
  const { steps, field, isFolded } = path;
  if (path.from !== undefined) {
    const { lat, lng, cosine } = centre();
    const [y, x, z] = [lat, lng, cosine].map((value) => sql`${param('float8', value)}`) as [Sql, Sql, Sql];
    const distance = ofHaversine(columnOnPath(path, row), { lat: y, lng: x, cosine: z }, { beyond: raw('NULL') });
    return { sql: distance, type: 'float8', nullable: true, descending, isIndexed: false };
  }
  const own = steps.length === 0 && field !== undefined;
  const mask = own ? maskOf(row, row.collection, memberOf(field)) : undefined;
  const read = isFolded ? { ...path, field: { ...field!, column: foldedColumn(field!.column) } } : path;
  return {
    sql: byCodePoint(columnOnPath(read, row), field),
    type: sqlTypeOf(path, row),
    nullable: !own || !field.required || mask !== undefined,
    descending,
    isIndexed: own && mask === undefined && !isFolded && (field.index || field.unique),
  };
}

// ---------------------------------------------------------------- the number of rows

const USUAL_LIMITS = new Set([10, 20, 25, 50, 100].flatMap((limit) => [limit, limit + 1]));

/**
 * PostgreSQL plans anew for every request where it does not know how few rows are wanted, so the
 * usual page sizes are part of the text, with the one row more that shows whether there is a next
 * page.
 */
export const mostOf = (rows: number, place: unknown = rows): Sql =>
  USUAL_LIMITS.has(rows) ? typedLiteral('int8', rows) : sql`${param('int8', place)}`;

/** The part of a text that a number of rows decides. */
export const textOfMost = (rows: number): string => (USUAL_LIMITS.has(rows) ? `${rows}` : '?');

/** A number of rows of the request that a form is made for, and its place in the form. */
export interface PlacedRows {
  readonly rows: number;
  readonly place: unknown;
}

export const windowOf = (most: PlacedRows, offset: PlacedRows): Sql =>
  offset.rows === 0
    ? sql`LIMIT ${mostOf(most.rows, most.place)}`
    : sql`LIMIT ${mostOf(most.rows, most.place)} OFFSET ${param('int8', offset.place)}`;

/** Pages of any size share a text: the rows are found by their ids. */
export const anyWindowOf = (most: PlacedRows, offset: PlacedRows): Sql =>
  sql`LIMIT ${param('int8', most.place)} OFFSET ${param('int8', offset.place)}`;

/** An index has the column and the id, in one direction. */
export function columnOrderOf({ path, descending }: Sorting, [, second]: readonly Sorting[]) {
  const isThenById = second === undefined || isById(second);
  const isWhole = isThenById && (second?.descending ?? false) === descending;
  return { column: path.field!.column, descending, isWhole, isThenById };
}

/** An index has the order. The caller's rules may hide values of a field, of which no index knows. */
export function isInOrderOfIndex(
  { pages }: Store,
  { collection, member }: AccessContext,
  [first]: readonly Sorting[],
): boolean {
  if (first === undefined || isById(first)) return true;
  const { steps, field, isFolded, from } = first.path;
  const isOfValues = field !== undefined && isFolded === undefined && from === undefined;
  if (steps.length > 0 || !isOfValues || !pages.indexedOf(collection).has(field.column)) return false;
  return (member(collection.name, field.name, 'read')?.verdict ?? 'allow') === 'allow';
}
