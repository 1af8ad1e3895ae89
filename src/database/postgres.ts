/**
 * A PostgreSQL server: a pool for transactions, and lanes of connections for reads, so that nothing
 * slow holds up anything else. Nothing here needs a session to last between statements, so a pooler
 * in transaction mode may stand in between.
 */
import type pg from 'pg';
import { param, raw, type Sql, sql, text } from '../sql.ts';
import { type Database, type Queryable, StoreError } from './contract.ts';
import { CellClient } from './lanes/cell-client.ts';
import { Silence } from './lanes/dead-connections.ts';
import { LeasePool } from './lanes/lease-pool.ts';
import { Pipeline } from './lanes/pipeline.ts';
import { GRACE_MS, Reads } from './lanes/reads.ts';
import { SlowShapes } from './lanes/slow-shapes.ts';
import { StatementLimits } from './lanes/statement-limits.ts';
import { Statements } from './lanes/statements.ts';
import { Writes } from './lanes/writes.ts';
import { Listener } from './listener.ts';
import { Replica, type ReplicaOptions } from './replica/replica.ts';
import { readWriters, WRITE_CHANNEL, WriteNews } from './replica/write-announcements.ts';
import { missingSettings, readServerUrl, SESSION_SETTINGS, TIME_LIMIT_MS, withSetting } from './server-url.ts';
import { openSession } from './session.ts';
import { mustNotHoldConnection, transact } from './transaction.ts';

export interface PostgresOptions {
  readonly url: string;
  readonly replicaUrl?: string;
  /** Past a pooler, for LISTEN. */
  readonly directUrl?: string;
  /** The schema that holds the tables; the server's default otherwise. */
  readonly searchPath?: string;
  /**
   * Connections for writes and transactions (default 16), for reads (default 4), and for slow reads (default
   * 3).
   */
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
  const writes = new Writes((size, settings) => primary.pool(size, { settings }), options.poolSize);
  const urgent = primary.urgent();
  const direct = options.directUrl === undefined ? primary : readServerUrl(options.directUrl, options.searchPath);
  // Through a pooler, nothing is heard: what is remembered is asked again within 200 ms instead.
  const listener = direct.isPooled ? undefined : new Listener(direct.config);
  const database: Database = {
    kind: 'postgres',
    replicaFor: (callerId) => replica?.for(callerId) ?? database,
    async noteWrite(callerId) {
      const end = replica?.beginWrite(callerId);
      const position = await news?.tell(callerId);
      if (position !== undefined) end?.(position);
    },
    async rows(statement, options = {}) {
      if (options.lane !== 'urgent') return primary.reads.rows(statement, options);
      mustNotHoldConnection();
      return urgent.rows(statement);
    },
    run: (statement) => writes.run(statement),
    write: (statement, target) => writes.write(statement, target),
    transaction: (work, more) => transact(() => writes.lease(more?.unlimited), work, more),
    openSession: direct.isPooled ? undefined : () => openSession(direct.config),
    listen: listener === undefined ? hearNothing : (...request) => listener.listen(...request),
    async notify(channel, payload) {
      await urgent.rows(notifyStatement(channel, payload));
    },
    async ping() {
      await urgent.rows(PING);
    },
    async close() {
      replica?.close();
      const lanes = [writes, urgent, standbyProbe, primary, standby, listener];
      await Promise.all(lanes.map((lane) => lane?.close()));
    },
  };
  const standbyProbe = standby?.urgent();
  const hearAll = listener && (() => listener.hearAll());
  const probes = standbyProbe && { standbyProbe, primaryProbe: urgent, hearAll };
  const replica = standby && probes && replicaOf(standby, database, probes);
  const news = replica && listener && new WriteNews((ids) => sendWriters(urgent, ids));
  await checkStart(database, async () => {
    await writes.findTriggers(urgent);
    if (primary.isPooled) await checkPooledSettings(urgent);
  });
  if (replica !== undefined && listener !== undefined) await hearWriters(replica, listener);
  return database;
}

type Probes = Pick<ReplicaOptions, 'standbyProbe' | 'primaryProbe' | 'hearAll'>;

const replicaOf = ({ reads, maxLag }: Server, primary: Database, probes: Probes): Replica =>
  new Replica({ standby: reads, primary, maxLag, ...probes });

async function hearWriters(replica: Replica, listener: Listener): Promise<void> {
  await listener.listen(
    WRITE_CHANNEL,
    (payload) => replica.noteWriters(readWriters(payload)),
    (isUp) => replica.hears(isUp),
  );
}

/** What is committed by now lies before the position. */
async function sendWriters(q: Pick<Queryable, 'rows'>, ids: string): Promise<bigint> {
  const rows = await q.rows(sql`
    SELECT log.position, pg_notify(${text(WRITE_CHANNEL)}, log.position || ':' || ${text(ids)})
      FROM (SELECT (pg_current_wal_insert_lsn() - '0/0'::pg_lsn)::text AS position) AS log`);
  return BigInt(rows[0]![0]!);
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

interface PoolKind {
  /** Of the session, as flags. */
  readonly settings?: string;
  /** Whether its holder sends statements without waiting for those before. */
  readonly pipeline?: boolean;
}

/** The connections to one server. */
class Server {
  readonly config: pg.ClientConfig;
  readonly isPooled: boolean;
  readonly maxLag: number;
  readonly reads: Reads;
  readonly #statements: Statements;
  /** A pooler makes up the process ids, and there is nothing to look up by them. */
  readonly #silence: Silence | undefined;
  readonly #slowPool: LeasePool;

  constructor(url: string, { searchPath, pipelines = 4, slowReads = 3, preparedStatements }: PostgresOptions) {
    const { config, isPooled, maxLag } = readServerUrl(url, searchPath);
    this.config = config;
    this.isPooled = isPooled;
    this.maxLag = maxLag;
    const statements = new Statements(isPooled ? 0 : preparedStatements);
    this.#statements = statements;
    this.#silence = isPooled ? undefined : new Silence(config);
    this.#slowPool = this.pool(slowReads, { settings: ONE_PROCESSOR, pipeline: true });
    this.reads = new Reads({
      connect: (settings) => this.#connect(settings),
      statements,
      slowPool: this.#slowPool,
      limits: new StatementLimits({ usual: TIME_LIMIT_MS, isPooled }),
      size: pipelines,
      mostPrivate: pipelines,
      timeLimit: TIME_LIMIT_MS,
    });
  }

  pool(size: number, { settings = '', pipeline = false }: PoolKind = {}): LeasePool {
    return new LeasePool({
      config: { ...withSetting(this.config, settings), pipeline } as pg.ClientConfig,
      size,
      statements: this.#statements,
      onConnect: (client) => this.#silence?.watch(client),
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
    await Promise.all([this.reads.close(), this.#slowPool.close()]);
    // What is under way may be waiting for a server that is gone.
    this.#silence?.close();
  }

  async #connect(settings = ''): Promise<pg.Client> {
    const client = new CellClient({ ...withSetting(this.config, settings), pipeline: true } as pg.ClientConfig);
    // Until the pipeline listens.
    client.on('error', () => undefined);
    await client.connect();
    this.#silence?.watch(client);
    return client;
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

/** What a pooler says of start-up settings, as a sentence. */
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
