/** The database that the settings ask for. */
import type { Database } from './contract.ts';
import { openEmbedded } from './embedded.ts';
import { openPostgres } from './postgres.ts';

export interface OpenOptions {
  /** A PostgreSQL server; the embedded database without it. */
  readonly url?: string;
  readonly replicaUrl?: string;
  /** The folder of the embedded database; in memory without it. */
  readonly dataDir?: string;
  /** What the embedded database in memory begins with. */
  readonly snapshot?: Blob;
  /** The schema that holds the tables. */
  readonly searchPath?: string;
  readonly poolSize?: number;
  readonly pipelines?: number;
  readonly preparedStatements?: number;
}

export function openDatabase(options: OpenOptions): Promise<Database> {
  const { url, dataDir, snapshot, ...more } = options;
  if (url !== undefined) return openPostgres({ url, ...more });
  return openEmbedded({
    ...(dataDir === undefined ? {} : { dataDir }),
    ...(snapshot === undefined ? {} : { snapshot }),
    ...more,
  });
}
