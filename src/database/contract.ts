/**
 * A database, as the other rooms see it; the embedded one and PostgreSQL behave alike. Reads
 * outside transactions are pipelined, and rows come as arrays of the text that PostgreSQL sent.
 */
import type { Sql } from '../sql.ts';

/** Values as PostgreSQL printed them (text format), or null. */
export type Cells = readonly (string | null)[];

export interface Queryable {
  /** Rows as arrays of text cells. Prepared by the statement's text, so keep texts few. */
  rows(statement: Sql): Promise<readonly Cells[]>;
  /** Rows affected. */
  run(statement: Sql): Promise<number>;
}

/**
 * The queue that a SELECT waits in. No lane holds up another:
 * - `quick` (the default) serves the pages and records of requests. A statement that turns out slow
 *   moves to `slow` by itself.
 * - `slow` serves counts, deep offsets, queries and statistics: a few statements at a time.
 * - `urgent` serves statements that every request depends on, such as the states of sessions.
 */
export type Lane = 'quick' | 'slow' | 'urgent';

export interface ReadOptions {
  readonly lane?: Lane;
  /**
   * The time limit of a statement of the lane `slow`, waiting included; beyond it PostgreSQL cancels
   * the statement, which fails as `time_limit`. The embedded database decides by the planner's estimate.
   */
  readonly limitMs?: number | undefined;
  /**
   * `generic`: one plan serves all values. For a SELECT of one tenant's records, because PostgreSQL
   * plans statements over partitions for every execution otherwise. A statement whose parameters ask
   * for a custom plan (`plannedParam`) gets one nevertheless.
   */
  readonly plan?: 'generic' | undefined;
}

/** Reads outside transactions. */
export interface Reader extends Queryable {
  /** As in `Queryable`; a SELECT may be sent twice. */
  rows(statement: Sql, options?: ReadOptions): Promise<readonly Cells[]>;
}

/** The same reader, whose `rows` wait in another lane. */
export const inLane = (reader: Reader, lane: Lane): Queryable => ({
  rows: (statement) => reader.rows(statement, { lane }),
  run: (statement) => reader.run(statement),
});

export interface TransactionOptions {
  /** For what may take hours: no statement has a time limit. */
  readonly unlimited?: boolean;
}

/**
 * A connection of its own, outside transactions and without time limits: for statements that cannot
 * be in a transaction, and for locks that last until `close`.
 */
export interface Session extends Queryable {
  close(): Promise<void>;
}

/** What a statement writes, as far as it concerns those that it may share a transaction with. */
export interface WriteTarget {
  /** Undefined: one of the service's own. */
  readonly table?: string;
  /** The id of the row that it locks. */
  readonly row?: string | undefined;
  /**
   * Of a collection that is divided by tenant. It has a transaction of its own, because one of two
   * tenants would be distributed over two machines of a cluster.
   */
  readonly isDivided?: boolean;
}

export interface Transaction extends Queryable {
  readonly inTransaction: true;
}

export interface Database extends Reader {
  /**
   * Where no statement can be cancelled: a condition that is true for so many milliseconds of a
   * statement, and then fails as `time_limit`.
   */
  statementInTime?(ms: number): Sql;
  readonly kind: 'embedded' | 'postgres';
  /**
   * For the reads of one request of this caller, which may lag behind like a replica does, but not
   * behind their own writes. The database itself if there is no replica.
   */
  replicaFor(callerId: string): Reader;
  /**
   * A write of this caller was committed, through this process. Resolves when other nodes have been
   * told.
   */
  noteWrite(callerId: string): Promise<void>;
  /**
   * The rows of one statement that writes; `rows` takes SELECTs only, which it may send twice. It is
   * a transaction by itself, or shares one with other such statements: it may see what they wrote,
   * and is committed with them, but never fails because of them.
   */
  write(statement: Sql, target?: WriteTarget): Promise<readonly Cells[]>;
  /**
   * READ COMMITTED; commits when `work` resolves, rolls back when it throws. Serialization failures
   * and deadlocks are retried up to 3 times. `work` must use the given transaction only.
   */
  transaction<T>(work: (tx: Transaction) => Promise<T>, options?: TransactionOptions): Promise<T>;
  /** Undefined where none can be had: in the embedded database, and behind a pooler. */
  readonly openSession?: (() => Promise<Session>) | undefined;
  /**
   * Of the embedded database in a folder: all that is committed is in the folder, and nothing changes
   * it until `copy` has ended.
   */
  readonly copyFolder?: (copy: (folder: string) => Promise<void>) => Promise<void>;
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

/** `time_limit`: the statement took longer than its caller allows. */
type StoreErrorKind = 'unique' | 'foreign_key' | 'check' | 'unavailable' | 'time_limit';

/**
 * A constraint was violated, or the database cannot be reached. Mapped from SQLSTATE in one place.
 */
export class StoreError extends Error {
  readonly kind: StoreErrorKind;
  readonly violated: Violated | undefined;
  constructor(kind: StoreErrorKind, violated?: Violated, cause?: unknown) {
    super(`${kind}${violated === undefined ? '' : ` (${violated.constraint})`}`, { cause });
    this.name = 'StoreError';
    this.kind = kind;
    this.violated = violated;
  }
}

/**
 * The database is reached, but so many statements wait for it that another would be answered too
 * late.
 */
export class QueueFull extends StoreError {
  /** Seconds until another try is worth it. */
  readonly retryAfter: number;
  constructor(waitMs: number) {
    super('unavailable', undefined, new Error('the queue is full'));
    this.retryAfter = Math.min(60, Math.max(1, Math.ceil(waitMs / 1000)));
  }
}
