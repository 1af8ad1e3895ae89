/** A database, as the other rooms see it; the embedded database and PostgreSQL behave alike. */
import type { Sql } from '../sql.ts';

/** Values as PostgreSQL printed them (text format), or null. */
export type Cells = readonly (string | null)[];

/** The rows of a statement that found more bytes than its `rowBytes` allow. */
export const ROWS_TOO_LARGE: Cells[] = [];

export interface Queryable {
  /** Rows as arrays of text cells. Prepared by the statement's text, so keep texts few. */
  rows(statement: Sql): Promise<readonly Cells[]>;
  /** Rows affected. */
  run(statement: Sql): Promise<number>;
}

/**
 * The queue that a SELECT waits in. No lane holds up another:
 * - `quick` (the default) serves the pages and records of requests. A statement that turns out slow moves to `slow`.
 * - `query` serves expressions of callers: as `quick`, where the database can cancel what turns out slow.
 * - `slow` serves counts, deep offsets and statistics: a few statements at a time.
 * - `estimate` serves the estimates of the planner: as `slow` on a server, as `quick` where others may hold that up long.
 * - `urgent` serves statements that every request depends on, such as the states of sessions.
 */
export type Lane = 'quick' | 'query' | 'slow' | 'estimate' | 'urgent';

export interface ReadOptions {
  readonly lane?: Lane;
  /**
   * The time limit of a statement; beyond it PostgreSQL cancels the statement, which fails as `time_limit`. For
   * the lanes `query` and `slow`, the embedded database decides by the planner's estimate.
   */
  readonly limitMs?: number | undefined;
  /**
   * `generic`: one plan serves all values; otherwise PostgreSQL plans statements over partitions for every execution.
   * A statement whose parameters ask for a custom plan (`plannedParam`) gets one nevertheless.
   */
  readonly plan?: 'generic' | undefined;
}

/** Reads outside transactions. */
export interface Reader extends Queryable {
  /** The same as in `Queryable`; a SELECT may be sent twice. */
  rows(statement: Sql, options?: ReadOptions): Promise<readonly Cells[]>;
}

/** The same reader, whose `rows` wait in another lane. */
export const inLane = (reader: Reader, lane: Lane): Queryable => ({
  rows: (statement) => reader.rows(statement, { lane }),
  run: (statement) => reader.run(statement),
});

export interface TransactionOptions {
  /** Statements have no time limit, because they may take hours. */
  readonly unlimited?: boolean;
  /** Milliseconds in all, waits for locks included (default 5,000); beyond them the transaction is `unavailable`. */
  readonly limitMs?: number;
}

/**
 * A dedicated connection, outside transactions and without time limits: for statements that cannot be in a transaction,
 * and for locks that last until `close`.
 */
export interface DatabaseSession extends Queryable {
  close(): Promise<void>;
}

/** The target of a write, which decides the statements that it may share a transaction with. */
export interface WriteTarget {
  /** Undefined: a table of the service itself. */
  readonly table?: string;
  /** The id of the row that the statement locks. */
  readonly row?: string | undefined;
  /** Divided by tenant: the statement gets a transaction of its own, because one of two tenants would span two nodes. */
  readonly isDivided?: boolean;
  /** A statement that runs first, in the same transaction, which no other write shares. */
  readonly first?: Sql | undefined;
  readonly plan?: ReadOptions['plan'];
}

export interface Transaction extends Queryable {
  readonly inTransaction: true;
}

export interface Subscription {
  readonly channel: string;
  readonly onMessage: (payload: string) => void;
  /** Reports whether the channel is up. */
  readonly onState: (up: boolean) => void;
}

/** Delivers a notification to the subscriptions of its channel. */
export function deliver(
  { channel, payload = '' }: { readonly channel: string; readonly payload?: string | undefined },
  subscriptions: Iterable<Subscription>,
): void {
  for (const each of subscriptions) if (each.channel === channel) each.onMessage(payload);
}

