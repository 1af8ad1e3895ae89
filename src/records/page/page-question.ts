/** The question of a page to its planner, and the ways that answer it. */
import type { Branch, ColumnValues, LookUp, RelatedKeys } from '../../policy/branch.ts';
import type { Opacity, RelatedRows } from '../../policy/filters/filter-plans.ts';
import type { Collection } from '../../schema/model/model.ts';
import type { IsIndexed } from './row-shares.ts';

/** A way to find a page. Undefined: the plain condition, in the order of the page. */
export type ChosenWay =
  /** The first ids of each branch. */
  | ({ readonly kind: 'branches'; readonly branches: readonly Branch[] } & AfterWalk)
  | ValueRange
  /** All rows that match are found first. */
  | Gathered
  | undefined;

/** Chooses among the ways of a question. */
export type ChoosesWay = (question: PageQuestion) => ChosenWay;

/** All rows have one value of a column, by the only branch of the rule or by a filter. */
export interface ValueRange {
  readonly kind: 'range';
  readonly of: Branch | ColumnValues;
}
interface AfterWalk {
  /** Only if a walk of so many rows does not fill the page. */
  readonly walk?: number | undefined;
  /** The walk is in the range of one value, which has the order of the page too. */
  readonly within?: ValueRange['of'] | undefined;
  /** The rule is tested for so many rows that meet the filters; undefined: for all that the walk passes. */
  readonly tested?: number | undefined;
  /** The walk is among the rows that come first in the order. */
  readonly first?: FirstValues | undefined;
  /** The rows of a longer walk after it, whose related tables PostgreSQL may read as a whole: they are small beside look-ups. */
  readonly longWalk?: number | undefined;
}
/** The first values of the column of an order: all up to one of them. */
export interface FirstValues {
  /** As PostgreSQL prints it. */
  readonly upTo: string;
  /** No other value is expected. */
  readonly isAlone: boolean;
}
export interface Gathered extends AfterWalk {
  readonly kind: 'gathered';
  /** The filters find the rows, or the related rows of a filter that is a relation test; or filters and rule together. */
  readonly by: 'filters' | 'keys' | 'all';
  /**
   * The most keys; where there are more, the rows are found as without them. The keys are those of the rule, unless the way
   * is by the keys of a filter.
   */
  readonly keys?: number | undefined;
  /** The rows of the filters are few, and in order before the rule looks up related rows: the first that fill the page end it. */
  readonly isOrdered?: true;
}

export interface ColumnOrder {
  readonly column: string;
  readonly descending: boolean;
  /** The index has the whole order, not that of the column alone. */
  readonly isWhole: boolean;
  /** It has that of the rows of one value. */
  readonly isThenById: boolean;
  /** The page begins with the first value. */
  readonly isFirstPage: boolean;
  /** The value of the last row before the page, as PostgreSQL prints it. */
  readonly after?: string | undefined;
}

export interface PageQuestion {
  readonly table: string;
  readonly collection: Pick<Collection, 'key'>;
  /** The branches of the list rule; undefined if it has none, or the page has another order. */
  readonly branches: readonly Branch[] | undefined;
  /** The branches where the page has another order. */
  readonly unordered?: readonly Branch[] | undefined;
  /** Exact filters of the record's own columns: each row must have these values. */
  readonly filters: readonly ColumnValues[];
  /** Each row must have one of these links, by which the page may be found too. */
  readonly links?: (ColumnValues & { readonly table: string }) | undefined;
  /** The rows that the filter of a query finds, where the values of columns do not tell. */
  readonly opaque?: OpaqueFilter | undefined;
  /** Columns that an index begins with. */
  readonly indexed: ReadonlySet<string>;
  /** The same for all tables. Default: an index begins with each column. */
  readonly isIndexed?: IsIndexed | undefined;
  /** Rows up to the end of the page. */
  readonly most: number;
  /** The page is in the order of the ids. */
  readonly isById: boolean;
  /** The page is in the order of this column, which has an index. */
  readonly order?: ColumnOrder | undefined;
  /** The rule looks up these related rows of each record. */
  readonly lookUps: readonly LookUp[];
  /** The look-ups that no list of keys replaces in a statement that reads all records. Default: all. */
  readonly unlisted?: readonly LookUp[] | undefined;
  /** The keys that related rows of the rule give, in an unknown number. */
  readonly relatedKeys?: RelatedKeys | undefined;
  /** The branches of the records that the rule permits without these keys; undefined: some have no index. */
  readonly besideKeys?: readonly Branch[] | undefined;
  /** The rule permits every record. */
  readonly isOpen: boolean;
}

/** The database's expectations of a condition. */
export interface ExpectedRows {
  readonly rows: number;
  /** The time that it takes to find them, in the database's own unit. */
  readonly cost: number;
  /** The tables that it reads as a whole. */
  readonly scanned?: readonly string[];
  /** The cost to read the related rows once, where the database would keep them all in memory. */
  readonly hashed?: number | undefined;
  /** The cost for each record of the related rows that the database would look up beside. */
  readonly looped?: number | undefined;
  /** The records for which the database would look up rows one by one, and the cost of each. */
  readonly lookedUp?: { readonly rows: number; readonly cost: number } | undefined;
}
export interface OpaqueFilter extends ExpectedRows {
  readonly kind: Opacity;
  /** It looks up these related rows of each record. */
  readonly lookUps: readonly LookUp[];
  /** The filter has short lists of keys in place of all look-ups, or would have a long one in place of some. */
  readonly lists?: 'short' | 'long' | undefined;
  /** A test that depends on no record decides whether a part of it finds as many rows as expected, or none. */
  readonly isAllOrNone?: boolean | undefined;
  /** The rows that the list rule permits, too. */
  readonly all: ExpectedRows;
}

/** How a statement that reads all records finds the related rows of its filter. */
export const relatedRowsOf = (lists: OpaqueFilter['lists']): RelatedRows | undefined =>
  lists === 'long' ? 'as planned' : undefined;
