/**
 * The read rules of a caller, for filters, sorts, expands and aggregates. This is the one place to ask if a
 * record of a collection, or a field of it, exists for the caller.
 */
import type { Permit } from './access.ts';

/** `where(alias)` is the condition on the row of that name, for the verdict `depends`. */
export type Readable = Pick<Permit, 'verdict' | 'where'>;

export interface Visibility {
  /** The records of the collection that the caller may read. */
  records(collection: string): Readable;
  /** The field or belongs_to of such a record, where it has rules of its own. Undefined: as readable as the record. */
  member(collection: string, member: string): Readable | undefined;
}
