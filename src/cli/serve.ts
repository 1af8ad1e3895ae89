/** `bylaw serve`: serves in this process, or in several. The primary of several does not serve, and loads little. */
import cluster from 'node:cluster';
import { readConfig, SETTING_NAMES } from '../config.ts';
import { limitHeap } from './server/heap-limits.ts';
import type { Command } from './support/command.ts';

export const command: Command = {
  name: 'serve',
  summary: 'migrates the database to the schema (never destructively) and serves it',
  settings: SETTING_NAMES,
  flags: { prove: { about: 'does not start if a statement of `prove:` is refuted, which otherwise is a warning' } },
  async run(args, io) {
    const config = readConfig(args.flags, io.env);
    if (config.workers > 1 && cluster.isPrimary) {
      const { serveWithWorkers } = await import('./server/workers/workers.ts');
      return serveWithWorkers(config, io);
    }
    limitHeap();
    const { serveHere } = await import('./server/serve-here.ts');
    try {
      return await serveHere(config, io, args.has('prove'));
    } finally {
      // The channel to the primary would keep a worker alive. The exit code is set before the callback runs.
      if (cluster.isWorker) setImmediate(() => process.exit());
    }
  },
};