export type DecidedRows = Readonly<Record<'decided' | 'written', readonly Cells[]>>;
export interface StatementTaker extends Pick<Database, 'rows' | 'run' | 'write'> {
  /** Sends a SELECT that decides, and a statement that writes, as one transaction. Undefined: neither had an effect. */
  writeDecided?(decision: Sql, statement: Sql): Promise<DecidedRows | undefined>;
}

export interface Database extends Reader {
  /**
   * A database that cannot cancel statements gives this condition for reads: it is true as long as the statement has
   * time, and then fails as `time_limit`.
   */
  readonly statementInTime?: Sql;
  readonly kind: 'embedded' | 'postgres';
  /** A cluster of Citus. */
  readonly isCluster?: boolean;
  /** A shorter way to the records of a tenant, which answers as the database does. Undefined: none is known. */
  nodeFor?(table: string, tenant: string): StatementTaker | undefined;
  /** For one request: reads that may lag as a replica does, but not behind the caller's writes. Default: the database. */
  replicaFor(callerId: string): Reader;
  /** Call it after a committed write of this caller. Resolves when the write is announced to the other nodes. */
  noteWrite(callerId: string): Promise<void>;
  /**
   * The rows of a statement that writes; `rows` takes SELECTs only, which it may send twice. The statement shares its
   * transaction with concurrent ones: it may see their writes, and is committed with them, but never fails because of
   * them.
   */
  write(statement: Sql, target?: WriteTarget): Promise<readonly Cells[]>;
  /** From now on, each write to these tables gets its own transaction. */
  separateWritesTo?(tables: readonly string[]): void;
  /**
   * READ COMMITTED; commits when `work` resolves, rolls back when it throws. Serialization failures and deadlocks are
   * retried up to 3 times. `work` must use the given transaction only.
   */
  transaction<T>(work: (tx: Transaction) => Promise<T>, options?: TransactionOptions): Promise<T>;
  /** Undefined in the embedded database, and behind a pooler. */
  readonly openSession?: (() => Promise<DatabaseSession>) | undefined;
  /** Copies the folder of the embedded database: it holds all committed data, and stays unchanged until `copy` ends. */
  readonly copyFolder?: (copy: (folder: string) => Promise<void>) => Promise<void>;
  /** The returned function ends the subscription. */
  listen(subscription: Subscription): Promise<() => Promise<void>>;
  notify(channel: string, payload: string): Promise<unknown>;
  ping(): Promise<unknown>;
  close(): Promise<void>;
}

export interface Violated {
  /** A partition or a shard has another name than the one that we gave. */
  readonly constraint: string;
  /** Empty if the server does not name them. */
  readonly columns: readonly string[];
}

/** `too_long`: a value does not fit into the entry of an index. */
type Violation = 'unique' | 'exclusion' | 'foreign_key' | 'check' | 'raised' | 'too_long';
/** `time_limit`: the statement took longer than its caller allows. */
type StoreErrorKind = Violation | 'unavailable' | 'time_limit';

/** A constraint was violated, or the database cannot be reached: `to-store-error.ts` maps SQLSTATE. */
export class StoreError extends Error {
  readonly kind: StoreErrorKind;
  readonly violated: Violated | undefined;
  constructor(kind: StoreErrorKind, cause?: unknown, violated?: Violated) {
    const reason = cause instanceof Error ? cause.message : '';
    const details = kind === 'too_long' ? reason : (violated?.constraint ?? reason);
    const message = kind === 'unavailable' ? 'the database cannot be reached' : kind;
    super(`${message}${details === '' ? '' : ` (${details})`}`, { cause });
    this.name = 'StoreError';
    this.kind = kind;
    this.violated = violated;
  }
}

/** The database is reached, but so many statements wait that another one would be answered too late. */
export class QueueFull extends StoreError {
  /** Seconds until another try is worth it. */
  readonly retryAfter: number;
  /** Statements of the caller are in the way: another caller would have been served. */
  readonly isOwn: boolean;
  constructor(waitMs: number, isOwn = false) {
    super('unavailable', new Error('the queue is full'));
    this.isOwn = isOwn;
    this.retryAfter = Math.min(60, Math.max(1, Math.ceil(waitMs / 1000)));
  }
}
