/** A statement of a migration, and how it has to be run. */
import type { LosableValues } from './loss.ts';
import type { Filling } from './search-columns.ts';

export interface Step {
  readonly sql: string;
  /** Why this loses data, or may not succeed. */
  readonly destructive?: string;
  /** No rows that are there allow it; `destructive` has the query that finds them. */
  readonly isImpossible?: boolean;
  /** It drops what the schema does not know, and which harms nobody who serves the schema. */
  readonly isExtra?: boolean;
  /** What it drops or converts; not given where rows that exist stand against it. */
  readonly values?: LosableValues;
  /** Why nobody can use a table while this runs, for as long as its size makes it. */
  readonly rewrites?: string;
  /** Follows the statement; where that is run in pages, precedes it. */
  readonly filling?: Filling;
  /**
   * Runs after the steps without it, which are one transaction: in a transaction of its own, outside
   * of any, or once for each page of a table. What it has done stays if a later step fails.
   */
  readonly apart?: 'transaction' | 'statement' | Pages;
  /** What to do if rows that were written meanwhile do not allow it. */
  readonly onBrokenRow?: BrokenRow;
}

/** `sql` ends in a condition, to which a range of ids is added. */
interface Pages {
  readonly pagesOf: string;
}

interface BrokenRow {
  readonly why: string;
  /** Removes what would hold up writers or the next try. */
  readonly undo: Pick<Step, 'sql' | 'apart'>;
}
