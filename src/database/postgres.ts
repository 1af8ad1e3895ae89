/**
 * A PostgreSQL server, perhaps with a standby. No session needs to last between statements, so a pooler in transaction
 * mode works.
 */
import { raw, type Sql, sql, text } from '../sql.ts';
import { isCitus } from './citus.ts';
import { type Cells, type Database, type DatabaseSession, inLane, type Queryable, StoreError } from './contract.ts';
import { type LaneSizes, ServerLanes } from './lanes/server-lanes.ts';
import { Statements } from './lanes/statements.ts';
import { Listener } from './listener.ts';
import { CellClient, countOf, type Outcome } from './pg-internals.ts';
import { Replica } from './replica/replica.ts';
import { MISSING_SETTINGS, readServerUrl, type ServerUrl } from './server-url.ts';
import { throwStoreError } from './to-store-error.ts';
import { transact } from './transaction.ts';

export interface PostgresOptions extends LaneSizes {
  readonly url: string;
  readonly replicaUrl?: string;
  /** Past a pooler, for LISTEN. */
  readonly directUrl?: string;
}

export async function openPostgres(options: PostgresOptions): Promise<Database> {
  const { url, replicaUrl, directUrl } = options;
  const server = readServerUrl(url);
  const primary = new ServerLanes(server, options);
  const second = replicaUrl === undefined ? undefined : readServerUrl(replicaUrl);
  const standby = second && new ServerLanes(second, options);
  const direct = directUrl === undefined ? server : readServerUrl(directUrl);
  // A pooler delivers no notifications, so caches are refreshed every 200 ms instead.
  const listener = direct.isPooled ? undefined : new Listener(direct.config);
  const close = () => Promise.all([primary, standby, listener].map((each) => each?.close()));
  const urgent = inLane(primary, 'urgent');
  let isCluster: boolean;
  try {
    isCluster = await isCitus(urgent);
    if (server.isPooled) await checkPooledSettings(urgent);
  } catch (error) {
    await close();
    throw startError(error);
  }
  const database: Database = {
    kind: 'postgres',
    isCluster,
    replicaFor: (callerId) => replica?.for(callerId) ?? database,
    noteWrite: async (callerId) => replica?.noteWrite(callerId),
    rows: (statement, more) => primary.rows(statement, more),
    run: (statement) => primary.run(statement),
    write: (statement, target) => primary.write(statement, target),
    separateWritesTo: (tables) => primary.separateWritesTo(tables),
    transaction: (work, more) => transact(() => primary.lease(more?.unlimited), work, more),
    openSession: direct.isPooled ? undefined : () => openSession(direct),
    listen: listener === undefined ? hearNothing : (subscription) => listener.listen(subscription),
    notify: (channel, payload) => urgent.rows(notifyStatement(channel, payload)),
    ping: () => urgent.rows(PING),
    async close() {
      replica?.close();
      await close();
    },
  };
  const replica = second && standby && new Replica({ standby, primary: database, maxLag: second.maxLag, listener });
  await replica?.listen();
  return database;
}

/** Building an index takes hours on a large table. */
const NO_TIME_LIMITS = '-c statement_timeout=0 -c lock_timeout=0';

async function openSession({ config }: ServerUrl): Promise<DatabaseSession> {
  const client = new CellClient({ ...config, options: `${config.options} ${NO_TIME_LIMITS}` });
  const statements = new Statements(0);
  const send = (statement: Sql): Promise<Outcome> => statements.send(client, statement).catch(throwStoreError);
  await client.connect();
  return {
    rows: async (statement): Promise<readonly Cells[]> => (await send(statement)).rows,
    run: async (statement) => countOf(await send(statement)),
    close: () => client.end(),
  };
}

const hearNothing: Database['listen'] = async ({ onState }) => {
  onState(false);
  return async () => undefined;
};

/** Throws what the operator must set for connections that a pooler lends. */
async function checkPooledSettings(q: Pick<Queryable, 'rows'>): Promise<void> {
  const missing = await q.rows(MISSING_SETTINGS);
  if (missing.length === 0) return;
  throw new Error(
    `through a pooler, the settings of connections belong to the role; run this as its owner, and RECONNECT the pooler:\n${missing.flat().join('\n')}`,
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
