/**
 * Sends statements: prepared under a name if they are sent more than once, parameters as text,
 * cells as they come; one by one, or several as one transaction.
 */
import { createHash } from 'node:crypto';
import pg from 'pg';
import type { Param, Sql } from '../../sql.ts';
import type { Cells } from '../contract.ts';
import { isServerError, isStalePlan, mayBeCommitted } from '../to-store-error.ts';
import { type MessageStream, type OneWrite, oneWriteOf } from './one-write.ts';
import { PreparedNames, type PreparingConnection } from './prepared-names.ts';

/** Prepared statements that a connection keeps. Each costs PostgreSQL some 30 kB there. */
const MOST_PREPARED = 256;
/** Texts that are remembered as sent. */
const MOST_TEXTS = 2_000;

/** jsonb: text is taken as JSON text, anything else is written as JSON. */
function encode({ type, value }: Param): unknown {
  if (type !== 'jsonb' || value === null || value === undefined || typeof value === 'string') return value;
  return JSON.stringify(value);
}

export interface Outcome {
  readonly rows: readonly Cells[];
  /** Rows affected. */
  readonly count: number;
  /** Whether its commit has something to store. */
  readonly hasWritten: boolean;
}

/** A connection of the driver, as far as prepared statements go; its types leave this out. */
interface Connection extends PreparingConnection, NodeJS.EventEmitter {
  readonly stream: MessageStream;
  sync(): void;
}

interface DataRow {
  readonly fields: Cells;
}
interface CommandComplete {
  readonly text: string;
}

/** What the driver calls to send a query and while its answer arrives. */
interface Handlers {
  name: string | undefined;
  submit(connection: object): Error | null;
  prepare(connection: Connection): void;
  hasBeenParsed(connection: Connection): boolean;
  handleRowDescription(): void;
  handleDataRow(message: DataRow): void;
  handleCommandComplete(message: CommandComplete): void;
  handleEmptyQuery(): void;
  handleError(error: Error): void;
  handleReadyForQuery(): void;
}
const DriverQuery = pg.Query as unknown as new (
  text: string,
  values: readonly unknown[],
) => Omit<pg.Query, 'submit'> & Handlers;

/**
 * A statement whose cells stay as they came: no row description is read, no type is parsed, nothing
 * is copied.
 */
class CellQuery extends DriverQuery {
  readonly outcome: Promise<Outcome>;
  readonly #rows: Cells[] = [];
  readonly #settle: PromiseWithResolvers<Outcome>;
  readonly #statements: Statements;
  readonly #sent: string;
  readonly #isPlannedAnew: boolean;
  #prepared: PreparedNames | undefined;
  #isPrepared = false;
  #connection: Connection | undefined;
  #tag = '';
  #error: Error | undefined;
  /** An error is thrown then, and ends all that are sent together. */
  #isAppending = false;

  constructor(statement: Sql, statements: Statements) {
    super(statement.text, statement.params.map(encode));
    this.#statements = statements;
    this.#sent = statement.text;
    this.#isPlannedAnew = statement.isPlannedAnew;
    this.name = statements.nameOf(statement.text);
    this.#settle = Promise.withResolvers();
    this.outcome = this.#settle.promise;
  }

  /** Called once, when the query is sent. */
  override submit(connection: object): Error | null {
    this.#connection = connection as Connection;
    const gathered = this.#statements.oneWriteOn(this.#connection);
    const refused = super.submit(gathered.connection);
    gathered.send();
    return refused;
  }

