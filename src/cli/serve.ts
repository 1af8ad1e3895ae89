/**
 * `bylaw serve`: in this process, or in several. The primary of several loads no more than it needs:
 * it does not serve.
 */
import cluster from 'node:cluster';
import { setFlagsFromString } from 'node:v8';
import { readConfig, SETTING_NAMES } from '../config.ts';
import type { Command } from './support/command.ts';

export const command: Command = {
  name: 'serve',
  summary: 'brings the database to the schema (nothing that loses data) and serves it',
  settings: SETTING_NAMES,
  async run(args, io) {
    const config = readConfig(args.flags, io.env);
    if (config.workers > 1 && cluster.isPrimary) {
      const { serveWithWorkers } = await import('./server/workers/workers.ts');
      return serveWithWorkers(config, io);
    }
    letYoungObjectsDie();
    const { serveHere } = await import('./server/serve-here.ts');
    try {
      return await serveHere(config, io);
    } finally {
      // The channel to the primary would keep a worker alive; by then, the exit code is set.
      if (cluster.isWorker) setImmediate(() => process.exit());
    }
  },
};

/**
 * Where objects of one place in the code survive a few young collections, V8 allocates them in the old generation from
 * then on. The objects of a request survive these while many requests are under way, and die with the request all the
 * same: one process in two would grow by 100 MiB more, and take up to 1.4 times as long for a list.
 */
const letYoungObjectsDie = (): void => setFlagsFromString('--no-allocation-site-pretenuring');
