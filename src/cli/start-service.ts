/** The running service: its parts start in order and stop in the reverse order. */
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Auth, type PasswordPool } from '../auth/auth.ts';
import type { Config } from '../config.ts';
import { openapiOf } from '../describe/openapi-document.ts';
import { createFiles } from '../files/files.ts';
import { openStorage } from '../files/open-storage.ts';
import { addressReader } from '../http/address.ts';
import type { App } from '../http/app.ts';
import type { ArrivalLimits } from '../http/arrival.ts';
import { jsonBodyReader } from '../http/body.ts';
import type { Log } from '../http/log.ts';
import { createMetrics } from '../http/metrics.ts';
import { createServer } from '../http/server.ts';
import { routes } from '../routes/index.ts';
import type { Schema } from '../schema/model.ts';
import type { Database } from '../store/database/contract.ts';
import { forgetOldKeys } from '../store/idempotency.ts';
import { applyMigration } from '../store/migrations/migration.ts';
import { createRecords } from '../store/records/records.ts';
import { systemTables } from './system-tables.ts';
import { packageVersion } from './version.ts';

const DRAIN_MS = 10_000;
const FORGET_KEYS_EVERY_MS = 600_000;

export interface ServiceParts {
  readonly config: Config;
  readonly schema: Schema;
  /** Open; closed by `stop`. */
  readonly db: Database;
  readonly log: Log;
  /** With several workers: the metrics of all of them. */
  readonly readMetrics?: () => Promise<string>;
  /** Default: 30 s for a JSON body. */
  readonly arrival?: ArrivalLimits;
  /** Default: argon2id at its full cost. */
  readonly passwords?: PasswordPool;
}

export interface Service {
  readonly app: App;
  /** With the port it listens on, also where port 0 was asked for. */
  readonly url: string;
  /** Accepts no new connection, finishes running requests (10 s at most), closes the database. */
  stop(): Promise<void>;
}

/** Database to the schema → keys and sessions → first admin → listen. */
export async function startService(parts: ServiceParts): Promise<Service> {
  const { schema, db, log, passwords } = parts;
  await applyMigration(db, schema, { systemTables });
  const config = { ...parts.config };
  const auth = await Auth.open({ db, schema, config, passwords });
  if (config.admin !== undefined) await auth.admin.ensureAdmin(config.admin.email, config.admin.password);
  const files = await createFiles({
    db,
    schema,
    openStorage: (storeId) => openStorage(config, storeId),
    onFault: (what, error) => log.logger.error({ error: String(error) }, what),
  });
  const app: App = {
    config,
    schema,
    db,
    auth,
    files,
    records: createRecords(db, schema, { ...auth.userHooks, onFilesRemoved: files.discard }),
    log: log.logger,
    metrics: createMetrics(parts.readMetrics),
    addressOf: addressReader(schema.proxies),
    document: memoized(() => openapiOf(schema, routes, packageVersion())),
    readJson: jsonBodyReader(schema.limits.body, parts.arrival?.bodyMs),
  };
  const server = createServer(app, routes, parts.arrival);
  const url = await listen(server, config);
  // INVARIANT: no request was served before this; with port 0 the base URL is known only now.
  if (!parts.config.baseUrlGiven) config.baseUrl = url;
  const forgetting = setInterval(() => void forgetOldKeys(db).catch(() => undefined), FORGET_KEYS_EVERY_MS);
  forgetting.unref();
  const stop = async (): Promise<void> => {
    clearInterval(forgetting);
    files.close();
    await drainConnections(server);
    await auth.close();
    await db.close();
    log.flush();
  };
  return { app, url, stop: memoized(stop) };
}

async function listen(server: Server, { host, port }: Config): Promise<string> {
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen({ host, port }, () => {
      server.off('error', reject);
      resolve();
    });
  });
  const { port: taken } = server.address() as AddressInfo;
  return `http://${host.includes(':') ? `[${host}]` : host}:${taken}`;
}

async function drainConnections(server: Server): Promise<void> {
  const closed = new Promise<void>((resolve) => server.close(() => resolve()));
  // A kept-alive connection is idle as soon as its response is sent.
  const idle = setInterval(() => server.closeIdleConnections(), 20);
  const late = setTimeout(() => server.closeAllConnections(), DRAIN_MS);
  await closed;
  clearInterval(idle);
  clearTimeout(late);
}

function memoized<T>(make: () => T): () => T {
  let made: T | undefined;
  return () => {
    made ??= make();
    return made;
  };
}
