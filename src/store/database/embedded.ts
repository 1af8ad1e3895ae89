/**
 * PostgreSQL inside this process (PGlite), in a thread of its own: one connection, on which
 * statements and transactions take turns.
 */
import { chmod } from 'node:fs/promises';
import { join } from 'node:path';
import type pg from 'pg';
import { invariant } from '../../invariant.ts';
import { ident, raw, type Sql } from '../../sql.ts';
import { codeOf } from '../../thrown.ts';
import { CellClient } from './cell-client.ts';
import { type Database, type Queryable, StoreError } from './contract.ts';
import { damaged, requireSameVersion } from './data-folder.ts';
import { EngineStream } from './engine-stream.ts';
import { EngineThread } from './engine-thread.ts';
import { lockFolder } from './folder-lock.ts';
import { GatheredStatements } from './gathered-statements.ts';
import { planOf } from './planner.ts';
import { notifyStatement, PING } from './postgres.ts';
import { QueueEstimate } from './queue-estimate.ts';
import { type Outcome, Statements } from './statements.ts';
import { isDivisionByZero } from './to-store-error.ts';
import { type Lease, mustNotHoldConnection, retried, transact } from './transaction.ts';

export interface EmbeddedOptions {
  /** In memory without it. */
  readonly dataDir?: string;
  readonly searchPath?: string;
  /**
   * The initial content of one in memory, from `dumpDataDir`: several times faster to read than to
   * make.
   */
  readonly snapshot?: Blob;
  readonly preparedStatements?: number;
}

const MAX_QUEUED = 2_000;

export async function openEmbedded(options: EmbeddedOptions): Promise<Database> {
  const lock = options.dataDir === undefined ? undefined : await lockFolder(options.dataDir);
  let engine: EngineThread | undefined;
  try {
    engine = await startEngine(options);
    const client = await connect(engine, options.searchPath);
    const statements = new Statements(options.preparedStatements);
    const close = async (): Promise<void> => {
      await client.end();
      await engine?.close();
      await lock?.release();
    };
    return databaseOn({ client, statements, close, folder: folderOf(options) });
  } catch (error) {
    await engine?.close();
    await lock?.release();
    throw error;
  }
}

const folderOf = ({ dataDir }: EmbeddedOptions): string | undefined =>
  dataDir === undefined ? undefined : join(dataDir, 'database');

async function startEngine(options: EmbeddedOptions): Promise<EngineThread> {
  const folder = folderOf(options);
  if (folder === undefined) return EngineThread.start({ snapshot: await options.snapshot?.arrayBuffer() });
  await requireSameVersion(folder);
  const engine = await EngineThread.start({ folder }).catch((error: unknown) => {
    throw isOfSystem(error) ? error : damaged(folder, error);
  });
  await chmod(folder, 0o700);
  return engine;
}

/** Of a folder that may not be read or written, a thread that cannot be had, a package that is not there: none is damaged. */
const isOfSystem = (error: unknown): boolean =>
  error instanceof Error && ('syscall' in error || String(codeOf(error)).startsWith('ERR_'));

async function connect(engine: EngineThread, searchPath: string | undefined): Promise<pg.Client> {
  const stream = () => new EngineStream(engine);
  // Every option that the environment could change is set here.
  const client = new CellClient({
    stream,
    ssl: false,
    user: 'postgres',
    database: 'postgres',
  });
  client.on('error', () => undefined);
  await client.connect();
  await client.query(
    `SET TimeZone = 'UTC'; SET DateStyle = 'ISO'; SET bytea_output = 'hex'; SET extra_float_digits = 1`,
  );
  if (searchPath) await client.query(`SET search_path = ${ident(searchPath).text}`);
  return client;
}

/**
 * Milliseconds that one unit of the planner's cost takes at least. A sequential scan of a million rows
 * costs some 20,000 and takes 300 ms; but a recursive query over tables without statistics is
 * expected to cost ten times what it does, and must not be refused.
 */
const MS_OF_COST = 0.002;

/**
 * Nothing can end a statement here, so the planner's estimate decides before it runs. Throws
 * `time_limit`.
 */
async function mustBeCheap(rows: Queryable['rows'], statement: Sql, limitMs: number): Promise<void> {
  const cost = (await planOf({ slowRows: rows }, statement))['Total Cost'];
  if (cost * MS_OF_COST <= limitMs) return;
  throw new StoreError('time_limit', undefined, new Error(`expected to cost ${cost}`));
}

/** Divides by nothing once the statement has run for so long; of the clock, so that it is not computed beforehand. */
const inTime = (ms: number): Sql =>
  raw(
    `(clock_timestamp() < statement_timestamp() + interval '${Math.ceil(ms)} ms' OR 1 / (extract(epoch FROM clock_timestamp()) * 0)::int = 1)`,
  );

/** First come, first served. */
class Turns {
  readonly #estimate = new QueueEstimate(1, MAX_QUEUED);
  #last: Promise<void> = Promise.resolve();
  #waiting = 0;

