/** The result of introspection, a draft of bylaw.yaml, and the statements that its messages propose. */
import { ident } from '../../sql.ts';

/** A line of a draft. */
export interface DraftMember {
  readonly name: string;
  /** The value as YAML. */
  readonly yaml: string;
  /** A remark for the author of the schema. */
  readonly note?: string;
  /** Why the table cannot be adopted with it, with the remedy. */
  readonly obstacle?: string;
}
export interface DraftTable {
  /** The name of the collection. */
  readonly name: string;
  readonly table: string;
  readonly fields: readonly DraftMember[];
  readonly relations: readonly DraftMember[];
  readonly notes: readonly string[];
  /** Why the table cannot be adopted, apart from its members. */
  readonly obstacles: readonly string[];
}
export interface Skipped {
  readonly name: string;
  readonly reason: string;
}
export interface Draft {
  readonly adopted: readonly DraftTable[];
  /** Tables with a uuid key that need changes first. */
  readonly postponed: readonly DraftTable[];
  readonly skipped: readonly Skipped[];
}

/** Without quotes, YAML reads these as other values. */
export const yamlName = (name: string): string => (/^(?:null|true|false)$/i.test(name) ? JSON.stringify(name) : name);
/** The columns of `users` that the service creates itself. */
export const USER_COLUMNS: Readonly<Record<string, string>> = {
  email: 'text',
  email_verified: 'boolean',
  roles: 'text[]',
  disabled: 'boolean',
};

/** A statement that makes a column fit. */
export const alterColumn = (table: string, column: string): string =>
  `ALTER TABLE ${ident(table).text} ALTER COLUMN ${ident(column).text}`;

export const withTimeZone = (table: string, column: string): string =>
  `${alterColumn(table, column)} TYPE timestamptz USING ${ident(column).text} AT TIME ZONE 'UTC'`;

export const retypedAsText = (table: string, column: string): string =>
  `${alterColumn(table, column)} TYPE text COLLATE "C" USING ${ident(column).text}::text`;
