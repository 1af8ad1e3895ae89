/**
 * A PostgreSQL server: a pool for transactions, and lanes of connections for reads, so that nothing slow holds up
 * anything else. No session needs to last between statements, so a pooler in transaction mode works.
 */
import type pg from 'pg';
import { param, raw, type Sql, sql, text } from '../sql.ts';
import { type Database, inLane, type Queryable, StoreError } from './contract.ts';
import { Connection } from './lanes/connection.ts';
import { LeasePool, type LeasePoolOptions } from './lanes/lease-pool.ts';
import { MOST_PENDING, Pipeline } from './lanes/pipeline.ts';
import { Reads, URGENT_CONNECTIONS } from './lanes/reads.ts';
import { Statements } from './lanes/statements.ts';
import { Writes } from './lanes/writes.ts';
import { Listener } from './listener.ts';
import { Replica } from './replica/replica.ts';
import { missingSettings, readServerUrl, SESSION_SETTINGS, TIME_LIMIT_MS, withSetting } from './server-url.ts';
import { openSession } from './session.ts';
import { transact } from './transaction.ts';

export interface PostgresOptions {
  readonly url: string;
  readonly replicaUrl?: string;
  /** Past a pooler, for LISTEN. */
  readonly directUrl?: string;
  /** The schema that holds the tables; the server's default otherwise. */
  readonly searchPath?: string;
  /** Connections for writes and transactions (default 16), for quick reads (4, twice), and for slow reads (3). */
  readonly poolSize?: number;
  readonly pipelines?: number;
  readonly slowReads?: number;
  /** How many prepared statements a connection keeps (default 256). */
  readonly preparedStatements?: number;
}

/** A slow statement takes one processor, and leaves the others to fast ones. */
const ONE_PROCESSOR = '-c max_parallel_workers_per_gather=0';

export async function openPostgres(options: PostgresOptions): Promise<Database> {
  const primary = new Server(options.url, options);
  const standby = options.replicaUrl === undefined ? undefined : new Server(options.replicaUrl, options);
  const writes = new Writes((size) => primary.pool(size), primary.statements.history, options.poolSize);
  const direct = options.directUrl === undefined ? primary : readServerUrl(options.directUrl, options.searchPath);
  // A pooler delivers no notifications, so caches are refreshed every 200 ms instead.
  const listener = direct.isPooled ? undefined : new Listener(direct.config);
  const database: Database = {
    kind: 'postgres',
    replicaFor: (callerId) => replica?.for(callerId) ?? database,
    noteWrite: async (callerId) => replica?.noteWrite(callerId),
    rows: (statement, more) => primary.reads.rows(statement, more),
    run: (statement) => writes.run(statement),
    write: (statement, target) => writes.write(statement, target),
    transaction: (work, more) => transact(() => writes.lease(more?.unlimited), work, more),
    openSession: direct.isPooled ? undefined : () => openSession(direct.config),
    listen: listener === undefined ? hearNothing : (...request) => listener.listen(...request),
    async notify(channel, payload) {
      await database.rows(notifyStatement(channel, payload), { lane: 'urgent' });
    },
    async ping() {
      await database.rows(PING, { lane: 'urgent' });
    },
    async close() {
      replica?.close();
      const lanes = [writes, primary, standby, listener];
      await Promise.all(lanes.map((lane) => lane?.close()));
    },
  };
  const replica =
    standby && new Replica({ standby: standby.reads, primary: database, maxLag: standby.maxLag, listener });
  await checkStart(database, async () => {
    const urgent = inLane(database, 'urgent');
    await writes.findTriggers(urgent);
    if (primary.isPooled) await checkPooledSettings(urgent);
  });
  await replica?.listen();
  return database;
}

const hearNothing: Database['listen'] = async (_channel, _onMessage, onState) => {
  onState(false);
  return async () => undefined;
};

/** Closes a database that cannot be used. */
async function checkStart(database: Database, check: () => Promise<void>): Promise<void> {
  try {
    await check();
  } catch (error) {
    await database.close();
    throw startError(error);
  }
}

/** The connections to one server. */
class Server {
  readonly config: pg.ClientConfig;
  readonly isPooled: boolean;
  readonly maxLag: number;
  readonly reads: Reads;
  readonly statements: Statements;

  constructor(url: string, { searchPath, pipelines = 4, slowReads = 3, preparedStatements }: PostgresOptions) {
    const { config, isPooled, maxLag } = readServerUrl(url, searchPath);
    this.config = config;
    this.isPooled = isPooled;
    this.maxLag = maxLag;
    this.statements = new Statements(isPooled ? 0 : preparedStatements);
    const pipelined = Array.from({ length: pipelines }, () => new Connection(config, isPooled));
    this.reads = new Reads({
      history: this.statements.history,
      pipeline: new Pipeline(pipelined, this.statements),
      // A burst of new texts waits as it would in the pipeline.
      pool: this.pool(pipelines, { mostWaiting: MOST_PENDING * pipelines, maxWaitMs: TIME_LIMIT_MS }),
      slowPool: this.pool(slowReads, { config: withSetting(config, ONE_PROCESSOR) }),
      urgentPool: this.pool(URGENT_CONNECTIONS),
    });
  }

  pool(size: number, more: Partial<LeasePoolOptions> = {}): LeasePool {
    const { config, isPooled, statements } = this;
    return new LeasePool({ config, isPooled, statements, size, ...more });
  }

  close(): Promise<void> {
    return this.reads.close();
  }
}

/** Throws what the operator must set for connections that a pooler lends. */
async function checkPooledSettings(q: Pick<Queryable, 'rows'>): Promise<void> {
  const rows = await q.rows(sql`
    SELECT name, setting, quote_ident(current_user)
      FROM pg_settings
     WHERE name = ANY(${param('text[]', SESSION_SETTINGS)})`);
  const actual = new Map(rows.map(([name, setting]) => [name!, setting!]));
  const missing = missingSettings(rows[0]?.[2] ?? 'the_role', actual);
  if (missing.length === 0) return;
  throw new Error(
    `through a pooler, the settings of connections belong to the role; run this as its owner, and RECONNECT the pooler:\n${missing.join('\n')}`,
  );
}

/** Explains a pooler's error on start-up settings. */
function startError(error: unknown): unknown {
  const reason = error instanceof StoreError && error.cause instanceof Error ? error.cause.message : '';
  if (!reason.includes('startup parameter')) return error;
  return new Error(
    `a pooler stands between the service and the database (${reason}); add \`pooler=transaction\` to the query of DATABASE_URL, ` +
      'and give DATABASE_DIRECT_URL for notifications',
    { cause: error },
  );
}

export const PING: Sql = raw('SELECT 1');
export const notifyStatement = (channel: string, payload: string): Sql =>
  sql`SELECT pg_notify(${text(channel)}, ${text(payload)})`;
