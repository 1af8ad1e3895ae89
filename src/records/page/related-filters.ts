/** Conditions of filters that name a related record, which one look-up finds. */
import type { RequiredLink } from '../../policy/filters/filter.ts';
import type { Collection, HasMany, HasOne, ManyToMany } from '../../schema/model/model.ts';
import { ident, join, type Sql, sql } from '../../sql.ts';
import { type AccessContext, readable, readableReference } from '../access-context.ts';
import { recordKeyOf } from '../record-key.ts';
import type { Scope, ScopedRows } from '../scope.ts';

/** A filter that names a related record. */
export type RelatedFilter =
  | { readonly kind: 'has_one'; readonly relation: HasOne; readonly id: string }
  | { readonly kind: 'any'; readonly relation: HasMany | ManyToMany; readonly id: string };

type LinkFilter = RelatedFilter & { readonly relation: ManyToMany };

/** The first filter whose links a statement may start from. */
export const linkFilterOf = (related: readonly RelatedFilter[]): LinkFilter | undefined =>
  related.find((filter): filter is LinkFilter => filter.relation.kind === 'many_to_many');

export const linkFilterTo = ({ relations }: Collection, { relation, id }: RequiredLink): LinkFilter => ({
  kind: 'any',
  relation: relations.get(relation) as ManyToMany,
  id,
});

/** `rows`: the listed records, named `t`. */
export interface ListedRows {
  readonly access: AccessContext;
  readonly scope: Scope;
  readonly rows: ScopedRows;
}

/** @param id a place for the id of the filter */
export function relatedCondition(listed: ListedRows, { relation }: RelatedFilter, id: unknown): Sql {
  return relation.kind === 'many_to_many' ? linkedTo(listed, { relation, id }) : referencedBy(listed, { relation, id });
}

interface ListTarget<R> {
  readonly relation: R;
  readonly id: unknown;
}

/** Looks up the row of the target once, however large the listed table is. */
function referencedBy({ access, scope }: ListedRows, { relation, id }: ListTarget<HasOne | HasMany>): Sql {
  const isTarget = scope.key(relation.collection).is('f', id);
  const key = recordKeyOf(access.collection).columns('t');
  return sql`(${join(key, ', ')}) = (
    SELECT ${join(scope.referring(relation, 'f'), ', ')}
      FROM ${scope.from(relation.collection, 'f').where(isTarget, readableReference(access, relation, 'f'))})`;
}

function linkedTo(listed: ListedRows, target: ListTarget<ManyToMany>): Sql {
  const { sourceColumn, targetColumn } = target.relation;
  const links = listed.rows.related.links(target.relation, listed.access.collection.name, 'l');
  const isLink = sql`l.${ident(sourceColumn)} = ${recordKeyOf(listed.access.collection).of('t')}`;
  const key = listed.scope.key(target.relation.collection);
  // PostgreSQL would join an EXISTS with all links of the target, however few records are asked for.
  return sql`(
    SELECT TRUE
      FROM ${links.where(isLink, sql`l.${ident(targetColumn)} = ${key.param(target.id)}`)})
   AND ${isTargetReadable(listed, target)}`;
}

/** The condition reads no column of the listed record, so the database evaluates it once. */
export function isTargetReadable({ access, scope }: ListedRows, { relation, id }: ListTarget<ManyToMany>): Sql {
  const { collection } = relation;
  return sql`EXISTS (
    SELECT 1
      FROM ${scope.from(collection, 'f').where(scope.key(collection).is('f', id), readable(access, collection, 'f'))})`;
}

/** The records `t` that have a link to the target, in the order of their ids by the index of the links. */
export function linkedRows(listed: ListedRows, target: ListTarget<ManyToMany>) {
  const { access, scope } = listed;
  const { sourceColumn, targetColumn } = target.relation;
  const links = scope.links(target.relation, access.collection.name, 'l');
  const records = links.related.from(access.collection.name, 't');
  return {
    // Each record appears once: a link table has each pair once.
    rows: links.join(records, sql`${recordKeyOf(access.collection).of('t')} = l.${ident(sourceColumn)}`),
    condition: sql`l.${ident(targetColumn)} = ${scope.key(target.relation.collection).param(target.id)} AND ${isTargetReadable(listed, target)}`,
  };
}
