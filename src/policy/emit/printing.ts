/** The input of the printer of conditions, and the parts that it prints. */
import type { Sql } from '../../sql.ts';
import type { ColumnRef, Condition, Exists, Test } from '../condition.ts';
import type { Visibility } from '../visibility.ts';

export interface Printing {
  /** The name of the record's row in the statement. */
  readonly alias: string;
  /** The name of the resulting record's row, for a condition that reads `@next`. */
  readonly next?: string | undefined;
  /** The statement names the tenant of the record as a value, where rows are divided by tenant. */
  readonly hasTenant?: boolean;
  /** The condition will be placed under an `or`. */
  readonly inUnion: boolean;
  /** Given for a filter, whose literals come from the request: see `FILTER_PLACES`. */
  readonly visibility?: Visibility;
  /** Given for a filter: a condition for every nested loop, which fails once the statement has had its time. */
  readonly inTime?: Sql | undefined;
  /** More that holds of each row, and is printed elsewhere. */
  readonly beside?: Condition | undefined;
  /**
   * A test for equality that is printed as `column BETWEEN value AND value`. The equality would make the order by the
   * column and the id equal to the order by the id, so that PostgreSQL might walk another index in search of the value.
   */
  readonly range?: Test | undefined;
  /** A relation test of the condition: its list of keys, or the condition with a test that a row has one of the list `keys`. */
  readonly keyed?: { readonly test: Exists; readonly part: 'list' | 'test' } | undefined;
  /**
   * The relation tests that are printed as lists of keys, of those that can be. The others look up the related rows of
   * each row. Default: all.
   */
  readonly listed?: ReadonlySet<Exists> | undefined;
  /** It is asked of rows that another condition finds: their columns are compared with a list of keys by a hash. */
  readonly isOfFound?: boolean;
  /**
   * The lists of keys with which a row is compared by a hash, where all rows of a table are read: then the others do as
   * PostgreSQL chooses. Undefined: the others look up.
   */
  readonly hashed?: ReadonlySet<Exists> | undefined;
}

/** The rows outside whose `column` is one of the `keys`, a SELECT of one column. */
export interface Keys {
  /** `column` names it in the statement. */
  readonly of: ColumnRef;
  readonly column: Sql;
  readonly keys: Sql;
}

/** The rows that an `exists` ranges over. */
export interface FoundRows {
  readonly from: Sql;
  /** Equals the key. */
  readonly link: Sql;
  /** Given for rows that are divided by tenant. */
  readonly tenant: Sql | undefined;
}

/** How the columns of a bound row are named. */
export type Naming = (column: string) => Sql;
