/** `bylaw dev`: `serve` for the author of a schema. It follows the schema file and shows requests, mails, errors. */
import { resolve } from 'node:path';
import { SetupOffer } from '../../auth/accounts/setup-offer.ts';
import type { Mail } from '../../auth/auth.ts';
import { type Config, ConfigError, readConfig, SETTING_NAMES } from '../../config.ts';
import type { Database } from '../../database/contract.ts';
import { type Log, openLog } from '../../http/observe/log.ts';
import type { Schema } from '../../schema/model/model.ts';
import { openConfiguredDatabase, orClose } from '../../service/configured-database.ts';
import { type Service, startService } from '../../service/start-service.ts';
import {
  announceFirstStart,
  isTerminal,
  openSetup,
  openSocket,
  reportingStartErrors,
  requireFreePort,
} from '../server/serve-here.ts';
import { readyLine, stopSignal } from '../server/server-process.ts';
import type { Arguments, Command, Io } from '../support/command.ts';
import { requireSchema } from '../support/workspace.ts';
import { loadSeed } from '../transfer/seed.ts';
import { terminalLog } from './dev-log.ts';
import { DevMigration } from './dev-migration.ts';
import { DevSession, reportRefuted, reportSeed, textOfFile } from './dev-session.ts';
import { DevWorkshop } from './dev-workshop.ts';
import { watchFile } from './watch-file.ts';

export const command: Command = {
  name: 'dev',
  summary: 'serves while you write the schema: follows the file, keeps the last good schema, shows requests and mails',
  settings: SETTING_NAMES,
  flags: { 'no-seed': { about: 'does not load the records of `seed:`' } },
  run,
};

async function run(args: Arguments, io: Io): Promise<number> {
  const config = { ...readConfig(args.flags, io.env), isDevelopment: true };
  if (config.workers > 1) throw new ConfigError(['--workers: `bylaw dev` runs one process']);
  // The text is read before the schema: the session notices a change in between.
  const text = textOfFile(resolve(io.cwd, config.schema));
  const schema = requireSchema(config.schema, io);
  const hasSeed = !args.has('no-seed');
  return reportingStartErrors('dev', { config, io }, () => develop({ config, schema, text, hasSeed, io }));
}

interface Development {
  readonly config: Config;
  readonly schema: Schema;
  readonly text: string | undefined;
  readonly hasSeed: boolean;
  readonly io: Io;
}

/** The parts of the service that its author sees. */
interface WatchedService {
  readonly log: Log;
  readonly setup: SetupOffer;
  readonly workshop: DevWorkshop;
}

/** Returns after a signal. */
async function develop(development: Development): Promise<number> {
  const { config, schema, text, hasSeed, io } = development;
  const log = openLog('info', isTerminal(io.stderr) ? terminalLog(io) : undefined);
  const { logger } = log;
  const setup = new SetupOffer();
  const workshop = new DevWorkshop();
  await requireFreePort(config);
  let session: DevSession | undefined;
  // A folder that cannot be watched ends the command before anything is created.
  const unwatch = watchFile(
    resolve(io.cwd, config.schema),
    (since) => session?.reload(since),
    (error) => logger.error({ error: error.message }, 'the folder of the schema cannot be watched any more'),
  );
  announceFirstStart(config, io, (message) => logger.info(message));
  const db = await openConfiguredDatabase(config, io.cwd);
  const { service, migration } = await orClose(db, start(development, db, { log, setup, workshop }));
  const folder = resolve(io.cwd, config.data);
  const closeSocket = db.kind === 'embedded' ? await openSocket(folder, service, io) : undefined;
  session = new DevSession({ file: config.schema, schema, text, service, migration, hasSeed, log: logger, io });
  workshop.follow(session);
  session.reload(performance.now());
  await reportRefuted(schema, logger);
  // INVARIANT: a signal that follows the line below stops the service in order.
  const stopped = stopSignal();
  const setupText = (await service.app.auth.admin.hasAdmin()) ? '' : openSetup(service, setup);
  io.stdout.write(`${readyLine(service.url, config)}\n${addressLines(service)}${setupText}`);
  await stopped;
  unwatch();
  await session.close();
  await closeSocket?.();
  await service.stop();
  return 0;
}

/** Tables → seed → the service. */
async function start(
  { config, schema, hasSeed, io }: Development,
  db: Database,
  { log, setup, workshop }: WatchedService,
) {
  const { logger } = log;
  const migration = new DevMigration(db, io);
  await migration.run(schema);
  // The seed precedes the first admin: with a user, the seed of `users` would not be loaded.
  if (hasSeed) reportSeed(await loadSeed(db, { schema, cwd: io.cwd }), logger);
  const onMail = ({ to, subject, text }: Mail): void => logger.info({ to, subject, text }, 'mail');
  return { service: await startService({ config, schema, db, log, setup, workshop, onMail }), migration };
}

function addressLines({ url, app: { config, schema } }: Service): string {
  const studio = config.studio ? [`  ${url}${schema.studio.path}`] : [];
  const pages = [`  ${url}/`, ...studio, `  ${url}/docs`, `  ${url}/openapi.json`];
  return [...pages, ...sameSiteLines(url)].map((line) => `${line}\n`).join('');
}

/** A browser takes `localhost` and `127.0.0.1` for two sites. */
function sameSiteLines(url: string): readonly string[] {
  const { hostname, port } = new URL(url);
  if (hostname !== '127.0.0.1') return [];
  return [`  http://localhost:${port} for pages at http://localhost:…, so that browsers keep the session cookie`];
}
