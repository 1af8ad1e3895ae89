/**
 * What the other rooms may ask of the store. Implemented in this room; the embedded database and PostgreSQL answer alike.
 * Reads outside transactions are pipelined, named statements whose rows come as arrays of the text that PostgreSQL sent.
 */
import type { Sql } from '../../sql.ts';

/** Values as PostgreSQL printed them (text format), or null. */
export type Cells = readonly (string | null)[];

export interface Queryable {
  /** Rows as arrays of text cells. Named by the statement's text, so keep texts few. */
  rows(statement: Sql): Promise<readonly Cells[]>;
  /** Rows affected. */
  run(statement: Sql): Promise<number>;
}

export interface Transaction extends Queryable {
  readonly inTransaction: true;
}

export interface Database extends Queryable {
  readonly kind: 'embedded' | 'postgres';
  /** For reads that may lag behind by what a replica lags; this database itself where there is none. */
  readonly replica: Queryable;
  /** One statement that writes, as a transaction of its own: what it returns. `rows` is for reads: there, a wait for a lock would hold up others. */
  write(statement: Sql): Promise<readonly Cells[]>;
  /** READ COMMITTED; commits when `work` resolves, rolls back when it throws. Serialization failures and deadlocks are tried again up to 3 times. Never ask the pool inside for another connection: use the given one. */
  transaction<T>(work: (tx: Transaction) => Promise<T>): Promise<T>;
  /** LISTEN; `onMessage` gets the payload, `onState(false)` when the channel is lost, `onState(true)` when it is back. */
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
  /** On a partition or a shard the name is made from that of the constraint, or not at all. */
  readonly constraint: string;
  /** Empty where the server does not name them. */
  readonly columns: readonly string[];
}

/** A unique constraint or a foreign key was violated, or the database cannot be reached. Mapped from SQLSTATE in one place. */
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
