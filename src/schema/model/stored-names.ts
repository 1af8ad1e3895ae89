/** Names in the database: columns and constraints that no schema file spells out. */
import { sha256 } from '@noble/hashes/sha2.js';
import { bytesToHex } from '@noble/hashes/utils.js';
import type { LoggedTable } from './logged-tables.ts';
import type { Schema } from './model.ts';

/** Counts the changes of a record. No field can have this name: those begin with a letter. */
export const VERSION_COLUMN = '_version';
/** The ids that a deleted record was linked to, by the tables of the links. */
export const LINKS_COLUMN = '_links';

/** The tables of collections and of their links. */
export const storedTables = ({ collections }: Schema): ReadonlySet<string> =>
  new Set([
    ...[...collections.values()].map(({ table }) => table),
    ...[...collections.values()].flatMap(({ softDelete }) => (softDelete === undefined ? [] : [softDelete.table])),
    ...[...collections.values()].flatMap(({ history }) => history?.table ?? []),
    ...[...collections.values()].flatMap(({ relations }) =>
      [...relations.values()].flatMap((relation) => (relation.kind === 'many_to_many' ? [relation.linkTable] : [])),
    ),
  ]);

/** The table that keeps the deleted rows of a table. */
export const deletedTableOf = (table: string): string => besideTable('bylaw_deleted_', table);

/** The table that keeps the history of the rows of a table that is divided by tenant. */
export const historyTableOf = (table: string): string => besideTable('bylaw_history_', table);

function besideTable(prefix: string, table: string): string {
  const name = `${prefix}${table}`;
  return bytesOf(name).length <= LONGEST_NAME ? name : `${prefix}${shortDigest(table)}`;
}

/** The tables that other programs own. */
export const unmanagedTables = ({ collections }: Schema): ReadonlySet<string> =>
  new Set([...collections.values()].flatMap(({ managed, table }) => (managed ? [] : [table])));

/** Bytes of a name in PostgreSQL. */
const LONGEST_NAME = 63;
const bytesOf = (name: string): Uint8Array => new TextEncoder().encode(name);
/** Browsers read schemas too, and their own digests are asynchronous. */
const digestOf = (text: string): string => bytesToHex(sha256(bytesOf(text)));

/** At most 63 bytes, as PostgreSQL would cut it, but never equal to another's. */
export function constraintName(
  table: string,
  columns: readonly string[],
  suffix: 'key' | 'newkey' | 'fkey' | 'check' | 'pkey' | 'idx' | 'required' | 'only' | `apart${number | ''}`,
): string {
  // A constraint and an index are in the schema of their table.
  const name = [table.slice(table.indexOf('.') + 1), ...columns, suffix].join('_');
  const bytes = bytesOf(name);
  if (bytes.length <= LONGEST_NAME) return name;
  const beginning = new TextDecoder().decode(bytes.subarray(0, 45)).replace(/\uFFFD+$/, '');
  return `${beginning}_${digestOf(name).slice(0, 10)}_${suffix}`;
}

/** The name of a unique index that no constraint can be: it ends in a digest of its definition. */
export const isDefinedByName = (index: string): boolean => /_[0-9a-f]{8,10}_only$/.test(index);

/** Equal for tables whose entries in the change log have the same cells. */
export const loggedShape = ({ columns }: Pick<LoggedTable, 'columns'>): string =>
  shortDigest(JSON.stringify(columns.map(({ name, type }) => [name, type])));

/** 64 bits, as letters that a name may have. */
export const shortDigest = (text: string): string => digestOf(text).slice(0, 16);
