/**
 * Every private member of the driver `pg` that the service reaches for, in one file: rows read from the bytes
 * (`CellClient`), several statements in one write and one transaction (`StatementBatch`), and the socket.
 * test/database/pg-internals.test.ts lists what to check for another version of the driver.
 */
import { createRequire } from 'node:module';
import { connect as dial, type Socket } from 'node:net';
import pg from 'pg';
import type { Param, Sql } from '../sql.ts';
import { type Cells, ROWS_TOO_LARGE } from './contract.ts';
import { isServerError, mayBeCommitted } from './to-store-error.ts';

const require = createRequire(import.meta.url);
const requireBesideDriver = createRequire(require.resolve('pg'));

const { serialize } = requireBesideDriver('pg-protocol') as {
  readonly serialize: {
    query(text: string): Buffer;
    parse(message: { readonly name: string; readonly text: string }): Buffer;
    bind(message: { statement: string; values: unknown[]; valueMapper(value: unknown): unknown }): Buffer;
    execute(): Buffer;
    close(message: { readonly type: 'S'; readonly name: string }): Buffer;
    sync(): Buffer;
    cancel(processId: number, secretKey: number): Buffer;
  };
};

interface DriverConnection extends NodeJS.EventEmitter {
  readonly stream: Socket;
  attachListeners(stream: NodeJS.EventEmitter): void;
}

interface DriverClient {
  readonly host: string;
  readonly port: number;
  readonly processID: number | null;
  readonly secretKey: number | null;
  readonly connection: DriverConnection;
  readonly _queryable: boolean;
  readonly _ending: boolean;
}

export type AnyClient = Pick<pg.ClientBase, 'query'>;
const driverOf = (client: AnyClient): DriverClient => client as unknown as DriverClient;

export const bytesReadOf = (client: AnyClient): number => driverOf(client).connection.stream.bytesRead;

/** The server's process for the connection; a pooler makes the id up. */
export const processIdOf = (client: AnyClient): number | null => driverOf(client).processID;

/** A stopped server accepts connections and never reads from them. */
const CANCEL_MS = 2_000;

/** Destroys the connection: its statements fail with the loss of it. Asks the server to cancel the one under way. */
export function abandonConnection(client: AnyClient): void {
  const { host, port, processID, secretKey, connection } = driverOf(client);
  if (connection.stream.destroyed) return;
  connection.stream.destroy();
  const message = serialize.cancel(processID ?? 0, secretKey ?? 0);
  const socket = host.startsWith('/') ? dial(`${host}/.s.PGSQL.${port}`) : dial(port, host);
  socket.on('error', () => socket.destroy());
  socket.setTimeout(CANCEL_MS, () => socket.destroy());
  socket.unref().resume().end(message);
}

interface DriverMessage {
  readonly name: string;
}
interface DriverParser {
  parse(bytes: Buffer, take: (message: DriverMessage) => void): void;
  handlePacket(offset: number, code: number, length: number, bytes: Buffer): DriverMessage;
}
interface DataRow extends DriverMessage {
  readonly fields: Cells;
  readonly bytes: number;
}
const { Parser } = requireBesideDriver('pg-protocol/dist/parser') as { readonly Parser: new () => DriverParser };

/** For longer cells, a decoding call costs less than a look at all bytes. */
const SHORT_CELL = 256;
/** A substring keeps the whole string in memory, so only small rows are cut into cells. */
const SMALL_ROW = 4_096;
/** The high bits of four bytes: set in multi-byte UTF-8. */
const NOT_ASCII = 0x80808080;

type BytesOfRows = readonly [Buffer, DataView];