  /** Resolves when all that came until now have been served. */
  get served(): Promise<void> {
    return this.#last;
  }

  /** One that is not a `statement` says nothing of how long the others take. */
  async take(isStatement: boolean): Promise<() => void> {
    this.#estimate.admit(this.#waiting);
    this.#waiting++;
    const before = this.#last;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#last = promise;
    await before;
    this.#waiting--;
    const since = performance.now();
    return () => {
      if (isStatement) this.#estimate.note(performance.now() - since);
      resolve();
    };
  }
}

interface Engine {
  readonly client: pg.Client;
  readonly statements: Statements;
  readonly close: () => Promise<void>;
  readonly folder: string | undefined;
}

/** The one connection, for one statement or one transaction at a time. */
class Connection {
  readonly #engine: Engine;
  readonly #turns = new Turns();
  readonly #slowTurns = new Turns();

  constructor(engine: Engine) {
    this.#engine = engine;
  }

  async lease(isStatement = true): Promise<Lease> {
    const { client, statements } = this.#engine;
    const release = await this.#turns.take(isStatement);
    return {
      command: (text) => client.query(text),
      send: (statement) => statements.send(client, statement),
      sendTogether: (all) => statements.sendTogether(client, all),
      release,
    };
  }

  async alone(statement: Sql): Promise<Outcome> {
    mustNotHoldConnection();
    const { send, release } = await this.lease();
    try {
      // After a migration, a statement that was prepared before it has to be prepared again.
      return await retried(() => send(statement));
    } finally {
      release(false);
    }
  }

  /** One at a time waits for the connection, so that what is fast waits for one at most. */
  async slowly(statement: Sql): Promise<Outcome> {
    mustNotHoldConnection();
    const release = await this.#slowTurns.take(true);
    try {
      return await this.alone(statement);
    } finally {
      release();
    }
  }

  async copyFolder(copy: (folder: string) => Promise<void>): Promise<void> {
    const { folder } = this.#engine;
    invariant(folder !== undefined, 'a database in memory has no folder');
    mustNotHoldConnection();
    const { send, release } = await this.lease(false);
    try {
      await send(raw('CHECKPOINT'));
      await copy(folder);
    } finally {
      release(false);
    }
  }

  /** Waits for what is under way. */
  async close(): Promise<void> {
    await this.#slowTurns.served;
    const { release } = await this.lease();
    await this.#engine.close();
    release(false);
  }
}

function databaseOn(engine: Engine): Database {
  const connection = new Connection(engine);
  const lease = () => connection.lease();
  const alone = (statement: Sql): Promise<Outcome> => connection.alone(statement);
  const gathered = new GatheredStatements({ lease, alone, connections: 1, mostUnanswered: MAX_QUEUED });
  const rows = (statement: Sql) => gathered.rows(statement);
  const database: Database = {
    kind: 'embedded',
    rows,
    rowsOfTenant: rows,
    async slowRows(statement, limitMs) {
      const slow = async (each: Sql) => (await connection.slowly(each)).rows;
      if (limitMs === undefined) return slow(statement);
      await mustBeCheap(rows, statement, limitMs);
      return slow(statement).catch((error: unknown) => {
        throw isDivisionByZero(error) ? new StoreError('time_limit', undefined, error) : error;
      });
    },
    statementInTime: inTime,
    replicaFor: () => database,
    noteWrite: async () => undefined,
    get urgent() {
      return database;
    },
    run: async (statement) => (await alone(statement)).count,
    write: (statement, target) => gathered.rows(statement, target),
    transaction: (work, options) => transact(lease, work, options),
    ...(engine.folder !== undefined && { copyFolder: (copy) => connection.copyFolder(copy) }),
    listen: (channel, onMessage, onState) =>
      listenOn({ client: engine.client, alone }, channel, { onMessage, onState }),
    async notify(channel, payload) {
      // One of several equal ones of a transaction would be heard once.
      await alone(notifyStatement(channel, payload));
    },
    async ping() {
      await rows(PING);
    },
    async close() {
      await gathered.close();
      await connection.close();
    },
  };
  return database;
}

interface ListenClient {
  readonly client: pg.Client;
  readonly alone: (statement: Sql) => Promise<unknown>;
}
interface ListenHandlers {
  readonly onMessage: (payload: string) => void;
  readonly onState: (up: boolean) => void;
}

async function listenOn(
  { client, alone }: ListenClient,
  channel: string,
  { onMessage, onState }: ListenHandlers,
): Promise<() => Promise<void>> {
  const deliver = (message: pg.Notification) => {
    if (message.channel === channel) onMessage(message.payload ?? '');
  };
  client.on('notification', deliver);
  await alone(sqlListen(channel));
  onState(true);
  return async () => {
    client.off('notification', deliver);
  };
}

const sqlListen = (channel: string): Sql => raw(`LISTEN ${ident(channel).text}`);
