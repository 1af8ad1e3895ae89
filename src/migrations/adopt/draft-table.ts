/** The result of introspection, a draft of bylaw.yaml, and the statements that its messages propose. */
import { ident, tableIdent } from '../../sql.ts';
import type { ExistingTable } from './existing-tables.ts';

/** A value of a schema file. Its keys are printed in their order. */
export type Declaration = Readonly<Record<string, unknown>>;

/** A line of a draft. */
export interface DraftMember {
  readonly name: string;
  /** Undefined for the other side of a reference. */
  readonly column?: string;
  /** Given for a reference of several columns. */
  readonly columns?: readonly string[];
  readonly declared: Declaration;
  /** Remarks for the author of the schema. */
  readonly notes: readonly string[];
  /** Why bylaw cannot own the table with it, with the remedy. */
  readonly obstacles: readonly string[];
}
/** A part of the database that the draft does not have. */
export interface LeftOut {
  readonly kind: 'table' | 'view' | 'column' | 'foreign key';
  readonly name: string;
  readonly reason: string;
}
export interface DraftTable {
  /** The name of the collection. */
  readonly name: string;
  readonly existing: ExistingTable;
  /** The keys of the collection besides its members: `table`, `managed`, `id`, `timestamps`. */
  readonly declared: Declaration;
  readonly fields: readonly DraftMember[];
  readonly relations: readonly DraftMember[];
  readonly notes: readonly string[];
  /** Its columns and foreign keys that are not in the draft. */
  readonly leftOut: readonly LeftOut[];
  /** Why bylaw cannot own the table, apart from its members. */
  readonly obstacles: readonly string[];
}
export interface Draft {
  readonly drafted: readonly DraftTable[];
  /** Tables and views without a collection. */
  readonly leftOut: readonly LeftOut[];
}

/** The columns of `users` that the service creates itself. */
export const USER_COLUMNS: Readonly<Record<string, string>> = {
  email: 'text',
  email_verified: 'boolean',
  roles: 'text[]',
  disabled: 'boolean',
};

/** A statement that makes a column fit. */
export const alterColumn = (table: string, column: string): string =>
  `ALTER TABLE ${tableIdent(table).text} ALTER COLUMN ${ident(column).text}`;

export const withTimeZone = (table: string, column: string): string =>
  `${alterColumn(table, column)} TYPE timestamptz USING ${ident(column).text} AT TIME ZONE 'UTC'`;

export const retypedAsText = (table: string, column: string): string =>
  `${alterColumn(table, column)} TYPE text COLLATE "C" USING ${ident(column).text}::text`;