/** The text of each cell of a DataRow; -1 bytes are NULL. */
function cellsOf([bytes, view]: BytesOfRows, from: number, end: number): Cells {
  const count = view.getUint16(from);
  const cells: (string | null)[] = new Array(count);
  // Most cells are ASCII, for which Latin-1 equals UTF-8.
  const latin1 = end - from > SMALL_ROW ? undefined : bytes.toString('latin1', from, end);
  let at = from + 2;
  for (let i = 0; i < count; i++) {
    const start = at + 4;
    const length = view.getInt32(at);
    at = start + Math.max(0, length);
    if (length < 0) cells[i] = null;
    else if (latin1 !== undefined && length <= SHORT_CELL && isAscii(view, start, at))
      cells[i] = latin1.substring(start - from, at - from);
    else cells[i] = bytes.toString('utf8', start, at);
  }
  return cells;
}

function isAscii(view: DataView, from: number, end: number): boolean {
  let at = from;
  for (; at + 4 <= end; at += 4) if ((view.getInt32(at) & NOT_ASCII) !== 0) return false;
  for (; at < end; at++) if (view.getInt8(at) < 0) return false;
  return true;
}

/** The driver's parser of answers; `cellsOf` reads rows, because the driver decodes each cell by a separate call. */
export class CellParser extends Parser {
  /** The bytes of the answer under way; a message that is no row ends it. */
  #rows: BytesOfRows | undefined;

