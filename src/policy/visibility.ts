/**
 * The read rules of a caller, for filters, sorts, expands and aggregates. This is the one place to ask if a
 * record of a collection, or a field of it, exists for the caller.
 */
import { raw, type Sql, sql, type TenantValue } from '../sql.ts';
import type { Permit } from './access.ts';

/** `where(alias)` is the condition on the row of that name, for the verdict `depends`. */
export type Readable = Pick<Permit, 'verdict' | 'where' | 'lookUps'>;

export interface Visibility {
  /** The tenant of the records that are asked for, where the statement names it as a value. */
  readonly tenant?: TenantValue | undefined;
  /** The records of the collection that the caller may read. */
  records(collection: string): Readable;
  /** The field or belongs_to of such a record, where it has rules of its own. Undefined: as readable as the record. */
  member(collection: string, member: string): Readable | undefined;
}

/**
 * A column of the row that is named `alias`, NULL where the caller may not read it. Undefined: as
 * readable as the record.
 */
export function maskedBy(rule: Readable | undefined, alias: string, column: Sql): Sql {
  if (rule === undefined || rule.verdict === 'allow') return column;
  // The CASE has the column's type; a bare NULL has none.
  return sql`CASE WHEN ${rule.verdict === 'deny' ? raw('FALSE') : rule.where(alias)} THEN ${column} END`;
}
