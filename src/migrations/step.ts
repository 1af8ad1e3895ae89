/** A statement of a migration, and how it runs. */
import type { Sql } from '../sql.ts';
import type { FoldedCopy, PagedRows } from './search-columns.ts';
import type { LosableValues } from './value-loss.ts';

export interface Step {
  readonly sql: Sql;
  /** It drops a foreign key of a table that moves: a cluster may have to move the tables at its other end as well. */
  readonly frees?: boolean;
  /** Why this loses data, or may not succeed. */
  readonly destructive?: string;
  /** The existing rows do not allow it; `destructive` has the query that finds them. */
  readonly isImpossible?: boolean;
  /** It drops something that the schema does not have and that does not hinder a node that serves the schema. */
  readonly isExtra?: boolean;
  /** The values that it drops or converts; absent if existing rows prevent it. */
  readonly values?: LosableValues;
  /** Why this blocks the table, for a time that grows with its size. */
  readonly rewrites?: string;
  /** Copied after the statement, or before it if it runs in pages. */
  readonly foldedCopy?: FoldedCopy;
  /**
   * Runs after the steps without it, which are one transaction: in a transaction of its own, outside
   * of any, or once for each page of a table. Its effect stays if a later step fails.
   */
  readonly apart?: 'transaction' | 'statement' | PagedRun;
  /** The remedy if rows that were written in the meantime do not allow it. */
  readonly onBrokenRow?: BrokenRow;
}

/** The statement ends in a condition, to which a range of ids is added. */
interface PagedRun {
  readonly pagesOf: PagedRows;
}

interface BrokenRow {
  readonly why: string;
  /** Removes the object that would block writers or the next attempt. */
  readonly undo: Pick<Step, 'sql' | 'apart'>;
}
