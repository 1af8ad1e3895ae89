/** The columns of a row, by their names in the catalog. */
import { type ColumnRef, type Condition, type Exists, heldColumn, type Source } from '../condition.ts';
import { equalityOf } from '../operators.ts';
import {
  type Catalog,
  type CatalogBelongsTo,
  type CatalogCollection,
  type CatalogField,
  type CatalogManyToMany,
  type CatalogRelation,
  ELEMENT_VALUE,
  type HasOne,
  idOf,
  keyOf,
  type ToManyPath,
  type ValueType,
} from '../types.ts';
import { and, or } from './simplify.ts';

export type ExistsKey = Pick<Exists, 'by' | 'key'>;
/** The row that has a column. */
interface RowOf {
  readonly catalog: Catalog;
  readonly source: Source;
}

/** Returns the key by which a row of `from` finds the rows of `relation`. */
export function lookup(relation: CatalogRelation, from: string, { catalog, source }: RowOf): ExistsKey {
  if (relation.kind === 'belongs_to') return { by: 'id', key: belongsToColumn(relation, { catalog, source }) };
  if (source.state === 'stored' || relation.kind === 'has_many')
    return { by: 'owner', key: idColumn(from, { catalog, source }) };
  return { by: relation.kind === 'has_one' ? 'id' : 'members', key: heldKey(relation, { catalog, source }) };
}

/** Returns the key by which the owner finds the elements. */
export function elementsBy({ relation, steps, from }: ToManyPath, key: ExistsKey['key'], catalog: Catalog): ExistsKey {
  if (relation.kind === 'ancestors') return { by: 'id', key };
  if (relation.kind === 'elements') return { by: 'elements', key };
  // A foreign key leads to a stored record, also when a written record holds it.
  const isStored = steps.length > 0 || key.kind === 'slot';
  return isStored ? { by: 'owner', key } : lookup(relation, from, { catalog, source: key.source });
}

/** The tenant condition of an `exists` over rows of `target`, found from a row of `from` by `key`. */
export function colocation(
  from: CatalogCollection,
  target: CatalogCollection,
  key: ExistsKey['key'],
): Pick<Exists, 'colocated'> {
  const { tenantLayout } = from;
  // A request holds the ids of records that every machine has.
  if (tenantLayout?.kind !== 'by' || key.kind === 'slot') return {};
  const { column } = tenantLayout;
  const type = { id: target.name };
  const outer = {
    kind: 'column',
    source: key.source,
    name: column,
    column,
    type,
    nullable: false,
    selective: true,
  } as const;
  const own = target.tenantLayout?.kind === 'by' ? { own: target.tenantLayout.column } : {};
  return { colocated: { outer, ...own } };
}

export function heldKey(relation: HasOne | CatalogManyToMany, { catalog, source }: RowOf): ColumnRef {
  const { name, collection, kind } = relation;
  const type = idOf(catalog, collection);
  const nullable = kind === 'has_one';
  return { kind: 'column', source, name, column: heldColumn(relation), type, nullable, selective: true };
}

export function fieldColumn(field: CatalogField, source: Source): ColumnRef {
  const { name, column, type, required, unique, index, part } = field;
  const own = { name, column, type, nullable: !required, selective: unique || index };
  return { kind: 'column', source, ...own, ...(part && { part }) };
}

export function elementColumn(type: ValueType, source: Source): ColumnRef {
  const name = ELEMENT_VALUE;
  return { kind: 'column', source, name, column: name, type, nullable: false, selective: false };
}

/** The same present value. */
export const equalColumns = (left: ColumnRef, right: ColumnRef): Condition => ({
  kind: 'test',
  op: equalityOf(true),
  negated: false,
  left,
  right,
});

/** Equal, or absent on both sides. */
export function sameValue(left: ColumnRef, right: ColumnRef): Condition {
  const equal = equalColumns(left, right);
  if (!left.nullable) return equal;
  const absent = [left, right].map((column): Condition => ({ kind: 'null', negated: false, column }));
  return or([equal, and(absent)]);
}

export function idColumn(collection: string, { catalog, source }: RowOf): ColumnRef {
  return {
    kind: 'column',
    source,
    name: 'id',
    column: keyOf(catalog.collections.get(collection)!).column,
    type: idOf(catalog, collection),
    nullable: false,
    selective: true,
  };
}

export function belongsToColumn(relation: Omit<CatalogBelongsTo, 'kind'>, { catalog, source }: RowOf): ColumnRef {
  const { name, column, collection, required } = relation;
  const type = idOf(catalog, collection);
  return { kind: 'column', source, name, column, type, nullable: !required, selective: true };
}
