/**
 * Statements that knex's schema builder makes whole; the names of constraints are ours. INVARIANT:
 * nothing changes the text of such a statement. Statements that knex cannot make whole are written
 * by the `sql` tag (online-ddl.ts, tenant-tables.ts).
 */
import { createRequire } from 'node:module';
import type knex from 'knex';
import { invariant } from '../invariant.ts';
import { memoized } from '../memoized.ts';
import { constraintName } from '../schema/model/stored-names.ts';
import { raw, type Sql } from '../sql.ts';
import { columnTypeOf, type ForeignKey, foreignColumns, indexMethod, type Table, uniqueName } from './tables.ts';

/**
 * Compiles only; it never connects. The first statement loads it: most starts change no table, and
 * the package is slow to load.
 */
const builder = memoized(() => (createRequire(import.meta.url)('knex') as typeof knex)({ client: 'pg' }));
type Build = ReturnType<ReturnType<typeof builder>['schema']['createTable']>;

/** Definitions take no parameters, and knex gives each statement on its own. */
const statementsOf = (build: Build): readonly Sql[] => build.toSQL().map(({ sql: statement }) => raw(statement));

function singleStatement(build: Build): Sql {
  const [statement, ...more] = statementsOf(build);
  invariant(statement !== undefined && more.length === 0, 'one definition is one statement');
  return statement;
}

/** The table with its key and unique columns; foreign keys and indexes follow when all tables are there. */
export const createTable = (table: Table): readonly Sql[] =>
  statementsOf(
    builder().schema.createTable(table.name, (t) => {
      for (const column of table.columns) {
        const made = t.specificType(column.name, columnTypeOf(column));
        if (column.required) made.notNullable();
        if (column.columnDefault !== undefined) made.defaultTo(builder().raw(column.columnDefault));
      }
      t.primary([...table.primaryKey], { constraintName: constraintName(table.name, [], 'pkey') });
      for (const columns of table.uniques) t.unique([...columns], { indexName: uniqueName(table.name, columns) });
    }),
  );

export const addUnique = (table: string, columns: readonly string[]): Sql =>
  singleStatement(
    builder().schema.alterTable(table, (t) => t.unique([...columns], { indexName: uniqueName(table, columns) })),
  );

export function addForeignKey(table: string, key: ForeignKey): Sql {
  const { own, references } = foreignColumns(key);
  return singleStatement(
    builder().schema.alterTable(table, (t) => {
      const made = t
        .foreign([...own], constraintName(table, [key.column], 'fkey'))
        .references([...references])
        .inTable(key.table)
        .onDelete(key.onDelete);
      if (key.isOfValue) made.onUpdate('CASCADE');
    }),
  );
}

export const createIndex = (table: Table, columns: readonly string[]): Sql =>
  singleStatement(
    builder().schema.alterTable(table.name, (t) =>
      t.index([...columns], constraintName(table.name, columns, 'idx'), indexMethod(table, columns)),
    ),
  );
