/**
 * A PostgreSQL server: a pool for transactions, and lanes of connections for reads, so that nothing
 * slow holds up anything else. Nothing here needs a session to last between statements, so a pooler
 * in transaction mode may stand in between.
 */
import pg from 'pg';
import { raw, type Sql, sql, text } from '../../sql.ts';
import { type Database, StoreError } from './contract.ts';
import { LeasePool } from './lease-pool.ts';
import { Listener } from './listener.ts';
import { Pipeline } from './pipeline.ts';
import { GRACE_MS, Reads } from './reads.ts';
import { Replica } from './replica.ts';
import { Silence } from './silence.ts';
import { SlowShapes } from './slow-shapes.ts';
import { type Outcome, Statements } from './statements.ts';
import { isStalePlan, isTransient, toStoreError } from './to-store-error.ts';
import { type Lease, mustNotHoldConnection, retried, transact } from './transaction.ts';

export interface PostgresOptions {
  readonly url: string;
  readonly replicaUrl?: string;
  /** The schema that holds the tables; the server's default otherwise. */
  readonly searchPath?: string;
  /**
   * Connections for transactions (default 10), for reads (default 4), and for slow reads (default
   * 4).
   */
  readonly poolSize?: number;
  readonly pipelines?: number;
  readonly slowReads?: number;
  /** How many prepared statements a connection keeps (default 256). */
  readonly preparedStatements?: number;
}

const CONNECT_TIMEOUT_MS = 5_000;
/** Milliseconds of silence after which the kernel asks whether the other end is there. */
const KEEP_ALIVE_MS = 10_000;
const TIME_LIMIT_MS = 15_000;

/**
 * Settings of every connection, independent of the server's, so that cells have one format. Times
 * in milliseconds.
 */
const SESSION: Readonly<Record<string, string>> = {
  TimeZone: 'UTC',
  DateStyle: 'ISO',
  bytea_output: 'hex',
  extra_float_digits: '1',
  statement_timeout: String(TIME_LIMIT_MS),
  idle_in_transaction_session_timeout: '30000',
};

/** A slow statement takes one processor, and leaves the others to fast ones. */
const ONE_PROCESSOR = '-c max_parallel_workers_per_gather=0';

export async function openPostgres(options: PostgresOptions): Promise<Database> {
  const statements = new Statements(options.preparedStatements);
  const primary = new Server(options.url, statements, options);
  const standby = options.replicaUrl === undefined ? undefined : new Server(options.replicaUrl, statements, options);
  const transactions = primary.pool(options.poolSize ?? 10);
  const urgent = primary.urgent();
  const listener = new Listener(primary.config);
  const lease = (unlimited = false) => transactions.lease(unlimited ? undefined : TIME_LIMIT_MS + GRACE_MS);
  const run = async (statement: Sql) => (await retried(() => onLease(lease, statement))).count;
  const database: Database = {
    kind: 'postgres',
    get replica() {
      return replica ?? database;
    },
    replicaFor: (callerId) => replica?.for(callerId) ?? database,
    noteWrite: (callerId) => replica?.noteWrite(callerId),
    urgent: {
      async rows(statement) {
        mustNotHoldConnection();
        return urgent.rows(statement);
      },
      run,
    },
    rows: (statement) => primary.reads.rows(statement),
    slowRows: (statement, limitMs) => primary.reads.slowRows(statement, limitMs),
    run,
    write: async (statement) => (await retried(() => onLease(lease, statement))).rows,
    transaction: (work, more) => transact(() => lease(more?.unlimited), work, more),
    listen: (channel, onMessage, onState) => listener.listen(channel, onMessage, onState),
    async notify(channel, payload) {
      await urgent.rows(notifyStatement(channel, payload));
    },
    async ping() {
      await urgent.rows(PING);
    },
    async close() {
      replica?.close();
      const probes = [urgent.close(), standbyProbe?.close()];
      await Promise.all([transactions.close(), ...probes, primary.close(), standby?.close(), listener.close()]);
    },
  };
  const standbyProbe = standby?.urgent();
  const replica =
    standby &&
    standbyProbe &&
    new Replica({
      standby: standby.reads,
      primary: database,
      standbyProbe,
      primaryProbe: urgent,
      maxLag: maxLagOf(options.replicaUrl!),
    });
  try {
    await database.ping();
  } catch (error) {
    await database.close();
    throw error;
  }
  return database;
}

