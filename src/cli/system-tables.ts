/** The tables of the database that are not collections. */
import { authTables } from '../auth/auth-tables.ts';
import { fileTables } from '../files/file-tables.ts';
import type { Sql } from '../sql.ts';

export const systemTables: readonly Sql[] = [...authTables, ...fileTables];
