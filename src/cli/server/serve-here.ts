/** Serves in this process: schema → database and migration → first admin → listen → print one line. */
import cluster from 'node:cluster';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { createServer } from 'node:net';
import { join, resolve } from 'node:path';
import { SetupOffer } from '../../auth/accounts/setup-offer.ts';
import { newSecret } from '../../auth/sessions/secrets.ts';
import { NoDirectWorkers } from '../../cluster/direct-workers.ts';
import type { Config } from '../../config.ts';
import { FolderUnusable } from '../../database/embedded/data-folder.ts';
import { FolderInUse } from '../../folder-lock.ts';
import { openLog } from '../../http/observe/log.ts';
import { MigrationRefused } from '../../migrations/migration.ts';
import { UnservableTables } from '../../migrations/unmanaged/differences.ts';
import type { Schema } from '../../schema/model/model.ts';
import { openDatabaseWhenUp, orClose } from '../../service/configured-database.ts';
import { type Service, startService } from '../../service/start-service.ts';
import { codeOf, reasonOf } from '../../thrown.ts';
import type { Io } from '../support/command.ts';
import { refutedStatements } from '../support/refuted-statements.ts';
import { requireSchema } from '../support/workspace.ts';
import { listenForCommands } from './admin-socket.ts';
import { remoteRunner } from './remote-command.ts';
import { readyLine, setupLine, stopSignal } from './server-process.ts';
import { notifyReady, readMetricsOfAll, sharedStreamPlaces, stopMessage } from './workers/worker.ts';

interface StartContext {
  readonly config: Config;
  readonly io: Io;
}

/** Errors that the operator can fix become a sentence and exit code 1. */
export async function reportingStartErrors(
  name: string,
  { config, io }: StartContext,
  start: () => Promise<number>,
): Promise<number> {
  try {
    return await start();
  } catch (error) {
    const reason = startErrorOf(error, config);
    if (reason === undefined) throw error;
    io.stderr.write(`bylaw ${name}: ${reason}\n`);
    return 1;
  }
}

/** Returns after a signal. `mustProve`: a refuted statement is an error. */
export async function serveHere(config: Config, io: Io, mustProve: boolean): Promise<number> {
  const schema = requireSchema(config.schema, io);
  // The first of several workers speaks for all.
  const refuted = (cluster.worker?.id ?? 1) === 1 ? await refutedStatements(schema) : [];
  for (const sentence of refuted) io.stderr.write(`bylaw serve: ${sentence}\n`);
  if (mustProve && refuted.length > 0) return 1;
  return reportingStartErrors('serve', { config, io }, () => serve(config, schema, io));
}

async function serve(config: Config, schema: Schema, io: Io): Promise<number> {
  const log = openLog();
  const isWorker = cluster.isWorker;
  const setup = new SetupOffer();
  const asked = isWorker ? stopMessage(setup) : undefined;
  let isStarted = false;
  // A signal ends a process that serves alone in the same way.
  void asked?.then(() => isStarted || process.exit(0));
  if (!isWorker) await requireFreePort(config);
  // A sentence on a terminal; otherwise a line of the log.
  const say = (message: string): void =>
    isTerminal(io.stderr) ? void io.stderr.write(`bylaw: ${message}\n`) : log.logger.info(message);
  announceFirstStart(config, io, say);
  const db = await openDatabaseWhenUp(config, io.cwd, say);
  const ofAll = isWorker ? { readMetrics: readMetricsOfAll, streamPlacesOf: sharedStreamPlaces } : {};
  const service = await orClose(db, startService({ config, schema, db, log, setup, ...ofAll }));
  const closeSocket = db.kind === 'embedded' ? await openSocket(resolve(io.cwd, config.data), service, io) : undefined;
  const needsAdmin = !(await service.app.auth.admin.hasAdmin());
  // INVARIANT: a signal that follows the line below stops the service in order.
  const stopped = asked ?? stopSignal();
  isStarted = true;
  if (isWorker) notifyReady(service.url, needsAdmin);
  else io.stdout.write(`${readyLine(service.url, config)}\n${needsAdmin ? openSetup(service, setup) : ''}`);
  await stopped;
  await closeSocket?.();
  await service.stop(LAST_ANSWERS_MS);
  return 0;
}

/** Milliseconds in which clients are asked to close their connections. */
const LAST_ANSWERS_MS = 2_000;

/** Returns the line that has the token. */
export function openSetup({ app }: Service, setup: SetupOffer): string {
  const token = newSecret();
  setup.open(token);
  return `${setupLine(app.config.baseUrl, token)}\n`;
}

export const isTerminal = (stream: object): boolean => 'isTTY' in stream && stream.isTTY === true;

/** The creation of the embedded database takes seconds. */
export function announceFirstStart({ databaseUrl, data }: Config, { cwd }: Io, say: (message: string) => void): void {
  if (databaseUrl !== undefined || existsSync(join(resolve(cwd, data), 'database'))) return;
  say(`preparing the embedded database in ${data}: this takes some seconds, once`);
}

/** Runs before anything is created in the data folder. Rejects as `listen` does. */
export async function requireFreePort({ host, port }: Config): Promise<void> {
  const probe = createServer();
  probe.listen({ host, port });
  await once(probe, 'listening');
  await new Promise((resolve) => probe.close(resolve));
}

/**
 * The service starts without a socket if the folder cannot hold one: its path is too long, or the file
 * system is unusual.
 */
export async function openSocket(folder: string, service: Service, io: Io): Promise<(() => Promise<void>) | undefined> {
  try {
    return await listenForCommands(
      folder,
      remoteRunner(() => service.app, io),
    );
  } catch (error) {
    const reason = reasonOf(error);
    io.stderr.write(`bylaw serve: commands cannot reach this server; stop it to run them (${reason})\n`);
    return undefined;
  }
}

const CLEAR = [MigrationRefused, UnservableTables, FolderInUse, FolderUnusable, NoDirectWorkers];

/** Why the service cannot start, if the operator can fix it. */
function startErrorOf(error: unknown, { host, port }: Config): string | undefined {
  if (CLEAR.some((each) => error instanceof each)) return reasonOf(error);
  const code = codeOf(error);
  if (code === 'EADDRINUSE')
    return `port ${port} of ${host} is in use by another program; choose another with --port (or PORT), or a free one with --port 0`;
  const isOfPort = error instanceof Error && 'syscall' in error && error.syscall === 'listen';
  if (code === 'EACCES' && isOfPort)
    return `this user may not listen on port ${port} of ${host}; choose a port from 1024 up with --port (or PORT)`;
  return code === 'EACCES' ? reasonOf(error) : undefined;
}
