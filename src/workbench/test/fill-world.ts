/** Writes the rows of a test file into a database, and reads them back. */
import { StoreError, type Transaction } from '../../database/contract.ts';
import { present } from '../../invariant.ts';
import { keyOf, type Row } from '../../policy/types.ts';
import type { Store } from '../../records/access-context.ts';
import { toRefusal } from '../../records/constraint-errors.ts';
import { passGivenIds } from '../../records/new-ids.ts';
import { recordKeyIn, recordKeyOf } from '../../records/record-key.ts';
import { everyTenant, scopeOf, tenantOf } from '../../records/scope.ts';
import { findSystem } from '../../records/system.ts';
import { type ColumnValue, withFoldedCopies } from '../../records/write/input.ts';
import { Refusal } from '../../refusal.ts';
import { FIELD_KINDS } from '../../schema/fields/index.ts';
import type { SchemaIssue } from '../../schema/file/issue.ts';
import { SourceText } from '../../schema/file/source.ts';
import { COMPOSITE_KEY_COLUMN } from '../../schema/model/composite-key.ts';
import type { BelongsTo, Schema } from '../../schema/model/model.ts';
import { storedTables } from '../../schema/model/stored-names.ts';
import { empty, ident, join, param, raw, type Sql, sql, tableIdent } from '../../sql.ts';
import type { PolicyTests } from './read-tests.ts';
import type { TestRow } from './test-rows.ts';
import { TestWorld } from './test-world.ts';

/** The database rejects the row beside those before it. */
export class RejectedRow extends Error {
  /** The file of tests. */
  readonly file: string;
  readonly #row: TestRow;
  readonly #refusal: Refusal;

  constructor(file: string, row: TestRow, refusal: Refusal) {
    super(refusal.message);
    this.file = file;
    this.#row = row;
    this.#refusal = refusal;
  }

  /** @param text of the file */
  issueIn(text: string): SchemaIssue {
    const [error] = this.#refusal.errors;
    const member = error?.pointer?.split('/')[2];
    const path = [...this.#row.path, ...(member === undefined ? [] : [member])];
    const source = new SourceText(text, this.file, { merge: true });
    source.report({ code: this.#refusal.code, message: error?.detail ?? this.message, path });
    return present(source.issues[0], 'the issue that was reported');
  }
}

/** Replaces the rows of the database by those of the file. Throws RejectedRow. */
export async function fillWorld(store: Store, tests: PolicyTests): Promise<TestWorld> {
  await insertRows(store, tests.rows).catch(async (error: unknown) => {
    throw (error instanceof StoreError ? await rejectedRow(store, tests) : undefined) ?? error;
  });
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
        await tx.run(insertionOf(store, name, { all, rows }));
        for (const statement of linkings(store, name, all)) await tx.run(statement);
        await passNumbersOf(store, tx, name);
      }
    },
    { unlimited: true },
  );
}

/** The first row that the database rejects; undefined if it takes each of them. */
async function rejectedRow(store: Store, tests: PolicyTests): Promise<RejectedRow | undefined> {
  for (const [i, row] of tests.rows.entries()) {
    const error = await insertRows(store, tests.rows.slice(0, i + 1)).catch((reason: unknown) => reason);
    const refusal = error === undefined ? undefined : toRefusal(error, store.shape(row.collection).collection);
    if (refusal instanceof Refusal) return new RejectedRow(tests.file, row, refusal);
    if (error !== undefined) throw error;
  }
  return undefined;
}

/** The database numbers new records after the rows. */
async function passNumbersOf({ schema }: Store, tx: Transaction, name: string): Promise<void> {
  const collection = schema.collections.get(name)!;
  if (keyOf(collection).kind === 'int') await passGivenIds(tx, schema, collection);
}

interface InsertedRows {
  /** The rows of the collection. */
  readonly all: readonly TestRow[];
  /** The rows of every collection, to which these refer. */
  readonly rows: readonly TestRow[];
}

function insertionOf(store: Store, name: string, { all, rows }: InsertedRows): Sql {
  const values = all.map((row) => testColumns(store, rows, row));
  const columns = values[0]!.map(({ column }) => ident(column));
  const cells = values.map(
    (row) =>
      sql`(${join(
        row.map(
          ({ type, value, castTo }) => sql`${param(type, value)}${castTo === undefined ? empty : raw(`::${castTo}`)}`,
        ),
        ', ',
      )})`,
  );
  return sql`
    INSERT INTO ${everyTenant(store.schema).into(name, 't')} (${join(columns, ', ')})
    VALUES ${join(cells, ', ')}`;
}

/** Every column in one order, so that all rows are one statement. */
function testColumns({ schema }: Store, rows: readonly TestRow[], row: TestRow): readonly ColumnValue[] {
  const { id, values } = row;
  const collection = schema.collections.get(row.collection)!;
  const valueIn = (name: string): ColumnValue['value'] => (values[name] ?? null) as ColumnValue['value'];
  const key = recordKeyOf(collection);
  const columns: ColumnValue[] =
    key.column === COMPOSITE_KEY_COLUMN ? [] : [{ column: key.column, type: key.type, value: id }];
  for (const { name, type, column, castTo } of collection.fields.values())
    columns.push({ column, type: FIELD_KINDS[type].sqlType, value: valueIn(name), castTo });
  for (const relation of collection.relations.values())
    if (relation.kind === 'belongs_to' && relation.columns === undefined)
      columns.push(referenceIn(schema, relation, { id: valueIn(relation.name), rows }));
  if (collection.kind === 'users') columns.push({ column: 'roles', type: 'text[]', value: valueIn('roles') });
  return withFoldedCopies(collection, columns);
}

interface GivenReference {
  readonly id: ColumnValue['value'];
  readonly rows: readonly TestRow[];
}

/** The id, or the value of another unique field of the row that it names. */
function referenceIn(schema: Schema, relation: BelongsTo, { id, rows }: GivenReference): ColumnValue {
  const { column, collection, references } = relation;
  if (references === undefined) return { column, type: recordKeyIn(schema, collection).type, value: id };
  const { type, castTo } = schema.collections.get(collection)!.fields.get(references.field)!;
  const named = rows.find((row) => row.collection === collection && row.id === String(id));
  const value = (named?.values[references.field] ?? null) as ColumnValue['value'];
  return { column, type: FIELD_KINDS[type].sqlType, value, castTo };
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
