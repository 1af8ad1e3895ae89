/**
 * What a caller may read, for everything that ranges over records on the caller's behalf: filters, sorts, expands, aggregates.
 * The one place to ask whether a record of a collection, or a field of it, is there for the caller.
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
