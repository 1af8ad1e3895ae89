/** Each file of tests begins with empty databases, and leaves none on the PostgreSQL of the run. */
import { afterAll } from 'vitest';
import { copyEmptyDatabase } from '../../../src/workbench/memory-database.ts';
import { closeEngines, emptySnapshot } from '../embedded/embedded.ts';
import { keepEngines } from '../embedded/kept-engines.ts';
import { dropDatabases } from '../postgres.ts';

copyEmptyDatabase(emptySnapshot);
keepEngines();
afterAll(dropDatabases);
afterAll(closeEngines);
