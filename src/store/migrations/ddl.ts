/** Statements that define tables, by knex's schema builder; the names of constraints are ours. */

import knex from 'knex';
import { invariant } from '../../invariant.ts';
import { type Column, type ForeignKey, nameOf, type Table } from './tables.ts';

/** Compiles only; it never connects. */
const builder = knex({ client: 'pg' });
type Build = ReturnType<typeof builder.schema.createTable>;

/** Definitions take no parameters, and knex gives each statement on its own. */
const statementsOf = (build: Build): readonly string[] => build.toSQL().map(({ sql }) => sql);

/** The table with its key and unique columns; foreign keys and indexes follow when all tables are there. */
export function createTable(table: Table): readonly string[] {
  return statementsOf(
    builder.schema.createTable(table.name, (t) => {
      for (const column of table.columns) {
        const made = t.specificType(column.name, columnTypeOf(column));
        if (column.required) made.notNullable();
        if (column.standing !== undefined) made.defaultTo(builder.raw(column.standing));
      }
      t.primary([...table.primaryKey], { constraintName: nameOf(table.name, [], 'pkey') });
      for (const column of table.uniques) t.unique([column], uniqueNamed(table.name, column));
    }),
  );
}

export const columnTypeOf = ({ type }: Column): string => (type === 'text' ? 'text COLLATE "C"' : type);

/** Deferred: the policies decide on the resulting rows before a duplicate is reported. */
const uniqueNamed = (table: string, column: string) =>
  ({ indexName: nameOf(table, [column], 'key'), deferrable: 'deferred' }) as const;

export function addUnique(table: string, column: string): string {
  return only(builder.schema.alterTable(table, (t) => t.unique([column], uniqueNamed(table, column))));
}

export function addForeignKey(table: string, key: ForeignKey): string {
  return only(
    builder.schema.alterTable(table, (t) =>
      t
        .foreign(key.column, nameOf(table, [key.column], 'fkey'))
        .references('id')
        .inTable(key.table)
        .onDelete(key.onDelete),
    ),
  );
}

export function createIndex(table: string, columns: readonly string[]): string {
  return only(builder.schema.alterTable(table, (t) => t.index([...columns], nameOf(table, columns, 'idx'))));
}

function only(build: Build): string {
  const [statement, ...more] = statementsOf(build);
  invariant(statement !== undefined && more.length === 0, 'one definition is one statement');
  return statement;
}
