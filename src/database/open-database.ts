/** The database that the settings ask for. */
import { loadOptional } from '../optional-package.ts';
import type { Database } from './contract.ts';
import { openPostgres } from './postgres.ts';

export interface OpenOptions {
  /** A PostgreSQL server; the embedded database without it. */
  readonly url?: string;
  readonly replicaUrl?: string;
  /** Past a pooler. */
  readonly directUrl?: string;
  /** The folder of the embedded database; in memory without it. */
  readonly dataDir?: string;
  /** The initial content of the embedded database in memory. */
  readonly snapshot?: Blob;
  /** The schema that holds the tables. */
  readonly searchPath?: string;
  readonly poolSize?: number;
  readonly pipelines?: number;
  readonly slowReads?: number;
  readonly preparedStatements?: number;
}

/** Throws MissingPackage, if the embedded database is not installed. */
export async function openDatabase(options: OpenOptions): Promise<Database> {
  const { url, dataDir, snapshot, ...more } = options;
  if (url !== undefined) return openPostgres({ url, ...more });
  return loadOptional({
    packages: ['@electric-sql/pglite'],
    reason: 'DATABASE_URL is not set, so the embedded database is used',
    async load() {
      const { openEmbedded } = await import('./embedded/embedded.ts');
      return openEmbedded({ dataDir, snapshot, ...more });
    },
  });
}
