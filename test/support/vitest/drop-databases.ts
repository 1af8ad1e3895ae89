/** Drops the databases of each file of tests on the PostgreSQL of the run. */
import { afterAll } from 'vitest';
import { dropDatabases } from '../postgres.ts';

afterAll(dropDatabases);
