/** The schema as the database lets it be served: what it lets this connection write, and values that its columns hold. */
import type { Queryable } from '../../database/contract.ts';
import { keyOf } from '../../policy/types.ts';
import { withoutLength } from '../../schema/fields/kind.ts';
import {
  type BelongsTo,
  type Collection,
  type Field,
  type HasOne,
  madeByDatabase,
  type Relation,
  type Schema,
} from '../../schema/model/model.ts';
import { unmanagedTables } from '../../schema/model/stored-names.ts';
import { ident, type Sql, sql } from '../../sql.ts';
import { type OwnersColumn, type OwnersTable, readOwnersTables } from './owners-tables.ts';

function servedSchema(schema: Schema, owners: ReadonlyMap<string, OwnersTable>): Schema {
  if (owners.size === 0) return schema;
  const collections = [...schema.collections].map(([name, collection]): [string, Collection] => {
    const table = collection.managed ? undefined : owners.get(collection.table);
    return [name, table === undefined ? collection : servedCollection(collection, table)];
  });
  const served = new Map(collections);
  const hasPaddedKey = (name: string): boolean => isPadded(schema.collections.get(name)!, owners);
  for (const [name, collection] of served)
    served.set(name, withReadOnlyPartners(withoutPadding(collection, hasPaddedKey), served));
  return { ...schema, collections: served };
}

/** A has_one sets a reference in the other table. */
function withReadOnlyPartners(collection: Collection, all: ReadonlyMap<string, Collection>): Collection {
  const kept = [...collection.relations].flatMap(([name, relation]) => {
    const via = relation.kind === 'has_one' ? all.get(relation.collection)!.relations.get(relation.via) : undefined;
    const isKept = via?.kind === 'belongs_to' && via.isKept;
    return isKept ? [[name, { ...relation, readOnly: true } as HasOne] as const] : [];
  });
  return kept.length === 0 ? collection : { ...collection, relations: new Map([...collection.relations, ...kept]) };
}

/** The ids are `character`, whose values have spaces up to its length. */
function isPadded({ managed, table, key }: Collection, owners: ReadonlyMap<string, OwnersTable>): boolean {
  const column = managed || key === undefined ? undefined : owners.get(table)?.columns.get(key.column);
  return column !== undefined && withoutLength(column.type) === 'character';
}

/** Ids are read without these spaces, which mean nothing, in their own table and where others refer to them. */
function withoutPadding(collection: Collection, hasPaddedKey: (name: string) => boolean): Collection {
  const { name, key, relations } = collection;
  const bare = [...relations.values()].flatMap((relation) =>
    relation.kind === 'belongs_to' && relation.columns === undefined && hasPaddedKey(relation.collection)
      ? [[relation.name, withoutSpaces(relation)] as const]
      : [],
  );
  const own =
    key !== undefined && hasPaddedKey(name) ? { key: { ...key, made: unpadded(ident('s', key.column)) } } : {};
  return { ...collection, ...own, ...(bare.length > 0 && { relations: new Map([...relations, ...bare]) }) };
}

function withoutSpaces(relation: BelongsTo): BelongsTo {
  const { column, references } = relation;
  if (references !== undefined) return { ...relation, references: { ...references, keyAs: '::text' } };
  return { ...relation, made: (row) => unpadded(ident(row, column)) };
}

const unpadded = (column: Sql): Sql => sql`${column}::text`;

function servedCollection(collection: Collection, { columns, writes, hasRowLocks }: OwnersTable): Collection {
  const fields = [...collection.fields].map(([name, field]): [string, Field] => {
    const column = columns.get(field.column);
    return [name, column === undefined ? field : servedField(field, column)];
  });
  const relations = [...collection.relations].map(([name, relation]): readonly [string, Relation] => {
    if (relation.kind !== 'belongs_to') return [name, relation];
    const { isWritable = true, takesUpdates = true } = columns.get(relation.column) ?? {};
    const isReadOnly = !isWritable && { readOnly: true, needed: false };
    return [name, { ...relation, ...isReadOnly, isKept: !takesUpdates }];
  });
  // A view has no default of the table below it.
  const hasIds = !madeByDatabase(collection) || columns.get(keyOf(collection).column)?.hasDefault === true;
  const taken =
    collection.key?.parts === undefined ? { ...writes, create: writes.create && hasIds } : collection.writes!;
  return {
    ...collection,
    writes: taken,
    hasNoRowLocks: !hasRowLocks,
    fields: new Map(fields),
    relations: new Map(relations),
  };
}

/** The largest values of the narrow numbers. */
const MOST: Readonly<Record<string, number>> = {
  smallint: 32_767,
  integer: 2_147_483_647,
  real: 3.4028234663852886e38,
};

function servedField(field: Field, { type, labels, isWritable }: OwnersColumn): Field {
  if (!isWritable) return { ...field, readOnly: true, needed: false, isComputed: true };
  if (labels !== undefined) return { ...field, castTo: type };
  // A cast to strings of a length cuts them off, where an assignment reports an error.
  const castTo = type.endsWith('[]') ? withoutLength(type) : type;
  const cast = field.storedAs === undefined ? {} : { castTo };
  const length = Number(/^character(?: varying)?\((\d+)\)$/.exec(type)?.[1] ?? Number.POSITIVE_INFINITY);
  const most = MOST[type] ?? length;
  if (most === Number.POSITIVE_INFINITY) return { ...field, ...cast };
  const max = field.max === undefined ? most : Math.min(Number(field.max), most);
  if (MOST[type] === undefined) return { ...field, ...cast, max };
  const least = -most - 1;
  return { ...field, ...cast, max, min: field.min === undefined ? least : Math.max(Number(field.min), least) };
}

export const schemaServedBy = async (db: Queryable, schema: Schema): Promise<Schema> =>
  servedSchema(schema, await readOwnersTables(db, [...unmanagedTables(schema)]));
