/**
 * Every private member of the driver `pg` that the service reaches for, in one file: rows read from the bytes
 * (`CellClient`), several statements in one write and one transaction (`StatementBatch`), and the socket.
 */
import { createRequire } from 'node:module';
import { connect as dial } from 'node:net';
import pg from 'pg';
import type { Param, Sql } from '../sql.ts';
import type { Cells } from './contract.ts';
import { RowReader, type TakeBytes } from './lanes/row-reader.ts';
import { isServerError, isStalePlan, mayBeCommitted } from './to-store-error.ts';

/** The minor version of `pg` that this file was written for: test/database/pg-internals.test.ts lists what to check. */
export const PG_VERSION = '8.23';

interface Socket {
  readonly bytesRead?: number;
  readonly writable: boolean;
  write(bytes: Buffer): unknown;
  destroy(): void;
}

interface DriverConnection extends NodeJS.EventEmitter {
  readonly stream: Socket;
  attachListeners(stream: NodeJS.EventEmitter): void;
  emit(event: 'dataRow', message: DataRow): boolean;
}

interface DriverClient {
  readonly host: string;
  readonly port: number;
  readonly processID: number | null;
  readonly secretKey: number | null;
  readonly connection: DriverConnection;
}

export type AnyClient = Pick<pg.ClientBase, 'query'>;
const driverOf = (client: AnyClient): DriverClient => client as unknown as DriverClient;
const driverSocketOf = (client: AnyClient): Socket => driverOf(client).connection.stream;

/** The bytes that the connection has received. */
export const bytesReadOf = (client: AnyClient): number => driverSocketOf(client).bytesRead ?? 0;

/** The server's process for the connection; a pooler makes the id up. */
export const processIdOf = (client: AnyClient): number | null => driverOf(client).processID;

/** Closes the socket without a farewell: statements under way fail with the loss of their connection. */
export const destroyConnection = (client: AnyClient): void => driverSocketOf(client).destroy();

/** A stopped server accepts connections and never reads from them. */
const CANCEL_MS = 2_000;

/** Destroys the connection, and asks the server to cancel the statement under way on it. */
export function abandonConnection(client: AnyClient): void {
  const { host, port, processID, secretKey } = driverOf(client);
  destroyConnection(client);
  // The message CancelRequest of PostgreSQL's protocol.
  const message = Buffer.alloc(16);
  for (const [i, int] of [16, 80_877_102, processID ?? 0, secretKey ?? 0].entries()) message.writeInt32BE(int, 4 * i);
  const socket = host.startsWith('/') ? dial(`${host}/.s.PGSQL.${port}`) : dial(port, host);
  socket.on('error', () => socket.destroy());
  socket.setTimeout(CANCEL_MS, () => socket.destroy());
  socket.unref().resume().end(message);
}

/** A client of the driver whose rows are read by `RowReader`. */
export class CellClient extends pg.Client {
  constructor(config?: string | pg.ClientConfig) {
    super(config);
    const { connection } = driverOf(this);
    const attach = connection.attachListeners;
    // The driver calls it once encryption is decided, before the first byte of an answer.
    connection.attachListeners = (stream) => {
      const before = stream.listeners('data');
      attach.call(connection, stream);
      const drivers = stream.listeners('data').filter((listener) => !before.includes(listener)) as TakeBytes[];
      const reader = new RowReader(
        (bytes) => {
          for (const take of drivers) take(bytes);
        },
        (fields) => connection.emit('dataRow', { fields }),
      );
      for (const take of drivers) stream.off('data', take);
      stream.on('data', (chunk: Buffer) => reader.read(chunk));
    };
  }
}

/** The driver's conversion of values to PostgreSQL's text format. */
const { prepareValue } = createRequire(import.meta.url)('pg/lib/utils') as {
  prepareValue(value: unknown): unknown;
};

