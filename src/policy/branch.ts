/** Indexed branches of a list rule, and the sizes of its lists of keys, for the page planner. */
import type { Sql } from '../sql.ts';

/**
 * Part of a condition that is an `or`: records that ranges of an index on (`column`, `id`) hold,
 * each in the order of their ids.
 */
export interface Branch {
  readonly column: string;
  /** The column is that of the ids. */
  readonly isId: boolean;
  /** Among the alternatives; 0: the first. */
  readonly place: number;
  /** The branch has one value of `column`. Otherwise each of the `keys` has a range. */
  readonly isOneRange: boolean;
  /** Unless it is one range: the values of `column`, a SELECT of one column. */
  readonly keys: Sql | undefined;
  /** If it is one range: the condition on the row `alias` that its column has the value. */
  readonly range: Sql | undefined;
  /** The rest of the condition on the row `alias`, if any. */
  readonly where: Sql | undefined;
  /** The conjuncts that compare a column with values, to estimate the number of records. */
  readonly tests: readonly ColumnValues[];
  /** The number of other conjuncts. */
  readonly others: number;
  /** The possible number of keys; not given if it is unknown. */
  readonly count: KeyCount | undefined;
  /** The same records found by other columns, or by keys. */
  readonly alternatives: readonly Branch[];
}
export interface ColumnValues {
  readonly column: string;
  /** The column is that of the ids. */
  readonly isId?: true;
  readonly values: readonly unknown[];
  /** Each part of an `or` contains the test, which is not a conjunct. */
  readonly isInside?: boolean;
  /** The condition itself states the values, so that they are part of the text. */
  readonly isStated?: boolean;
}
/** The size of a list of keys: of given ones, or of those that rows of a table have. */
export type KeyCount =
  | { readonly kind: 'list'; readonly count: number }
  /**
   * `column`: they have the keys in it. `areIds`: the keys are the ids of these rows. `links`: the rows of this table give them,
   * whose column leads to these rows.
   */
  | {
      readonly kind: 'rows';
      readonly table: string;
      readonly column?: string;
      readonly links?: { readonly table: string; readonly column: string };
      readonly share: RowShare;
      readonly areIds: boolean;
    };
/** The keys that related rows of a condition give, where statistics do not tell how many: there may be none. */
export interface RelatedKeys {
  /** The column of the record that is one of the keys. */
  readonly column: string;
  /** The column is that of the ids. */
  readonly isId: boolean;
  /** The related table, and all others that decide which of its rows count. */
  readonly tables: readonly [string, ...string[]];
  /** Columns of the related table that a row is tested by: an index on one of them may find the few that count. */
  readonly tested: readonly string[];
}
/** The rows of a table with one value of the column, which a condition looks up for a record. */
export interface LookUp {
  readonly table: string;
  readonly column: string;
  /** The column is that of the ids. */
  readonly isId?: true;
  /** The column of the row whose value is looked up; undefined: the value is another row's. */
  readonly by?: string;
  /** The column by which the rows refer to a record of the request, so that one value has all of them. */
  readonly of?: string;
  /** The rows that are looked up for each of them. */
  readonly within: readonly LookUp[];
  /** They depend on more of the record than the key, so that no join finds those of all records. */
  readonly isOfEach?: true;
}
/** The rows of a table that meet a condition, as far as values and keys decide it. */
export type RowShare =
  | ({ readonly kind: 'values' } & ColumnValues)
  /** The rows whose column is one of the keys. */
  | { readonly kind: 'keys'; readonly column: string; readonly keys: KeyCount }
  | { readonly kind: 'any' | 'all'; readonly of: readonly RowShare[] };
