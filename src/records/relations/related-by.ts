/** The rows that a relation finds, for FROM: under the name `x`, each with the id of the record that it is related to. */
import type { HasMany, HasOne, ManyToMany } from '../../schema/model/model.ts';
import { ident, raw, type Sql, sql } from '../../sql.ts';
import type { Reading, Store } from '../access-context.ts';
import { areLinksOfTenant, isOfLink, isOfTenant } from '../scope.ts';

interface RelatedRows {
  readonly source: Sql;
  /** Equals the id of the record that the row is related to. */
  readonly key: Sql;
}

/** ` AND …`: they are of the tenant. @param owner the collection that has the relation */
export function relatedOfTenant(
  reading: Pick<Reading, 'store' | 'tenant'>,
  relation: HasOne | HasMany | ManyToMany,
  owner: string,
): Sql {
  return relation.kind === 'many_to_many'
    ? areLinksOfTenant(reading, owner, 'l')
    : isOfTenant(reading, relation.collection, 'x');
}

export function relatedBy(store: Store, relation: HasOne | HasMany | ManyToMany): RelatedRows {
  const target = store.from(relation.collection, raw('x'));
  if (relation.kind !== 'many_to_many') return { source: target, key: sql`x.${ident(relation.viaColumn)}` };
  const { linkTable, sourceColumn, targetColumn } = relation;
  return {
    source: sql`${ident(linkTable)} AS l JOIN ${target} ON x.id = l.${ident(targetColumn)}${isOfLink(store, relation, { alias: 'x', link: 'l' })}`,
    key: sql`l.${ident(sourceColumn)}`,
  };
}
