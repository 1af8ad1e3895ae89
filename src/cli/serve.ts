/** `bylaw serve`: serves in this process, or in several. The primary of several does not serve, and loads little. */
import cluster from 'node:cluster';
import { setFlagsFromString } from 'node:v8';
import { readConfig, SETTING_NAMES } from '../config.ts';
import type { Command } from './support/command.ts';

export const command: Command = {
  name: 'serve',
  summary: 'migrates the database to the schema (never destructively) and serves it',
  settings: SETTING_NAMES,
  async run(args, io) {
    const config = readConfig(args.flags, io.env);
    if (config.workers > 1 && cluster.isPrimary) {
      const { serveWithWorkers } = await import('./server/workers/workers.ts');
      return serveWithWorkers(config, io);
    }
    disablePretenuring();
    collectEarly();
    const { serveHere } = await import('./server/serve-here.ts');
    try {
      return await serveHere(config, io);
    } finally {
      // The channel to the primary would keep a worker alive. The exit code is set before the callback runs.
      if (cluster.isWorker) setImmediate(() => process.exit());
    }
  },
};

/**
 * V8 pretenures: if objects of an allocation site survive a few young collections, it allocates later ones in the old
 * generation. The objects of a request survive while many requests are in flight, but die with the request: every
 * second process would grow by 100 MiB more, and take up to 1.4 times as long for a list.
 */
const disablePretenuring = (): void => setFlagsFromString('--no-allocation-site-pretenuring');

/**
 * V8 lets the old generation grow to several times of what lives in it before it collects. The rows and the texts of large
 * answers die with their requests: growth by half keeps a process that sends many of them 120 MiB smaller.
 */
const collectEarly = (): void => setFlagsFromString('--heap-growing-percent=50');
