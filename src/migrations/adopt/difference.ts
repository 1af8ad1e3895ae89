/** A difference between a schema file and an existing database. */
export interface Difference {
  readonly kind: 'file_lacks' | 'database_lacks' | 'differs';
  readonly table: string;
  readonly column?: string;
  /** Given for a reference of several. */
  readonly columns?: readonly string[];
  /** The name in the file, or in a draft: of the collection, or of its member. */
  readonly name: string;
  /** The key of the file whose value differs. */
  readonly key?: string;
  readonly file?: unknown;
  /** The value in the database; for a column that the file lacks, the declaration of a draft. */
  readonly database?: unknown;
}