/** A string for jsonb is JSON text already; other values become JSON text. */
function encode({ type, value }: Param): unknown {
  if (type !== 'jsonb' || value === null || value === undefined || typeof value === 'string') return value;
  return JSON.stringify(value);
}

/** Gathers messages for one write; the driver writes each message by itself. */
class MessageBuffer {
  #messages: Buffer[] = [];
  /** A connection that gathers the bytes instead of sending them. */
  readonly to = new pg.Connection({
    stream: () => ({ writable: true, write: (bytes: Buffer) => this.#messages.push(bytes) }),
  } as unknown as pg.ConnectionConfig) as unknown as {
    query(text: string): void;
    parse(message: { readonly name: string; readonly text: string }): void;
    bind(message: { statement: string; values: unknown[]; valueMapper(value: unknown): unknown }): void;
    execute(message: object): void;
    close(message: { readonly type: 'S'; readonly name: string }): void;
    sync(): void;
  };

  /** Returns the gathered bytes, and forgets them. */
  take(): Buffer {
    const bytes = Buffer.concat(this.#messages);
    this.#messages = [];
    return bytes;
  }
}
const messages = new MessageBuffer();

interface DataRow {
  readonly fields: Cells;
}
interface CommandComplete {
  readonly text: string;
}

/** The methods that the driver calls to send a query and while its answer arrives. */
interface Handlers {
  submit(connection: object): Error | null;
  handleRowDescription(): void;
  handleDataRow(message: DataRow): void;
  handleCommandComplete(message: CommandComplete): void;
  handleEmptyQuery(): void;
  handleError(error: Error): void;
  handleReadyForQuery(): void;
}
const DriverQuery = pg.Query as unknown as new (text: string) => Omit<pg.Query, 'submit'> & Handlers;

export interface Outcome {
  readonly rows: readonly Cells[];
  /** Rows affected. */
  readonly count: number;
  /** True if the commit has something to store. */
  readonly hasWritten: boolean;
}

interface BatchProgress {
  /** The statements completed before: the index of the statement that failed, or all if their commit failed. */
  readonly completed: number;
  /** True if certainly nothing of the batch was committed. */
  readonly isUndone: boolean;
}

/** A statement failed, and with it all statements of its transaction. */
export class TogetherError extends Error {
  readonly completed: number;
  readonly isUndone: boolean;
  constructor(cause: unknown, { completed, isUndone }: BatchProgress) {
    super('one of several statements failed', { cause });
    this.completed = completed;
    this.isUndone = isUndone;
  }
}

/** A statement of a batch, and its answer so far. */
export interface BatchStatement {
  readonly statement: Sql;
  /** The name that it is prepared under; undefined if it is sent once. */
  readonly name: string | undefined;
}
interface BatchPart extends BatchStatement {
  readonly rows: Cells[];
  tag: string;
  isPrepared: boolean;
}

/** The statements that are prepared on the connection of a batch. */
interface PreparedNames {
  /** Returns undefined if the name is prepared; else the names to close before it is prepared. */
  use(name: string, isPlannedAnew: boolean): readonly string[] | undefined;
  /** An error leaves the state of the name unknown. */
  forget(name: string): void;
}

/**
 * Statements before one Sync, which PostgreSQL runs as one transaction. Cells stay text: no description of the rows
 * is requested, no type is parsed. The names stay unknown to the driver, which would remember every text.
 */
export class StatementBatch extends DriverQuery {
  /** Rejects with a `TogetherError`. */
  readonly outcomes: Promise<readonly Outcome[]>;
  readonly statements: readonly BatchPart[];
  readonly #settle = Promise.withResolvers<readonly Outcome[]>();
  readonly #prepared: PreparedNames;
  /** Names whose closing is sent with the batch. */
  #closed: string[] = [];
  #connection: DriverConnection | undefined;
  #completed = 0;
  #isSent = false;

  constructor(statements: readonly BatchStatement[], prepared: PreparedNames) {
    super('');
    this.statements = statements.map((each) => ({ ...each, rows: [], tag: '', isPrepared: false }));
    this.#prepared = prepared;
    this.outcomes = this.#settle.promise;
  }

  /** The driver calls it once. A value that cannot be encoded keeps the whole batch from being sent. */
  override submit(driverConnection: object): Error | null {
    this.#connection = driverConnection as DriverConnection;
    const [first] = this.statements;
    try {
      // The simple protocol takes several commands in one text; in a batch it would end the transaction.
      if (this.statements.length === 1 && first!.name === undefined && first!.statement.params.length === 0) {
        messages.to.query(first!.statement.text);
      } else {
        for (const part of this.statements) this.#append(part);
        messages.to.sync();
      }
    } catch (error) {
      messages.take();
      return error as Error;
    }
    this.#isSent = true;
    const bytes = messages.take();
    const { stream } = this.#connection;
    if (stream.writable) stream.write(bytes);
    return null;
  }

  #append(part: BatchPart): void {
    const { statement, name } = part;
    const closed = name === undefined ? [] : this.#prepared.use(name, statement.isPlannedAnew);
    part.isPrepared = closed === undefined;
    for (const each of closed ?? []) {
      this.#closed.push(each);
      messages.to.close({ type: 'S', name: each });
    }
    if (!part.isPrepared) messages.to.parse({ name: name ?? '', text: statement.text });
    messages.to.bind({
      statement: name ?? '',
      values: statement.params.map(encode),
      valueMapper: prepareValue,
    });
    messages.to.execute({});
  }

  override handleRowDescription(): void {}

  override handleDataRow({ fields }: DataRow): void {
    this.#current.rows.push(fields);
  }

  override handleCommandComplete({ text }: CommandComplete): void {
    this.#current.tag = text;
    this.#completed++;
  }

  override handleEmptyQuery(): void {
    this.#completed++;
  }

  /** Several commands of one text count as one statement. */
  get #current(): BatchPart {
    return this.statements[Math.min(this.#completed, this.statements.length - 1)]!;
  }

  /** Nothing was committed if the server reports the error, and is ready again. */
  override handleError(error: Error): void {
    if (!this.#isSent) this.#fail(error, true);
    else if (this.statements.length === 1) this.#fail(error, false);
    else if (!isServerError(error) || mayBeCommitted(error, this.#completed >= this.statements.length)) {
      this.#fail(error, false);
    } else this.#failOnceReady(error, this.#connection!);
  }

  #failOnceReady(error: Error, connection: DriverConnection): void {
    const whenReady = (): void => end(true);
    const whenEnded = (): void => end(false);
    const end = (isUndone: boolean): void => {
      connection.off('readyForQuery', whenReady);
      connection.off('end', whenEnded);
      this.#fail(error, isUndone);
    };
    connection.on('readyForQuery', whenReady);
    connection.on('end', whenEnded);
  }

  /** Deferred constraints of adopted tables fail after CommandComplete, so the outcome is known only here. */
  override handleReadyForQuery(): void {
    if (this.#completed < this.statements.length) this.#fail(new Error('the connection lost an answer'), false);
    else this.#settle.resolve(this.statements.map(outcomeOf));
  }

  #fail(cause: Error, isUndone: boolean): void {
    const completed = this.#completed;
    for (const [i, { name, isPrepared }] of this.statements.slice(completed).entries()) {
      const isDoubtful = !isPrepared || (i === 0 && isStalePlan(cause));
      if (name !== undefined && isDoubtful) this.#prepared.forget(name);
    }
    for (const name of this.#closed) this.#prepared.forget(name);
    this.#settle.reject(new TogetherError(cause, { completed, isUndone }));
  }
}

function outcomeOf({ rows, tag }: BatchPart): Outcome {
  const count = Number(/\d+$/.exec(tag)?.[0] ?? 0);
  return { rows, count, hasWritten: count > 0 && !tag.startsWith('SELECT') };
}
