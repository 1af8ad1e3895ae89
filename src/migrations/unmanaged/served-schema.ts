/** The schema as the database lets it be served: what it lets this connection write, and values that its columns hold. */
import type { Queryable } from '../../database/contract.ts';
import { withoutLength } from '../../schema/fields/kind.ts';
import type { Collection, Field, Schema } from '../../schema/model/model.ts';
import { unmanagedTables } from '../../schema/model/stored-names.ts';
import { type OwnersColumn, type OwnersTable, readOwnersTables } from './owners-tables.ts';

function servedSchema(schema: Schema, owners: ReadonlyMap<string, OwnersTable>): Schema {
  if (owners.size === 0) return schema;
  const collections = [...schema.collections].map(([name, collection]): [string, Collection] => {
    const table = collection.managed ? undefined : owners.get(collection.table);
    return [name, table === undefined ? collection : servedCollection(collection, table)];
  });
  return { ...schema, collections: new Map(collections) };
}

function servedCollection(collection: Collection, { columns, writes, hasRowLocks }: OwnersTable): Collection {
  const fields = [...collection.fields].map(([name, field]): [string, Field] => {
    const column = columns.get(field.column);
    return [name, column === undefined ? field : servedField(field, column)];
  });
  const relations = [...collection.relations].map(([name, relation]) => {
    const isReadOnly = relation.kind === 'belongs_to' && columns.get(relation.column)?.isWritable === false;
    return [name, isReadOnly ? { ...relation, readOnly: true, needed: false } : relation] as const;
  });
  const taken = collection.key?.parts === undefined ? writes : collection.writes!;
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
  if (!isWritable) return { ...field, readOnly: true, needed: false };
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
