/** The rows of a test file in a database, and the same rows in memory for predicates. */

import { GUEST, GUEST_ROW } from '../../policy/check/guests.ts';
import type { Related, Row } from '../../policy/types.ts';
import type { Store } from '../../records/access-context.ts';
import { recordKeyIn, recordKeyOf } from '../../records/record-key.ts';
import { everyTenant, scopeOf, tenantOf } from '../../records/scope.ts';
import { findSystem } from '../../records/system.ts';
import { type ColumnValue, withFoldedCopies } from '../../records/write/input.ts';
import { FIELD_KINDS } from '../../schema/fields/index.ts';
import { rolesOfSession } from '../../schema/model/effective-roles.ts';
import type { Collection, ManyToMany } from '../../schema/model/model.ts';
import { storedTables } from '../../schema/model/stored-names.ts';
import { ident, join, param, raw, type Sql, sql, tableIdent } from '../../sql.ts';
import type { PolicyTests } from './read-tests.ts';
import type { TestRow } from './test-rows.ts';

export class TestWorld implements Related {
  readonly #store: Store;
  readonly #rows = new Map<string, Map<string, Row>>();
  readonly #links = new Map<string, readonly string[]>();
  readonly #found = new Map<string, ReadonlyMap<unknown, readonly Row[]>>();
  readonly #names: PolicyTests['names'];

  private constructor(store: Store, names: PolicyTests['names']) {
    this.#store = store;
    this.#names = names;
  }

  /** Replaces the rows of the database by those of the file. Throws StoreError for rows that it rejects. */
  static async fill(store: Store, tests: PolicyTests): Promise<TestWorld> {
    const world = new TestWorld(store, tests.names);
    await insertRows(store, tests.rows);
    for (const { collection, id, links } of tests.rows)
      for (const [relation, ids] of links) world.#links.set(`${collection}/${relation}/${id}`, ids);
    for (const name of new Set(tests.rows.map(({ collection }) => collection))) {
      const rows = await findSystem(store, store.db, { collection: name, where: raw('TRUE') });
      world.#rows.set(name, new Map(rows.map((row) => [String(row.id), row])));
    }
    return world;
  }

  row(collection: string, name: string): Row {
    return this.#rows.get(collection)!.get(this.#names.idOf(collection, name)!)!;
  }

  /** The caller as policies see it. */
  caller(name: string, secondFactor: boolean): Row {
    if (name === GUEST) return GUEST_ROW;
    const row = this.row('users', name);
    return { ...row, roles: rolesOfSession(this.#store.schema, row.roles as readonly string[], secondFactor) };
  }

  one(collection: string, id: string): Row | undefined {
    return this.#rows.get(collection)?.get(id);
  }

  many(from: string, name: string, id: string): readonly Row[] {
    const relation = this.#store.shape(from).collection.relations.get(name)!;
    if (relation.kind === 'many_to_many') return this.#linked(from, relation, id);
    if (relation.kind === 'belongs_to') return [];
    const key = `${relation.collection}.${relation.via}`;
    const found: ReadonlyMap<unknown, readonly Row[]> =
      this.#found.get(key) ??
      Map.groupBy<unknown, Row>(this.#rows.get(relation.collection)?.values() ?? [], (row) => row[relation.via]);
    this.#found.set(key, found);
    return found.get(id) ?? [];
  }

  /** The partners and members of a stored record, as an empty write would produce them. */
  heldBy({ name, relations }: Collection, id: string): Row {
    const held: Record<string, unknown> = {};
    for (const relation of relations.values()) {
      if (relation.kind !== 'has_one' && relation.kind !== 'many_to_many') continue;
      const ids = this.many(name, relation.name, id).map((row) => row.id);
      held[relation.name] = relation.kind === 'has_one' ? (ids[0] ?? null) : ids;
    }
    return held;
  }

  #linked(from: string, { name, collection }: ManyToMany, id: string): readonly Row[] {
    const ids = this.#links.get(`${from}/${name}/${id}`) ?? [];
    return ids.map((each) => this.one(collection, each)).filter((row) => row !== undefined);
  }
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
