/** The exact filters of a list: the conditions that they are, and what they say of the records that they find. */
import type { ColumnValues } from '../../policy/branch.ts';
import type { Row } from '../../policy/types.ts';
import type { Scalar } from '../../policy/values.ts';
import { FIELD_KINDS } from '../../schema/fields/index.ts';
import type { BelongsTo, Field, HasMany, HasOne, ManyToMany } from '../../schema/model/model.ts';
import { ident, param, raw, type Sql, sql, uuid } from '../../sql.ts';
import { type AccessContext, type Reading, readable, readableReference } from '../access-context.ts';
import { areLinksOf, areLinksOfTenant, isOfTenant } from '../scope.ts';

/** Each value already has the type of its field. */
export type Filter =
  | { readonly kind: 'field'; readonly field: Field; readonly value: Scalar }
  | { readonly kind: 'id'; readonly value: string }
  | { readonly kind: 'belongs_to'; readonly relation: BelongsTo; readonly id: string }
  | { readonly kind: 'has_one'; readonly relation: HasOne; readonly id: string }
  | { readonly kind: 'any'; readonly relation: HasMany | ManyToMany; readonly id: string };

/** What is true of every record that the filters find. A member that is hidden in some records gives none. */
export const factsOf = (access: AccessContext, filters: readonly Filter[]): Row =>
  Object.fromEntries(filters.flatMap((filter) => factOf(access, filter)));

function factOf(access: AccessContext, filter: Filter): readonly (readonly [name: string, value: Scalar])[] {
  switch (filter.kind) {
    case 'id':
      return [['id', filter.value]];
    case 'field':
      return isOpen(access, filter.field) ? [[filter.field.name, filter.value]] : [];
    case 'belongs_to':
      return isOpen(access, filter.relation) ? [[filter.relation.name, filter.id]] : [];
    case 'has_one':
    case 'any':
      return [];
  }
}

/**
 * For estimates; undefined where a filter finds few records by itself. A member that is hidden in some records gives none, or
 * the time of an answer would tell how often a hidden value occurs.
 */
export function testsOf(access: AccessContext, filters: readonly Filter[]): readonly ColumnValues[] | undefined {
  const tests: ColumnValues[] = [];
  for (const filter of filters) {
    if (isOfLinks(filter)) continue;
    if (filter.kind !== 'field' && filter.kind !== 'belongs_to') return undefined;
    const [member, value] = filter.kind === 'field' ? [filter.field, filter.value] : [filter.relation, filter.id];
    if (isOpen(access, member)) tests.push({ column: member.column, values: [value] });
  }
  return tests;
}

function isOpen({ collection, member }: AccessContext, { name }: Field | BelongsTo): boolean {
  const own = member(collection.name, name, 'read');
  return own === undefined || own.verdict === 'allow';
}

/** `tenant`: of the records that are listed. */
export function conditionOf(reading: Omit<Reading, 'q'>, filter: Filter): Sql {
  const { access } = reading;
  switch (filter.kind) {
    case 'field':
      return masked(
        access,
        filter.field,
        sql`t.${ident(filter.field.column)} = ${param(FIELD_KINDS[filter.field.type].sqlType, filter.value)}`,
      );
    case 'id':
      return sql`t.id = ${uuid(filter.value)}`;
    case 'belongs_to':
      return masked(access, filter.relation, sql`t.${ident(filter.relation.column)} = ${uuid(filter.id)}`);
    case 'has_one':
      return referencedBy(reading, filter);
    case 'any':
      return filter.relation.kind === 'has_many'
        ? referencedBy(reading, { relation: filter.relation, id: filter.id })
        : linkedTo(reading, { relation: filter.relation, id: filter.id });
  }
}

/** A value that the caller may not read matches nothing. */
function masked({ collection, member }: AccessContext, { name }: Field | BelongsTo, condition: Sql): Sql {
  const own = member(collection.name, name, 'read');
  return own === undefined || own.verdict === 'allow' ? condition : sql`${condition} AND ${own.where('t')}`;
}

interface ListTarget<R> {
  readonly relation: R;
  readonly id: string;
}

/** One look-up of the target's row, however large the listed table is. */
function referencedBy(reading: Omit<Reading, 'q'>, { relation, id }: ListTarget<HasOne | HasMany>): Sql {
  const { store, access } = reading;
  const { collection, viaColumn } = relation;
  return sql`t.id = (
    SELECT f.${ident(viaColumn)}
      FROM ${store.from(collection, raw('f'))}
     WHERE f.id = ${uuid(id)}${isOfTenant(reading, collection, 'f')}
       AND ${readableReference(access, relation, 'f')})`;
}

function linkedTo(reading: Omit<Reading, 'q'>, target: ListTarget<ManyToMany>): Sql {
  const { linkTable, sourceColumn, targetColumn } = target.relation;
  // Not EXISTS, which would be joined with all links of the target, however few records are asked.
  return sql`(
    SELECT TRUE
      FROM ${ident(linkTable)} AS l
     WHERE l.${ident(sourceColumn)} = t.id${areLinksOf(reading.store, 'l', listedRecord(reading))}
       AND l.${ident(targetColumn)} = ${uuid(target.id)})
   AND ${isTargetReadable(reading, target)}`;
}

/** Of no record in particular, so it is asked once. */
function isTargetReadable(reading: Omit<Reading, 'q'>, { relation, id }: ListTarget<ManyToMany>): Sql {
  const { store, access } = reading;
  return sql`EXISTS (
    SELECT 1
      FROM ${store.from(relation.collection, raw('f'))}
     WHERE f.id = ${uuid(id)}${isOfTenant(reading, relation.collection, 'f')}
       AND ${readable(access, relation.collection, 'f')})`;
}

const listedRecord = ({ access }: Omit<Reading, 'q'>) => ({ collection: access.collection.name, alias: 't' });

type LinkFilter = ListTarget<ManyToMany>;

const isOfLinks = (filter: Filter): filter is Filter & LinkFilter =>
  filter.kind === 'any' && filter.relation.kind === 'many_to_many';

/** The links that a filter asks for. */
export interface Links {
  readonly filter: Filter;
  /** For estimates. */
  readonly test: ColumnValues & { readonly table: string };
  /** The records `t` that have one, in the order of their ids by the index of the links. */
  readonly from: Sql;
  readonly condition: Sql;
}

/** Of the first filter that asks for links. */
export function linksOf(reading: Omit<Reading, 'q'>, filters: readonly Filter[]): Links | undefined {
  const { store, access } = reading;
  const filter = filters.find(isOfLinks);
  if (filter === undefined) return undefined;
  const { linkTable, sourceColumn, targetColumn } = filter.relation;
  const source = store.from(access.collection.name, raw('t'));
  const areOwn = areLinksOfTenant(reading, access.collection.name, 'l');
  return {
    filter,
    test: { table: linkTable, column: targetColumn, values: [filter.id] },
    // Each record once: a link table has each pair once.
    from: sql`${ident(linkTable)} AS l JOIN ${source} ON t.id = l.${ident(sourceColumn)}${areLinksOf(store, 'l', listedRecord(reading))}`,
    condition: sql`l.${ident(targetColumn)} = ${uuid(filter.id)}${areOwn} AND ${isTargetReadable(reading, filter)}`,
  };
}
