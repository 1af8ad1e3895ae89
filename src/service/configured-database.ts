import { resolve } from 'node:path';
import type { Config } from '../config.ts';
import type { Database } from '../database/contract.ts';
import { openDatabase } from '../database/open-database.ts';

/** Opens the database that the configuration names; `cwd` resolves a relative data folder. */
export function openConfiguredDatabase(config: Config, cwd: string): Promise<Database> {
  const { databaseUrl, replicaUrl, directUrl, data } = config;
  return databaseUrl === undefined
    ? openDatabase({ dataDir: resolve(cwd, data) })
    : openDatabase({ url: databaseUrl, replicaUrl, directUrl });
}
