/** Statements that define tables, by knex's schema builder; the names of constraints are ours. */

import { createRequire } from 'node:module';
import type knex from 'knex';
import { invariant } from '../invariant.ts';
import { memoized } from '../memoized.ts';
import { constraintName } from '../schema/model/stored-names.ts';
import { ident } from '../sql.ts';
import type { Divided } from './division.ts';
import type { Column, ForeignKey, Table } from './tables.ts';

/**
 * Compiles only; it never connects. Loaded with the first statement: most starts change no table,
 * and the package is slow to load.
 */
const builder = memoized(() => (createRequire(import.meta.url)('knex') as typeof knex)({ client: 'pg' }));
type Build = ReturnType<ReturnType<typeof builder>['schema']['createTable']>;

/** Definitions take no parameters, and knex gives each statement on its own. */
const statementsOf = (build: Build): readonly string[] => build.toSQL().map(({ sql }) => sql);

/** The table with its key and unique columns; foreign keys and indexes follow when all tables are there. */
export function createTable(table: Table, { clause, then }: Divided): readonly string[] {
  const [create, ...constraints] = statementsOf(
    builder().schema.createTable(table.name, (t) => {
      for (const column of table.columns) {
        const made = t.specificType(column.name, columnTypeOf(column));
        if (column.required) made.notNullable();
        if (column.standing !== undefined) made.defaultTo(builder().raw(column.standing));
      }
      t.primary([...table.primaryKey], { constraintName: constraintName(table.name, [], 'pkey') });
      for (const columns of table.uniques) t.unique([...columns], uniqueNamed(table.name, columns));
    }),
  );
  return [`${create}${clause}`, ...constraints, ...then];
}

export const columnTypeOf = ({ type }: Column): string => (type === 'text' ? 'text COLLATE "C"' : type);

const uniqueNamed = (table: string, columns: readonly string[]) => ({ indexName: uniqueName(table, columns) });

/** By the field's column: an error is reported for the field. */
export const uniqueName = (table: string, columns: readonly string[], suffix: 'key' | 'newkey' = 'key'): string =>
  constraintName(table, columns.slice(-1), suffix);

export function addUnique(table: string, columns: readonly string[]): string {
  return only(builder().schema.alterTable(table, (t) => t.unique([...columns], uniqueNamed(table, columns))));
}

/** The index that `attachUnique` makes a constraint. */
export const createUniqueIndex = (table: string, columns: readonly string[], index: string): string =>
  `CREATE UNIQUE INDEX CONCURRENTLY ${quoted(index)} ON ${quoted(table)} (${columns.map(quoted).join(', ')})`;

export interface Attached {
  readonly index: string;
  /** Names of constraints that it takes the place of. */
  readonly replaces: readonly string[];
}

/** The index gets the name of the constraint. One statement: at no time do rows go unchecked. */
export function attachUnique(table: string, columns: readonly string[], { index, replaces }: Attached): string {
  const name = quoted(uniqueName(table, columns));
  const drops = replaces.map((old) => `DROP CONSTRAINT ${quoted(old)}, `).join('');
  return `ALTER TABLE ${quoted(table)} ${drops}ADD CONSTRAINT ${name} UNIQUE USING INDEX ${quoted(index)}`;
}

const quoted = (name: string): string => ident(name).text;

/** `NOT VALID`: rows that exist are not looked at. */
export function addForeignKey(table: string, key: ForeignKey, isOnline = false): string {
  const { own, references } = foreignColumns(key);
  const statement = only(
    builder().schema.alterTable(table, (t) =>
      t
        .foreign([...own], constraintName(table, [key.column], 'fkey'))
        .references([...references])
        .inTable(key.table)
        .onDelete(key.onDelete),
    ),
  );
  return isOnline ? `${statement} not valid` : statement;
}

interface ForeignColumns {
  readonly own: readonly string[];
  readonly references: readonly string[];
}

export const foreignColumns = ({ column, tenant }: ForeignKey): ForeignColumns =>
  tenant === undefined
    ? { own: [column], references: ['id'] }
    : { own: [tenant.column, column], references: [tenant.references, 'id'] };

export function createIndex(table: string, columns: readonly string[], isOnline = false): string {
  const name = constraintName(table, columns, 'idx');
  const statement = only(builder().schema.alterTable(table, (t) => t.index([...columns], name)));
  return isOnline ? statement.replace('create index', 'create index concurrently') : statement;
}

function only(build: Build): string {
  const [statement, ...more] = statementsOf(build);
  invariant(statement !== undefined && more.length === 0, 'one definition is one statement');
  return statement;
}
