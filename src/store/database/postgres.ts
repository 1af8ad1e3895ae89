/**
 * A PostgreSQL server: a pool for transactions, and a few pipelined connections for reads, on which
 * requests share round trips. Nothing here needs a session to last between statements, so a pooler
 * in transaction mode may stand in between.
 */
import pg from 'pg';
import { raw, type Sql, sql, text } from '../../sql.ts';
import { type Database, type Queryable, StoreError } from './contract.ts';
import { Listener } from './listener.ts';
import { Pipeline } from './pipeline.ts';
import { type Outcome, Statements } from './statements.ts';
import { isStalePlan, isTransient, toStoreError } from './to-store-error.ts';
import { type Lease, mustNotHoldConnection, retried, transact } from './transaction.ts';

export interface PostgresOptions {
  readonly url: string;
  readonly replicaUrl?: string;
  /** The schema that holds the tables; the server's default otherwise. */
  readonly searchPath?: string;
  /** Connections for transactions (default 10), and for reads (default 4). */
  readonly poolSize?: number;
  readonly pipelines?: number;
  /** How many prepared statements a connection keeps (default 256). */
  readonly preparedStatements?: number;
}

const MAX_WAITING = 1_000;
const CONNECT_TIMEOUT_MS = 5_000;

/**
 * Settings of every connection, independent of the server's, so that cells have one format. Times
 * in milliseconds.
 */
const SESSION: Readonly<Record<string, string>> = {
  TimeZone: 'UTC',
  DateStyle: 'ISO',
  bytea_output: 'hex',
  extra_float_digits: '1',
  statement_timeout: '15000',
  idle_in_transaction_session_timeout: '30000',
};

export async function openPostgres(options: PostgresOptions): Promise<Database> {
  const primary = clientConfigOf(options.url, options.searchPath);
  const pipelines = options.pipelines ?? 4;
  const pool = new pg.Pool({ ...primary, max: options.poolSize ?? 10, idleTimeoutMillis: 30_000 });
  // An idle connection that breaks is the pool's own affair: it is replaced at the next use.
  pool.on('error', () => undefined);
  // One that breaks in use fails the statement under way or the next; unheard, its event would end
  // the process.
  pool.on('connect', (client) => client.on('error', () => undefined));
  const statements = new Statements(options.preparedStatements);
  const reads = new Pipeline(primary, statements, pipelines);
  const stale = options.replicaUrl
    ? new Pipeline(clientConfigOf(options.replicaUrl, options.searchPath), statements, pipelines)
    : undefined;
  const listener = new Listener(primary);
  const lease = () => leaseFrom(pool, statements);
  const run = async (statement: Sql) => (await retried(() => once(lease, statement))).count;
  const replica: Queryable | undefined = stale && { rows: (s) => stale.rows(s), run };

  const database: Database = {
    kind: 'postgres',
    get replica() {
      return replica ?? database;
    },
    rows: (statement) => reads.rows(statement),
    run,
    write: async (statement) => (await retried(() => once(lease, statement))).rows,
    transaction: (work) => transact(lease, work),
    listen: (channel, onMessage, onState) => listener.listen(channel, onMessage, onState),
    async notify(channel, payload) {
      await reads.rows(notifyStatement(channel, payload));
    },
    async ping() {
      await reads.rows(PING);
    },
    async close() {
      await Promise.all([pool.end(), reads.close(), stale?.close(), listener.close()]);
    },
  };
  try {
    await database.ping();
  } catch (error) {
    await database.close();
    throw error;
  }
  return database;
}

function clientConfigOf(url: string, searchPath: string | undefined): pg.ClientConfig {
  const [address = url, query = ''] = url.split(/\?(.*)/s);
  const keys = new URLSearchParams(query);
  const settings = { ...SESSION, ...(searchPath ? { search_path: searchPath } : {}) };
  const flags = Object.entries(settings).map(([name, value]) => `-c ${name}=${value}`);
  // Later flags win; those of the address are the operator's wish.
  const options = [...flags, keys.get('options') ?? ''].join(' ').trim();
  keys.delete('options');
  const rest = keys.size > 0 ? `?${keys}` : '';
  return {
    connectionString: `${address}${rest}`,
    options,
    keepAlive: true,
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    application_name: 'bylaw',
  };
}

async function leaseFrom(pool: pg.Pool, statements: Statements): Promise<Lease> {
  if (pool.waitingCount >= MAX_WAITING) throw new StoreError('unavailable', undefined, new Error('the queue is full'));
  try {
    const client = await pool.connect();
    return {
      client,
      send: (statement) => statements.send(client, statement),
      release: (destroy) => client.release(destroy),
    };
  } catch (error) {
    throw toStoreError(error);
  }
}

/** One statement outside a transaction. What another try may cure keeps its own shape. */
async function once(lease: () => Promise<Lease>, statement: Sql): Promise<Outcome> {
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
