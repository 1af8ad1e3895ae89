/**
 * `bylaw serve`: in this process, or in several. The primary of several loads no more than it needs:
 * it does not serve.
 */
import cluster from 'node:cluster';
import { readConfig, SETTING_NAMES } from '../config.ts';
import type { Command } from './command.ts';

export const command: Command = {
  name: 'serve',
  summary: 'brings the database to the schema (nothing that loses data) and serves it',
  settings: SETTING_NAMES,
  async run(args, io) {
    const config = readConfig(args.flags, io.env);
    if (config.workers > 1 && cluster.isPrimary) {
      const { serveWithWorkers } = await import('./workers/workers.ts');
      return serveWithWorkers(config, io);
    }
    const { serveHere } = await import('./serve-here.ts');
    try {
      return await serveHere(config, io);
    } finally {
      // The channel to the primary would keep a worker alive; by then, the exit code is set.
      if (cluster.isWorker) setImmediate(() => process.exit());
    }
  },
};
