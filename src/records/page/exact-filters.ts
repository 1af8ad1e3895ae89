/**
 * The exact filters of a GET list. Filters on the record's own members become one, `a = $0 and b = $1`;
 * every other filter names a related record, which one look-up finds.
 */
import type { ColumnValues } from '../../policy/branch.ts';
import { equalityFilter, type Filter, type MemberValue } from '../../policy/filter.ts';
import type { HasMany, HasOne, ManyToMany } from '../../schema/model/model.ts';
import { ident, type Sql, sql, uuid } from '../../sql.ts';
import { type AccessContext, readable, readableReference, type Store } from '../access-context.ts';
import type { Scope, ScopedRows } from '../scope.ts';

/** Each value already has the type of its field. */
export type ExactFilter = MemberValue | RelatedFilter;
export type RelatedFilter =
  | { readonly kind: 'has_one'; readonly relation: HasOne; readonly id: string }
  | { readonly kind: 'any'; readonly relation: HasMany | ManyToMany; readonly id: string };

/** Undefined: no filter is of a member of the record itself. */
export function ownFilterOf(exact: readonly ExactFilter[], store: Store, access: AccessContext): Filter | undefined {
  const members = exact.filter((filter): filter is MemberValue => !isRelatedFilter(filter));
  const { name: collection } = access.collection;
  return members.length === 0 ? undefined : equalityFilter(members, { catalog: store.schema, collection });
}

export const isRelatedFilter = (filter: ExactFilter): filter is RelatedFilter =>
  filter.kind === 'has_one' || filter.kind === 'any';

/** `rows`: the listed records, named `t`. */
export interface ListedRows {
  readonly access: AccessContext;
  readonly scope: Scope;
  readonly rows: ScopedRows;
}

export function relatedCondition(listed: ListedRows, filter: RelatedFilter): Sql {
  const { relation, id } = filter;
  return relation.kind === 'many_to_many' ? linkedTo(listed, { relation, id }) : referencedBy(listed, { relation, id });
}

interface ListTarget<R> {
  readonly relation: R;
  readonly id: string;
}

/** Looks up the row of the target once, however large the listed table is. */
function referencedBy({ access, scope }: ListedRows, { relation, id }: ListTarget<HasOne | HasMany>): Sql {
  const isTarget = sql`f.id = ${uuid(id)}`;
  return sql`t.id = (
    SELECT f.${ident(relation.viaColumn)}
      FROM ${scope.from(relation.collection, 'f').where(isTarget, readableReference(access, relation, 'f'))})`;
}

function linkedTo(listed: ListedRows, target: ListTarget<ManyToMany>): Sql {
  const { sourceColumn, targetColumn } = target.relation;
  const links = listed.rows.related.links(target.relation, listed.access.collection.name, 'l');
  const isLink = sql`l.${ident(sourceColumn)} = t.id`;
  // PostgreSQL would join an EXISTS with all links of the target, however few records are asked for.
  return sql`(
    SELECT TRUE
      FROM ${links.where(isLink, sql`l.${ident(targetColumn)} = ${uuid(target.id)}`)})
   AND ${isTargetReadable(listed, target)}`;
}

/** The condition reads no column of the listed record, so the database evaluates it once. */
function isTargetReadable({ access, scope }: ListedRows, { relation, id }: ListTarget<ManyToMany>): Sql {
  const { collection } = relation;
  return sql`EXISTS (
    SELECT 1
      FROM ${scope.from(collection, 'f').where(sql`f.id = ${uuid(id)}`, readable(access, collection, 'f'))})`;
}

const isLinkFilter = (filter: RelatedFilter): filter is RelatedFilter & ListTarget<ManyToMany> =>
  filter.relation.kind === 'many_to_many';

/** The links of a many_to_many that a filter requires. */
export interface RequiredLinks {
  readonly filter: RelatedFilter;
  /** The planner estimates the filter by this test. */
  readonly test: ColumnValues & { readonly table: string };
  /** The records `t` that have one, in the order of their ids by the index of the links. */
  readonly rows: ScopedRows;
  readonly condition: Sql;
}

/** Links of the first filter that requires some. */
export function requiredLinks(listed: ListedRows, related: readonly RelatedFilter[]): RequiredLinks | undefined {
  const filter = related.find(isLinkFilter);
  if (filter === undefined) return undefined;
  const { access, scope } = listed;
  const { linkTable, sourceColumn, targetColumn } = filter.relation;
  const links = scope.links(filter.relation, access.collection.name, 'l');
  const records = links.related.from(access.collection.name, 't');
  return {
    filter,
    test: { table: linkTable, column: targetColumn, values: [filter.id] },
    // Each record appears once: a link table has each pair once.
    rows: links.join(records, sql`t.id = l.${ident(sourceColumn)}`),
    condition: sql`l.${ident(targetColumn)} = ${uuid(filter.id)} AND ${isTargetReadable(listed, filter)}`,
  };
}
