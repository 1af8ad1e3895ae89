/** The rows that a relation finds, for FROM: under the name `x`, each with the id of the record that it is related to. */
import type { HasMany, HasOne, ManyToMany } from '../../../schema/model.ts';
import { ident, type Sql, sql } from '../../../sql.ts';

interface RelatedRows {
  readonly source: Sql;
  /** Equals the id of the record that the row is related to. */
  readonly key: Sql;
}

/** @param target the table of the related records, as `x` */
export function relatedBy(relation: HasOne | HasMany | ManyToMany, target: Sql): RelatedRows {
  if (relation.kind !== 'many_to_many') return { source: target, key: sql`x.${ident(relation.viaColumn)}` };
  const { linkTable, sourceColumn, targetColumn } = relation;
  return {
    source: sql`${ident(linkTable)} AS l JOIN ${target} ON x.id = l.${ident(targetColumn)}`,
    key: sql`l.${ident(sourceColumn)}`,
  };
}
