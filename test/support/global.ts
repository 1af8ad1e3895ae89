/** One real PostgreSQL for the whole run; each suite has a schema of its own in it. */
import type { TestProject } from 'vitest/node';
import { startPostgres } from './postgres.ts';

declare module 'vitest' {
  interface ProvidedContext {
    /** Empty: there is none, and what needs it does not run (said loudly at the start). */
    postgresUrl: string;
  }
}

export default async function start(project: TestProject): Promise<() => Promise<void>> {
  const postgres = await startPostgres();
  project.provide('postgresUrl', postgres?.url ?? '');
  return async () => postgres?.stop();
}
