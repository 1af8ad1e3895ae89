/**
 * Starts a real PostgreSQL and finds an empty embedded database for the whole run; each suite has its own schema in the first, and
 * its own copy of the second.
 */
import type { TestProject } from 'vitest/node';
import { type EmptyDatabase, findEmptyDatabase } from '../embedded/empty-database.ts';
import { startPostgres } from '../postgres.ts';
import { bundleEmptyDatabase, bundleMain } from './bundled-main.ts';
import { removeRunFolder } from './run-folder.ts';

declare module 'vitest' {
  interface ProvidedContext {
    /** Empty: there is none, and tests that need it do not run (reported at the start). */
    postgresUrl: string;
    emptyDatabase: EmptyDatabase;
  }
}

export default async function start(project: TestProject): Promise<() => Promise<void>> {
  const isQuick = process.env.TEST_QUICK !== undefined;
  const [postgres, empty, main] = await Promise.all([
    isQuick ? undefined : startPostgres(),
    findEmptyDatabase(),
    isQuick ? undefined : bundleMain(),
  ]);
  // Read by test/support/process.ts, in the workers.
  if (main !== undefined) {
    process.env.TEST_MAIN = main;
    bundleEmptyDatabase(empty.tar);
  }
  if (process.argv.includes('distributed') && !process.env.TEST_CITUS_URL)
    console.error('no Citus cluster (TEST_CITUS_URL): suites of distributed collections run on partitions alone');
  project.provide('postgresUrl', postgres?.url ?? '');
  project.provide('emptyDatabase', empty);
  return async () => {
    await postgres?.stop();
    removeRunFolder();
  };
}