  /**
   * To the messages that are gathered for `connection`. Never as a simple query, which would end
   * their transaction.
   */
  append(connection: Connection, gathering: Connection): void {
    this.#connection = connection;
    this.#isAppending = true;
    this.prepare(gathering);
    this.#isAppending = false;
    if (this.#error !== undefined) throw this.#error;
  }

  override prepare(connection: Connection): void {
    if (this.name !== undefined) {
      this.#prepared = this.#statements.preparedOn(this.#connection!);
      this.#isPrepared = this.#prepared.use(this.name, connection, this.#isPlannedAnew);
    }
    super.prepare(connection);
  }

  override hasBeenParsed(): boolean {
    return this.#isPrepared;
  }

  override handleRowDescription(): void {}

  override handleDataRow({ fields }: DataRow): void {
    this.#rows.push(fields);
  }

  override handleCommandComplete({ text }: CommandComplete): void {
    this.#tag = text;
  }

  override handleEmptyQuery(): void {}

  override handleError(error: Error): void {
    this.#error = error;
    if (this.#isAppending) return;
    this.note(error);
    this.#settle.reject(error);
  }

  /** The error of this statement itself. */
  note(error: unknown): void {
    if (this.name === undefined) return;
    const isStale = isStalePlan(error);
    if (isStale || !this.#isPrepared) this.#prepared?.forget(this.name);
    if (isStale) this.#statements.renew(this.#sent, this.name);
  }

  /** Beside another that failed. */
  fail(error: TogetherError, wasCompleted: boolean): void {
    if (this.name !== undefined && !wasCompleted && !this.#isPrepared) this.#prepared?.forget(this.name);
    this.#settle.reject(error);
  }

  /** Only now: an adopted table may have constraints that refuse after the command is complete. */
  override handleReadyForQuery(): void {
    const count = Number(/\d+$/.exec(this.#tag)?.[0] ?? 0);
    this.#settle.resolve({ rows: this.#rows, count, hasWritten: count > 0 && !this.#tag.startsWith('SELECT') });
  }
}

export interface Together {
  /** Of those that were completed before: the place of the one that failed, or all, where their commit did. */
  readonly completed: number;
  /** Whether nothing of them was committed, for certain. */
  readonly isUndone: boolean;
}

/** One of several statements failed, and with it all. */
export class TogetherError extends Error {
  readonly completed: number;
  readonly isUndone: boolean;
  constructor(cause: unknown, { completed, isUndone }: Together) {
    super('one of several statements failed', { cause });
    this.completed = completed;
    this.isUndone = isUndone;
  }
}

/** Statements before one Sync, which PostgreSQL takes as one transaction. A query of the driver, which pipelines no others. */
class CellQueries extends DriverQuery {
  readonly outcomes: Promise<readonly Outcome[]>;
  readonly #queries: readonly CellQuery[];
  readonly #statements: Statements;
  /** Names whose closing is sent with them. */
  readonly #closed: string[] = [];
  #connection: Connection | undefined;
  #completed = 0;
  #isSent = false;

  constructor(all: readonly Sql[], statements: Statements) {
    super('', []);
    this.#statements = statements;
    this.#queries = all.map((statement) => new CellQuery(statement, statements));
    this.outcomes = Promise.all(this.#queries.map(({ outcome }) => outcome));
  }

  /** Called once, when they are sent. What cannot be written as a message keeps all from being sent. */
  override submit(driverConnection: object): Error | null {
    const connection = driverConnection as Connection;
    this.#connection = connection;
    const gathered = this.#statements.oneWriteOn(connection);
    const gathering: Pick<Connection, 'sync' | 'close'> = {
      sync: () => undefined,
      close: (message) => {
        this.#closed.push(message.name);
        gathered.connection.close(message);
      },
    };
    const unsynced = Object.assign(Object.create(gathered.connection) as Connection, gathering);
    try {
      for (const query of this.#queries) query.append(connection, unsynced);
    } catch (error) {
      gathered.drop();
      return error as Error;
    }
    this.#isSent = true;
    gathered.connection.sync();
    gathered.send();
    return null;
  }

  override handleRowDescription(): void {}

  override handleDataRow(row: DataRow): void {
    this.#queries[this.#completed]?.handleDataRow(row);
  }

  override handleCommandComplete(message: CommandComplete): void {
    this.#queries[this.#completed++]?.handleCommandComplete(message);
  }

  override handleEmptyQuery(): void {
    this.#completed++;
  }

  /** Nothing was committed if the server says why, and is ready again. */
  override handleError(error: Error): void {
    if (!this.#isSent) this.#fail(error, true);
    else if (!isServerError(error) || mayBeCommitted(error, this.#completed >= this.#queries.length)) {
      this.#fail(error, false);
    } else this.#failOnceReady(error, this.#connection!);
  }

  #failOnceReady(error: Error, connection: Connection): void {
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

  override handleReadyForQuery(): void {
    if (this.#completed !== this.#queries.length) this.#fail(new Error('the connection lost an answer'), false);
    else for (const query of this.#queries) query.handleReadyForQuery();
  }

  #fail(cause: Error, isUndone: boolean): void {
    const completed = this.#completed;
    this.#queries[completed]?.note(cause);
    for (const name of this.#closed) this.#statements.preparedOn(this.#connection!).forget(name);
    const failure = new TogetherError(cause, { completed, isUndone });
    for (const [i, query] of this.#queries.entries()) query.fail(failure, i < completed);
  }
}

/** The statements of one database, over all its connections. */
export class Statements {
  readonly #mostPrepared: number;
  /** By text, the least recently used first: the name, with the second use. */
  readonly #names = new Map<string, string | undefined>();
  #renewals = 0;
  readonly #prepared = new WeakMap<Connection, PreparedNames>();
  readonly #oneWrites = new WeakMap<Connection, OneWrite<Connection>>();

  constructor(mostPrepared = MOST_PREPARED) {
    this.#mostPrepared = mostPrepared;
  }

  /** Never throws: what stands around the statement on the connection goes on where a value cannot be sent. */
  send(client: Pick<pg.ClientBase, 'query'>, statement: Sql): Promise<Outcome> {
    try {
      const query = new CellQuery(statement, this);
      client.query(query);
      return query.outcome;
    } catch (error) {
      return Promise.reject(error);
    }
  }

  /** As one transaction. Rejects with a `TogetherError`. */
  async sendTogether(client: Pick<pg.ClientBase, 'query'>, statements: readonly Sql[]): Promise<readonly Outcome[]> {
    return client.query(this.#together(statements)).outcomes;
  }

  #together(statements: readonly Sql[]): CellQueries {
    try {
      return new CellQueries(statements, this);
    } catch (error) {
      // A value that cannot be sent.
      throw new TogetherError(error, { completed: statements.length, isUndone: true });
    }
  }

  /**
   * A text gets a name with its second use, so that shapes which are asked once displace nothing.
   */
  nameOf(text: string): string | undefined {
    if (this.#mostPrepared === 0) return undefined;
    const isKnown = this.#names.has(text);
    const name = isKnown ? (this.#names.get(text) ?? hashOf(text)) : undefined;
    this.#names.delete(text);
    this.#names.set(text, name);
    if (this.#names.size > MOST_TEXTS) this.#names.delete(this.#names.keys().next().value!);
    return name;
  }

  /**
   * After a migration that changed what the statement returns. Under another name, every connection
   * prepares it again, also those that have the former one.
   */
  renew(text: string, name: string): void {
    if (this.#names.get(text) === name) this.#names.set(text, `${hashOf(text)}_${++this.#renewals}`);
  }

  oneWriteOn(connection: Connection): OneWrite<Connection> {
    const known = this.#oneWrites.get(connection) ?? oneWriteOf(connection);
    this.#oneWrites.set(connection, known);
    return known;
  }

  preparedOn(connection: Connection): PreparedNames {
    let names = this.#prepared.get(connection);
    if (names === undefined) {
      names = new PreparedNames(connection, this.#mostPrepared);
      this.#prepared.set(connection, names);
    }
    return names;
  }
}

const hashOf = (text: string): string => `b${createHash('sha256').update(text).digest('base64url').slice(0, 20)}`;