  override handlePacket(offset: number, code: number, length: number, bytes: Buffer): DriverMessage {
    // `D` is a DataRow; its length counts four bytes before the offset.
    if (code !== 0x44) this.#rows = undefined;
    if (code !== 0x44) return super.handlePacket(offset, code, length, bytes);
    if (this.#rows?.[0] !== bytes) this.#rows = [bytes, new DataView(bytes.buffer, bytes.byteOffset, bytes.length)];
    const fields = cellsOf(this.#rows, offset, offset + length - 4);
    return { name: 'dataRow', fields, bytes: length } satisfies DataRow as DriverMessage;
  }
}

export class CellClient extends pg.Client {
  constructor(config?: string | pg.ClientConfig) {
    super(config);
    // A loss fails the statement under way or the next; without a listener, its event would end the process.
    this.on('error', () => undefined);
    const { connection } = driverOf(this);
    connection.attachListeners = (stream) => {
      const parser = new CellParser();
      const take = (message: DriverMessage): boolean =>
        connection.emit(message.name === 'error' ? 'errorMessage' : message.name, message);
      stream.on('data', (chunk: Buffer) => parser.parse(chunk, take));
    };
  }

  /** False once the connection is lost or closed. */
  get isUsable(): boolean {
    const { connection, _queryable, _ending } = driverOf(this);
    return _queryable && !_ending && !connection.stream.destroyed;
  }
}

/** The driver's conversion of values to PostgreSQL's text format. */
const { prepareValue } = require('pg/lib/utils') as { prepareValue(value: unknown): unknown };

/** A string for jsonb is JSON text already; other values become JSON text. */
function encode({ type, value }: Param): unknown {
  if (type !== 'jsonb' || value === null || value === undefined || typeof value === 'string') return value;
  return JSON.stringify(value);
}

/** The messages that send the statements. Throws if a value cannot be encoded. */
function messagesOf(statements: readonly BatchStatement[]): Buffer {
  const [first] = statements;
  // The simple protocol takes several commands in one text; in a batch it would end the transaction.
  if (statements.length === 1 && first!.name === undefined && first!.statement.params.length === 0)
    return serialize.query(first!.statement.text);
  const messages: Buffer[] = [];
  for (const { statement, name = '', closed } of statements) {
    for (const each of closed ?? []) messages.push(serialize.close({ type: 'S', name: each }));
    if (closed !== undefined) messages.push(serialize.parse({ name, text: statement.text }));
    const values = statement.params.map(encode);
    messages.push(serialize.bind({ statement: name, values, valueMapper: prepareValue }), serialize.execute());
  }
  messages.push(serialize.sync());
  return Buffer.concat(messages);
}

interface CommandComplete {
  readonly text: string;
}

/** The driver pipelines instances of its own class only; its types hide the methods that it calls. */
const DriverQuery = pg.Query as unknown as new (text: string) => object;

export interface Outcome {
  readonly rows: readonly Cells[];
  /** The command that PostgreSQL reports, with the number of its rows: `UPDATE 3`. */
  readonly tag: string;
}

/** Rows affected. */
export const countOf = ({ tag }: Outcome): number => Number(/\d+$/.exec(tag)?.[0] ?? 0);

/** A statement failed, and with it all statements of its transaction. */
export class TogetherError extends Error {
  /** The statements completed before: the index of the statement that failed, or all if their commit failed. */
  readonly completed: number;
  /** True if certainly nothing of the batch was committed. */
  readonly isUndone: boolean;
  constructor(cause: unknown, completed: number, isUndone: boolean) {
    super('one of several statements failed', { cause });
    this.completed = completed;
    this.isUndone = isUndone;
  }
}

export interface BatchStatement {
  readonly statement: Sql;
  /** The name that it is prepared under; undefined if it is sent once. */
  readonly name: string | undefined;
  /** Names to close before it is prepared; undefined if it is prepared already. */
  readonly closed: readonly string[] | undefined;
}

interface BatchPart extends BatchStatement {
  rows: Cells[];
  tag: string;
  /** Bytes of all rows, as they were sent. */
  bytes: number;
}

/**
 * Statements before one Sync, which PostgreSQL runs as one transaction. Cells stay text: no description of the rows
 * is requested, no type is parsed. The names stay unknown to the driver, which would remember every text.
 */
export class StatementBatch extends DriverQuery {
  /** Rejects with a `TogetherError`. */
  readonly outcomes: Promise<readonly Outcome[]>;
  readonly statements: readonly BatchPart[];
  readonly #bytes: Buffer;
  readonly #settle = Promise.withResolvers<readonly Outcome[]>();
  #completed = 0;
  #isSent = false;

  /** Throws if a value cannot be encoded. */
  constructor(statements: readonly BatchStatement[]) {
    super('');
    this.statements = statements.map((each) => ({ ...each, rows: [], tag: '', bytes: 0 }));
    this.#bytes = messagesOf(statements);
    this.outcomes = this.#settle.promise;
  }

  /** The driver calls it once. */
  submit(connection: object): null {
    this.#isSent = true;
    const { stream } = connection as DriverConnection;
    if (stream.writable) stream.write(this.#bytes);
    return null;
  }

  handleRowDescription(): void {}

  handleDataRow({ fields, bytes }: DataRow): void {
    const part = this.#current;
    part.bytes += bytes;
    const { rowBytes } = part.statement;
    if (rowBytes !== undefined) rowBytes.read = part.bytes;
    if (rowBytes !== undefined && part.bytes > rowBytes.most) part.rows = ROWS_TOO_LARGE;
    else part.rows.push(fields);
  }

  handleCommandComplete({ text }: CommandComplete): void {
    this.#current.tag = text;
    this.#completed++;
  }

  handleEmptyQuery(): void {
    this.#completed++;
  }

  /** Several commands of one text count as one statement. */
  get #current(): BatchPart {
    return this.statements[Math.min(this.#completed, this.statements.length - 1)]!;
  }

  /** Nothing was committed if the server reports the error, and is ready again. */
  handleError(error: Error, connection: object): void {
    const { length } = this.statements;
    if (!this.#isSent) this.#fail(error, true);
    else if (length === 1 || !isServerError(error) || mayBeCommitted(error, this.#completed >= length)) {
      this.#fail(error, false);
    } else this.#failOnceReady(error, connection as DriverConnection);
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
  handleReadyForQuery(): void {
    if (this.#completed < this.statements.length) this.#fail(new Error('the connection lost an answer'), false);
    else this.#settle.resolve(this.statements);
  }

  #fail(cause: Error, isUndone: boolean): void {
    this.#settle.reject(new TogetherError(cause, this.#completed, isUndone));
  }
}
