/** Writes the rows of a test file into a database, and reads them back. */
import type { Row } from '../../policy/types.ts';
import type { Store } from '../../records/access-context.ts';
import { recordKeyIn, recordKeyOf } from '../../records/record-key.ts';
import { everyTenant, scopeOf, tenantOf } from '../../records/scope.ts';
import { findSystem } from '../../records/system.ts';
import { type ColumnValue, withFoldedCopies } from '../../records/write/input.ts';
import { FIELD_KINDS } from '../../schema/fields/index.ts';
import type { Collection } from '../../schema/model/model.ts';
import { storedTables } from '../../schema/model/stored-names.ts';
import { ident, join, param, raw, type Sql, sql, tableIdent } from '../../sql.ts';
import type { PolicyTests } from './read-tests.ts';
import type { TestRow } from './test-rows.ts';
import { TestWorld } from './test-world.ts';

/** Replaces the rows of the database by those of the file. Throws StoreError for rows that it rejects. */
export async function fillWorld(store: Store, tests: PolicyTests): Promise<TestWorld> {
  await insertRows(store, tests.rows);
  const stored = new Map<string, ReadonlyMap<string, Row>>();
  for (const name of new Set(tests.rows.map(({ collection }) => collection))) {
    const rows = await findSystem(store, store.db, { collection: name, where: raw('TRUE') });
    stored.set(name, new Map(rows.map((row) => [String(row.id), row])));
  }
  return new TestWorld(store.schema, tests, stored);
}

/** The rows refer to each other in any order, so the database checks references at the end. */
async function insertRows(store: Store, rows: readonly TestRow[]): Promise<void> {
  const byCollection = Map.groupBy(rows, ({ collection }) => collection);
  // A test file has few rows: to truncate a table makes new files for it and for each of its indexes.
  const emptied = [...storedTables(store.schema)].map(
    (table, i) => sql`${ident(`emptied_${i}`)} AS (DELETE FROM ${tableIdent(table)})`,
  );
  await store.db.transaction(
    async (tx) => {
      await tx.run(raw("SET LOCAL session_replication_role = 'replica'"));
      await tx.run(sql`WITH ${join(emptied, ', ')} SELECT 1`);
      for (const [name, all] of byCollection) {
        await tx.run(insertionOf(store, name, all));
        for (const statement of linkings(store, name, all)) await tx.run(statement);
      }
    },
    { unlimited: true },
  );
}

function insertionOf(store: Store, name: string, rows: readonly TestRow[]): Sql {
  const { collection } = store.shape(name);
  const values = rows.map((row) => testColumns(store, collection, row));
  const columns = values[0]!.map(({ column }) => ident(column));
  const cells = values.map(
    (row) =>
      sql`(${join(
        row.map(({ type, value }) => sql`${param(type, value)}`),
        ', ',
      )})`,
  );
  return sql`
    INSERT INTO ${everyTenant(store.schema).into(name, 't')} (${join(columns, ', ')})
    VALUES ${join(cells, ', ')}`;
}

/** Every column in one order, so that all rows are one statement. */
function testColumns({ schema }: Store, collection: Collection, { id, values }: TestRow): readonly ColumnValue[] {
  const valueIn = (name: string): ColumnValue['value'] => (values[name] ?? null) as ColumnValue['value'];
  const key = recordKeyOf(collection);
  const columns: ColumnValue[] = [{ column: key.column, type: key.type, value: id }];
  for (const { name, type, column } of collection.fields.values())
    columns.push({ column, type: FIELD_KINDS[type].sqlType, value: valueIn(name) });
  for (const relation of collection.relations.values())
    if (relation.kind === 'belongs_to') {
      const { type } = recordKeyIn(schema, relation.collection);
      columns.push({ column: relation.column, type, value: valueIn(relation.name) });
    }
  if (collection.kind === 'users') columns.push({ column: 'roles', type: 'text[]', value: valueIn('roles') });
  return withFoldedCopies(collection, columns);
}

/** Links are of the tenant of their record. */
function linkings(store: Store, name: string, rows: readonly TestRow[]): readonly Sql[] {
  const { collection } = store.shape(name);
  const byTenant = Map.groupBy(rows, ({ values }) => tenantOf(collection, values));
  return [...collection.relations.values()].flatMap((relation) => {
    if (relation.kind !== 'many_to_many') return [];
    return [...byTenant].flatMap(([tenant, own]) => {
      const pairs = own.flatMap(({ id, links }) => (links.get(relation.name) ?? []).map((target) => ({ id, target })));
      return pairs.length === 0 ? [] : [scopeOf({ store, tenant }).linksInto(relation, name, pairs)];
    });
  });
}