/** The connections to one server. */
class Server {
  readonly config: pg.ClientConfig;
  readonly reads: Reads;
  readonly #statements: Statements;
  readonly #silence: Silence;
  readonly #slowPool: LeasePool;

  constructor(url: string, statements: Statements, { searchPath, pipelines = 4, slowReads = 3 }: PostgresOptions) {
    this.config = clientConfigOf(url, searchPath);
    this.#statements = statements;
    this.#silence = new Silence(this.config);
    this.#slowPool = this.pool(slowReads, ONE_PROCESSOR);
    this.reads = new Reads({
      connect: () => this.#connect(),
      statements,
      slowPool: this.#slowPool,
      size: pipelines,
      mostPrivate: pipelines,
      timeLimit: TIME_LIMIT_MS,
    });
  }

  pool(size: number, settings = ''): LeasePool {
    return new LeasePool({
      config: { ...this.config, options: `${this.config.options} ${settings}`.trim() },
      size,
      statements: this.#statements,
      onConnect: (client) => this.#silence.watch(client),
    });
  }

  urgent(): Pipeline {
    return new Pipeline({
      connect: () => this.#connect(),
      statements: this.#statements,
      shapes: new SlowShapes(),
      size: 1,
      mostPrivate: 1,
      deadlineMs: TIME_LIMIT_MS + GRACE_MS,
    });
  }

  async close(): Promise<void> {
    this.#silence.close();
    await Promise.all([this.reads.close(), this.#slowPool.close()]);
  }

  async #connect(): Promise<pg.Client> {
    const client = new pg.Client({ ...this.config, pipeline: true } as pg.ClientConfig);
    // Until the pipeline listens.
    client.on('error', () => undefined);
    await client.connect();
    this.#silence.watch(client);
    return client;
  }
}

const MAX_LAG = 'max_lag';
const MAX_LAG_MS = 1_000;

/** `max_lag` of the replica's URL, in seconds. */
function maxLagOf(url: string): number {
  const given = Number(new URLSearchParams(url.split(/\?(.*)/s)[1]).get(MAX_LAG) ?? Number.NaN);
  return Number.isFinite(given) && given >= 0 ? given * 1_000 : MAX_LAG_MS;
}

function clientConfigOf(url: string, searchPath: string | undefined): pg.ClientConfig {
  const [address = url, query = ''] = url.split(/\?(.*)/s);
  const keys = new URLSearchParams(query);
  const settings = { ...SESSION, ...(searchPath ? { search_path: searchPath } : {}) };
  const flags = Object.entries(settings).map(([name, value]) => `-c ${name}=${value}`);
  // Later flags win; those of the address are the operator's wish.
  const options = [...flags, keys.get('options') ?? ''].join(' ').trim();
  keys.delete('options');
  keys.delete(MAX_LAG);
  const rest = keys.size > 0 ? `?${keys}` : '';
  return {
    connectionString: `${address}${rest}`,
    options,
    keepAlive: true,
    keepAliveInitialDelayMillis: KEEP_ALIVE_MS,
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    application_name: 'bylaw',
  };
}

/** One statement outside a transaction. What another try may cure keeps its own shape. */
async function onLease(lease: () => Promise<Lease>, statement: Sql): Promise<Outcome> {
  mustNotHoldConnection();
  const held = await lease();
  let destroy = false;
  try {
    return await held.send(statement);
  } catch (error) {
    if (isTransient(error)) {
      destroy = isStalePlan(error);
      throw error;
    }
    const mapped = toStoreError(error);
    destroy = mapped instanceof StoreError && mapped.kind === 'unavailable';
    throw mapped;
  } finally {
    held.release(destroy);
  }
}

export const PING: Sql = raw('SELECT 1');
export const notifyStatement = (channel: string, payload: string): Sql =>
  sql`SELECT pg_notify(${text(channel)}, ${text(payload)})`;
