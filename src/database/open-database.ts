/** The database that the settings ask for. */
import { loadOptional } from '../optional-package.ts';
import type { Database } from './contract.ts';
import type { EmbeddedOptions } from './embedded/embedded-engine.ts';
import { openPostgres, type PostgresOptions } from './postgres.ts';

/** With a `url` a PostgreSQL server, without it the embedded database. */
export type OpenOptions = Partial<PostgresOptions> & EmbeddedOptions;

/** Throws MissingPackage, if the embedded database is not installed. */
export async function openDatabase(options: OpenOptions): Promise<Database> {
  const { url, ...more } = options;
  if (url !== undefined) return openPostgres({ url, ...more });
  return loadOptional({
    packages: ['@electric-sql/pglite'],
    reason: 'DATABASE_URL is not set, so the embedded database is used',
    async load() {
      const { openEmbedded } = await import('./embedded/embedded.ts');
      return openEmbedded(more);
    },
  });
}
