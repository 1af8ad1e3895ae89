/**
 * A database, as the other rooms see it; the embedded one and PostgreSQL behave alike. Reads
 * outside transactions are pipelined, and rows come as arrays of the text that PostgreSQL sent.
 */
import type { Sql } from '../../sql.ts';

/** Values as PostgreSQL printed them (text format), or null. */
export type Cells = readonly (string | null)[];

export interface Queryable {
  /** Rows as arrays of text cells. Prepared by the statement's text, so keep texts few. */
  rows(statement: Sql): Promise<readonly Cells[]>;
  /** Rows affected. */
  run(statement: Sql): Promise<number>;
}

export interface Transaction extends Queryable {
  readonly inTransaction: true;
}

export interface Database extends Queryable {
  readonly kind: 'embedded' | 'postgres';
  /** For reads that may lag behind like a replica does; this database itself if there is none. */
  readonly replica: Queryable;
  /**
   * The rows of one statement that writes, in its own transaction. In `rows`, its wait for a lock
   * would hold up others.
   */
  write(statement: Sql): Promise<readonly Cells[]>;
  /**
   * READ COMMITTED; commits when `work` resolves, rolls back when it throws. Serialization failures
   * and deadlocks are retried up to 3 times. `work` must use the given transaction only.
   */
  transaction<T>(work: (tx: Transaction) => Promise<T>): Promise<T>;
  /** LISTEN. `onMessage` gets the payload; `onState` reports whether the channel is up. */
  listen(
    channel: string,
    onMessage: (payload: string) => void,
    onState: (up: boolean) => void,
  ): Promise<() => Promise<void>>;
  notify(channel: string, payload: string): Promise<void>;
  ping(): Promise<void>;
  close(): Promise<void>;
}

/** The constraint that a statement violated. */
export interface Violated {
  /** On a partition or a shard not the name that we gave it. */
  readonly constraint: string;
  /** Empty where the server does not name them. */
  readonly columns: readonly string[];
}

/**
 * A unique constraint or a foreign key was violated, or the database cannot be reached. Mapped from
 * SQLSTATE in one place.
 */
export class StoreError extends Error {
  readonly kind: 'unique' | 'foreign_key' | 'unavailable';
  readonly violated: Violated | undefined;
  constructor(kind: 'unique' | 'foreign_key' | 'unavailable', violated?: Violated, cause?: unknown) {
    super(`${kind}${violated === undefined ? '' : ` (${violated.constraint})`}`, { cause });
    this.name = 'StoreError';
    this.kind = kind;
    this.violated = violated;
  }
}
