/** Statements that would make a column fit, as messages propose them. */
import { ident } from '../../sql.ts';

const quoted = (name: string): string => ident(name).text;

export const alterColumn = (table: string, column: string): string =>
  `ALTER TABLE ${quoted(table)} ALTER COLUMN ${quoted(column)}`;

export const withTimeZone = (table: string, column: string): string =>
  `${alterColumn(table, column)} TYPE timestamptz USING ${quoted(column)} AT TIME ZONE 'UTC'`;

export const retypedAsText = (table: string, column: string): string =>
  `${alterColumn(table, column)} TYPE text COLLATE "C" USING ${quoted(column)}::text`;

export const renameColumn = (table: string, column: string, name: string): string =>
  `ALTER TABLE ${quoted(table)} RENAME COLUMN ${quoted(column)} TO ${quoted(name)}`;
