/** Indexed branches of a list rule, for the page planner. */
import type { Sql } from '../sql.ts';

/**
 * Part of a condition that is an `or`: records that ranges of an index on (`column`, `id`) hold,
 * each in the order of their ids.
 */
export interface Branch {
  readonly column: string;
  /** The branch has one value of `column`. Otherwise each of the `keys` has a range. */
  readonly isOneRange: boolean;
  /** Unless it is one range: the values of `column`, a SELECT of one column. */
  readonly keys: Sql | undefined;
  /** The rest of the condition on the row `alias`, if any; the whole condition if the branch is one range. */
  readonly where: Sql | undefined;
  /** The conjuncts that compare a column with values, to estimate the number of records. */
  readonly tests: readonly ColumnValues[];
  /** The number of other conjuncts. */
  readonly others: number;
  /** The possible number of keys; not given if it is unknown. */
  readonly count: KeyCount | undefined;
  /** The same records found in another way, by keys where this is one range. */
  readonly instead: Branch | undefined;
}
export interface ColumnValues {
  readonly column: string;
  readonly values: readonly unknown[];
}
export type KeyCount =
  | { readonly kind: 'list'; readonly count: number }
  | ({ readonly kind: 'rows'; readonly table: string } & ColumnValues);
