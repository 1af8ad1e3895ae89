import type { AnyRecord, CollectionTypes, RecordId } from './collection.ts';

/** The id of the record that an earlier create of the batch names by `as`. */
export interface Ref {
  readonly $ref: string;
}
/** A reference may replace the id of a relation, and ids in the lists of a many_to_many. */
type WithRefs<T> = { readonly [K in keyof T]: T[K] | Ref | ListsWithRefs<T[K]> };
type ListsWithRefs<T> = T extends object
  ? {
      readonly [L in keyof T]: T[L] extends readonly (infer Id extends RecordId)[] | undefined
        ? readonly (Id | Ref)[]
        : T[L];
    }
  : never;

interface Create<K extends string, T extends CollectionTypes> {
  readonly op: 'create';
  readonly collection: K;
  readonly data: WithRefs<T['create']>;
  /** A name for `{ $ref }` in later operations. */
  readonly as?: string;
}
interface Update<K extends string, T extends CollectionTypes> {
  readonly op: 'update';
  readonly collection: K;
  readonly id: RecordId | Ref;
  readonly data: WithRefs<T['update']>;
  /** An ETag. */
  readonly if_match?: string;
}
interface Delete<K extends string> {
  readonly op: 'delete';
  readonly collection: K;
  readonly id: RecordId | Ref;
  readonly if_match?: string;
}

/** A write of a batch, which has up to 100. */
export type Operation<C extends { readonly [name in keyof C]: CollectionTypes }> = {
  [K in keyof C & string]: Create<K, C[K]> | Update<K, C[K]> | Delete<K>;
}[keyof C & string];

export interface OperationResult {
  readonly status: 200 | 201 | 204;
  /** The record, or only its id if its writer may not read it. A delete has none. */
  readonly data?: AnyRecord;
}
