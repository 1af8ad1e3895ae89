/** The tables of the database that are not collections. */
import { authTables } from '../auth/tables.ts';
import { fileTables } from '../files/tables.ts';
import type { Sql } from '../sql.ts';

export const systemTables: readonly Sql[] = [...authTables, ...fileTables];
