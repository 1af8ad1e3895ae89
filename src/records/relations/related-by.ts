/** The rows that a relation finds, under the alias `x`, each with the id of the record that it is related to. */
import type { HasMany, HasOne, ManyToMany } from '../../schema/model/model.ts';
import { ident, type Sql, sql } from '../../sql.ts';
import type { Scope, ScopedRows } from '../scope.ts';

interface RelatedRows {
  readonly rows: ScopedRows;
  /** Equals the id of the record that the row is related to. */
  readonly key: Sql;
}

/** @param owner the collection that has the relation */
export function relatedBy(scope: Scope, relation: HasOne | HasMany | ManyToMany, owner: string): RelatedRows {
  if (relation.kind !== 'many_to_many')
    return { rows: scope.from(relation.collection, 'x'), key: ident('x', relation.viaColumn) };
  const links = scope.links(relation, owner, 'l');
  const members = links.related.from(relation.collection, 'x');
  return {
    rows: links.join(members, sql`x.id = ${ident('l', relation.targetColumn)}`),
    key: ident('l', relation.sourceColumn),
  };
}
