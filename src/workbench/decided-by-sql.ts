/** Decides a world again by SQL, on tables that hold only its rows. */

import type { World } from '../policy/analyse/solve/world.ts';
import { heldColumn } from '../policy/condition.ts';
import { fold, foldedColumn } from '../policy/fold.ts';
import { scalarOf } from '../policy/scalar-types.ts';
import { rowsOf } from '../policy/stored-rows.ts';
import {
  type Catalog,
  type CatalogBelongsTo,
  type CatalogCollection,
  idOf,
  keyOf,
  type Policy,
  type Row,
} from '../policy/types.ts';
import { own } from '../policy/values.ts';
import { ident, join, param, raw, type Sql, type SqlType, schemasOfTables, sql, tableIdent } from '../sql.ts';

/** Runs a statement on a database in memory, and returns its rows. */
export type Ask = (statement: Sql) => Promise<readonly Readonly<Record<string, unknown>>[]>;

/** The predicate and SQL, or the predicate and the solver, decide one world differently: a defect of bylaw. */
export class ReplayDisagreement extends Error {
  readonly world: World;
  readonly catalog: Catalog;
  constructor(world: World, catalog: Catalog) {
    super(`SQL and the predicate decide ${world.action} on \`${world.collection}\` differently`);
    this.world = world;
    this.catalog = catalog;
  }
}

interface ReplayedColumn {
  readonly name: string;
  readonly type: SqlType;
  value(row: Row): unknown;
}
const WRITTEN_TABLE = '_written';

/** The decision of SQL on each list of rules. */
export async function decidedBySql(
  world: World,
  lists: readonly (readonly Policy[])[],
  { catalog, ask }: { readonly catalog: Catalog; readonly ask: Ask },
): Promise<readonly boolean[]> {
  const schema = ident('replay');
  await ask(sql`DROP SCHEMA IF EXISTS ${schema} CASCADE`);
  await ask(sql`CREATE SCHEMA ${schema}`);
  for (const owner of schemasOfTables(Array.from(catalog.collections.values(), ({ table }) => table))) {
    await ask(sql`DROP SCHEMA IF EXISTS ${ident(owner)} CASCADE`);
    await ask(sql`CREATE SCHEMA ${ident(owner)}`);
  }
  await ask(sql`SET search_path = ${schema}`);
  await fillTables(world, catalog, ask);
  const decisions: boolean[] = [];
  for (const rules of lists) decisions.push(await decidesInSql(rules, world, { catalog, ask }));
  return decisions;
}

async function fillTables(world: World, catalog: Catalog, ask: Ask): Promise<void> {
  const { collections } = catalog;
  const stored = (relation: CatalogBelongsTo): ReplayedColumn => storedIn(relation, world, catalog);
  for (const collection of collections.values()) {
    const rows = world.rows.get(collection.name) ?? [];
    await makeTable(ask, tableIdent(collection.table), { columns: replayedColumns(collection, catalog, stored), rows });
    for (const relation of collection.relations.values()) {
      if (relation.kind !== 'many_to_many') continue;
      const links = world.links.filter(
        (link) => link.collection === collection.name && link.relation === relation.name,
      );
      const columns = [
        {
          name: relation.sourceColumn,
          type: replayedIdType(catalog, collection.name),
          value: ({ owner }: Row) => owner,
        },
        {
          name: relation.targetColumn,
          type: replayedIdType(catalog, relation.collection),
          value: ({ element }: Row) => element,
        },
      ] as const;
      await makeTable(ask, ident(relation.linkTable), { columns, rows: links as unknown as readonly Row[] });
    }
  }
  const collection = collections.get(world.collection)!;
  if (world.written !== undefined)
    await makeTable(ask, ident(WRITTEN_TABLE), {
      columns: [...replayedColumns(collection, catalog), ...heldOf(collection, catalog)],
      rows: [world.written],
    });
}

interface WorldContent {
  readonly columns: readonly ReplayedColumn[];
  readonly rows: readonly Row[];
}

