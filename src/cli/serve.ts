/** `bylaw serve`: settings → schema → database and migration → first admin → listen → one line that says so. */
import cluster from 'node:cluster';
import { resolve } from 'node:path';
import { type Config, readConfig } from '../config.ts';
import { openLog } from '../http/log.ts';
import type { Schema } from '../schema/model.ts';
import { FolderInUse } from '../store/database/folder-lock.ts';
import { MigrationRefused } from '../store/migrations/migrate.ts';
import { listenForCommands } from './admin-socket.ts';
import type { Command, Io } from './command.ts';
import { databaseCommands } from './database-commands.ts';
import { openDatabaseOf, schemaFor } from './open.ts';
import { type RunInside, runInside } from './remote-command.ts';
import { type Service, startService } from './service.ts';
import { readMetricsOfAll, serveWithWorkers, tellReady } from './workers.ts';

export const command: Command = {
  name: 'serve',
  summary:
    'bring the database to the schema and serve it [--schema FILE] [--port N] [--host H] [--database-url URL] [--data DIR] [--base-url URL] [--workers N]',
  async run(argv, io) {
    const config = readConfig(argv, io.env);
    const schema = schemaFor(io, config.schema);
    try {
      if (config.workers > 1 && cluster.isPrimary)
        return await serveWithWorkers({ config, schema, io, ready: readyLine });
      return await serve(config, schema, io);
    } catch (error) {
      if (!isRefusal(error)) throw error;
      io.stderr.write(`bylaw serve: ${error.message}\n`);
      return 1;
    }
  },
};

/** Until a signal comes. */
async function serve(config: Config, schema: Schema, io: Io): Promise<number> {
  const log = openLog();
  const isWorker = cluster.isWorker;
  const db = await openDatabaseOf(config, io.cwd);
  const service = await startService({
    config,
    schema,
    db,
    log,
    ...(isWorker ? { readMetrics: readMetricsOfAll } : {}),
  }).catch(async (error: unknown) => {
    await db.close();
    throw error;
  });
  const closeSocket =
    db.kind === 'embedded' ? await openSocket(resolve(io.cwd, config.data), { service, io }) : undefined;
  if (isWorker) tellReady(service.url);
  else io.stdout.write(`${readyLine(service.url, config)}\n`);
  await signal();
  await closeSocket?.();
  await service.stop();
  // A worker would wait for messages of the primary for ever.
  if (isWorker) process.disconnect?.();
  return 0;
}

/** A folder that cannot hold a socket (too long a path, a strange file system) is no reason not to serve. */
async function openSocket(
  folder: string,
  { service, io }: { readonly service: Service; readonly io: Io },
): Promise<(() => Promise<void>) | undefined> {
  try {
    return await listenForCommands(folder, insideOf(service, io));
  } catch (error) {
    const reason = (error as Error).message;
    io.stderr.write(`bylaw serve: commands cannot reach this server, stop it to run them (${reason})\n`);
    return undefined;
  }
}

function insideOf({ app }: Service, io: Io): RunInside {
  const { config, schema, db, auth } = app;
  const find = async (name: string): Promise<Command | undefined> => (await databaseCommands.get(name)?.())?.command;
  return runInside({ config, schema, db, auth }, { io, find });
}

/** The first asks to stop; the second does not wait. */
function signal(): Promise<void> {
  return new Promise((done) => {
    let asked = false;
    const hear = (): void => {
      if (asked) process.exit(1);
      asked = true;
      done();
    };
    process.on('SIGTERM', hear);
    process.on('SIGINT', hear);
  });
}

function readyLine(url: string, { databaseUrl, data, rateLimit, workers }: Config): string {
  const database = databaseUrl === undefined ? `embedded database in ${data}` : `PostgreSQL at ${placeOf(databaseUrl)}`;
  const notes = [
    database,
    ...(workers > 1 ? [`${workers} workers`] : []),
    ...(rateLimit ? [] : ['rate limits are OFF']),
  ];
  return `bylaw listening on ${url} (${notes.join(', ')})`;
}

/** Without the name and the password. */
function placeOf(databaseUrl: string): string {
  const { host, pathname, searchParams } = new URL(databaseUrl);
  return `${searchParams.get('host') ?? (host === '' ? 'localhost' : host)}${pathname}`;
}

const isRefusal = (error: unknown): error is Error =>
  error instanceof MigrationRefused ||
  error instanceof FolderInUse ||
  (error as { code?: unknown } | undefined)?.code === 'EADDRINUSE' ||
  (error as { code?: unknown } | undefined)?.code === 'EACCES';
