/** A list rule in parts, each of which an index serves: what those who plan the pages of lists are told of it. */
import type { Sql } from '../sql.ts';

/**
 * Part of a condition that is an `or`: records that ranges of an index on (`column`, `id`) hold, each in the order of their ids.
 */
export interface Branch {
  readonly column: string;
  /** One value of `column`. Otherwise each of the `keys` has a range. */
  readonly isOneRange: boolean;
  /** Unless it is one range: the values of `column`, a SELECT of one column. */
  readonly keys: Sql | undefined;
  /** What else must hold of the row `alias`, if anything; of one range, all that must. */
  readonly where: Sql | undefined;
  /** Of the conjuncts, those that compare a column with values: for estimates of how many records there are. */
  readonly tests: readonly ColumnValues[];
  /** How many conjuncts say something else. */
  readonly others: number;
  /** How many keys there may be; unknown without it. */
  readonly count: KeyCount | undefined;
  /** The same records in another way, by keys where this is one range. */
  readonly instead: Branch | undefined;
}
export interface ColumnValues {
  readonly column: string;
  readonly values: readonly unknown[];
}
export type KeyCount =
  | { readonly kind: 'list'; readonly count: number }
  | ({ readonly kind: 'rows'; readonly table: string } & ColumnValues);