async function makeTable(ask: Ask, table: Sql, { columns, rows }: WorldContent): Promise<void> {
  const declared = columns.map(({ name: column, type }) => {
    const collation = type === 'text' ? raw(' COLLATE "C"') : raw('');
    return sql`${ident(column)} ${raw(type)}${collation}`;
  });
  await ask(sql`CREATE TABLE ${table} (${join(declared, ', ')})`);
  for (const row of rows) {
    const values = columns.map((column) => sql`${param(column.type, column.value(row) ?? null)}`);
    await ask(sql`INSERT INTO ${table} VALUES (${join(values, ', ')})`);
  }
}

/** A written record is one as policies read it: its references are ids. */
const idIn = ({ name, column, collection }: CatalogBelongsTo, catalog: Catalog): ReplayedColumn => ({
  name: column,
  type: replayedIdType(catalog, collection),
  value: (row) => own(row, name),
});

const replayedIdType = (catalog: Catalog, collection: string): SqlType => scalarOf(idOf(catalog, collection)).sqlType;

/** The column of the table: it may have another value of the related record than its id. */
function storedIn(relation: CatalogBelongsTo, world: World, catalog: Catalog): ReplayedColumn {
  const { name, column, collection, references } = relation;
  const field = references && catalog.collections.get(collection)?.fields.get(references.field);
  if (field === undefined) return idIn(relation, catalog);
  const value = (row: Row): unknown => {
    const target = world.rows.get(collection)?.find(({ id }) => id === own(row, name));
    return target && own(target, field.name);
  };
  return { name: column, type: scalarOf(field.type).sqlType, value };
}

function replayedColumns(
  collection: CatalogCollection,
  catalog: Catalog,
  referenceIn = (relation: CatalogBelongsTo) => idIn(relation, catalog),
): readonly ReplayedColumn[] {
  const { fields, relations } = collection;
  const key = { name: keyOf(collection).column, type: replayedIdType(catalog, collection.name) };
  const columns: ReplayedColumn[] = [{ ...key, value: ({ id }) => id }];
  for (const { name, column, type, search } of fields.values()) {
    columns.push({ name: column, type: scalarOf(type).sqlType, value: (row) => own(row, name) });
    const folded = (row: Row): unknown => {
      const value = own(row, name);
      return typeof value === 'string' ? fold(value) : null;
    };
    if (search) columns.push({ name: foldedColumn(column), type: 'text', value: folded });
  }
  for (const relation of relations.values()) if (relation.kind === 'belongs_to') columns.push(referenceIn(relation));
  return columns;
}

/** The partners and members that a written record names itself. */
function heldOf({ relations }: CatalogCollection, catalog: Catalog): readonly ReplayedColumn[] {
  return [...relations.values()].flatMap((relation): readonly ReplayedColumn[] => {
    const type = replayedIdType(catalog, relation.collection);
    const value = (row: Row): unknown => own(row, relation.name);
    if (relation.kind === 'has_one') return [{ name: heldColumn(relation), type, value }];
    return relation.kind === 'many_to_many'
      ? [{ name: heldColumn(relation), type: `${type}[]` as SqlType, value }]
      : [];
  });
}

interface ReplayPlace {
  readonly catalog: Catalog;
  readonly ask: Ask;
}

async function decidesInSql(rules: readonly Policy[], world: World, { catalog, ask }: ReplayPlace): Promise<boolean> {
  const collection = catalog.collections.get(world.collection)!;
  const key = ident('record', keyOf(collection).column);
  for (const rule of rules) {
    const residual = rule.specialise(world.request);
    const isWritten = world.action === 'create';
    const from = isWritten ? ident(WRITTEN_TABLE) : rowsOf(collection);
    const id = param(replayedIdType(catalog, world.collection), (world.record ?? world.written)!.id);
    const both = world.action === 'update' ? sql`, ${ident(WRITTEN_TABLE)} AS next` : sql``;
    const conditions = [
      residual.where('record', rule.namesNext || isWritten ? (isWritten ? 'record' : 'next') : undefined),
    ];
    if (world.action === 'update' && !rule.namesNext) conditions.push(residual.written.where('next'));
    const met = await ask(
      sql`SELECT 1 AS met FROM ${from} AS record${both} WHERE ${key} = ${id} AND ${join(conditions, ' AND ')}`,
    );
    if (met.length > 0) return true;
  }
  return false;
}
