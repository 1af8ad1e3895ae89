/** Opens the database that the configuration names. */
import { resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { askWorkersDirectly } from '../cluster/direct-workers.ts';
import type { Config } from '../config.ts';
import type { Database } from '../database/contract.ts';
import { openDatabase } from '../database/open-database.ts';
import { isNotReachable } from '../database/to-store-error.ts';
import { separateTriggeredTables } from '../migrations/adopt/triggered-tables.ts';
import { reasonOf } from '../thrown.ts';
import { atLocalServer } from './local-server.ts';

/** @param cwd resolves a relative data folder */
export async function openConfiguredDatabase(config: Config, cwd: string): Promise<Database> {
  const { databaseUrl, replicaUrl, directUrl, data } = config;
  if (databaseUrl === undefined) return openDatabase({ dataDir: resolve(cwd, data) });
  const db = await openDatabase({
    url: atLocalServer(databaseUrl),
    replicaUrl: replicaUrl && atLocalServer(replicaUrl),
    directUrl: directUrl && atLocalServer(directUrl),
  });
  await orClose(db, separateTriggeredTables(db));
  return db;
}

/** Closes the database if the work with it fails. */
export function orClose<T>(db: Database, work: Promise<T>): Promise<T> {
  return work.catch(async (error: unknown) => {
    await db.close();
    throw error;
  });
}

const REACHABLE_WITHIN_MS = 30_000;
const RETRY_PAUSE_MS = 500;

/**
 * Waits half a minute for a server that cannot be reached, because the database may start after the
 * service, as with containers and after a power failure. A wrong password or name fails at once.
 * `say` is called when the start begins to wait, and when a worker of a cluster is found or lost.
 */
export async function openDatabaseWhenUp(
  config: Config,
  cwd: string,
  say: (message: string) => void,
): Promise<Database> {
  const end = performance.now() + REACHABLE_WITHIN_MS;
  for (let attempt = 1; ; attempt++) {
    try {
      const db = await openConfiguredDatabase(config, cwd);
      if (config.databaseWorkers === 'coordinator') return db;
      return await orClose(db, askWorkersDirectly(db, { url: atLocalServer(config.databaseUrl!), say }));
    } catch (error) {
      if (!isNotReachable(error) || performance.now() > end) throw error;
      if (attempt === 1) say(`${reasonOf(error)}; trying for ${REACHABLE_WITHIN_MS / 1_000} s`);
    }
    await sleep(RETRY_PAUSE_MS);
  }
}
