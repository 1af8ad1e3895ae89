import type { CollectionTypes, RecordId, UniqueName, Written } from './collection.ts';

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
interface Upsert<K extends string, T extends CollectionTypes> {
  readonly op: 'upsert';
  readonly collection: K;
  /** A unique field, of which `data` has the value. */
  readonly on: UniqueName<T>;
  readonly data: WithRefs<Partial<T['create']>>;
}
interface Delete<K extends string> {
  readonly op: 'delete';
  readonly collection: K;
  readonly id: RecordId | Ref;
  readonly if_match?: string;
}

/** The collections of a client by name. */
export type CollectionsLike<C> = { readonly [name in keyof C]: CollectionTypes };

/** A write of a batch, which has up to 100. */
export type Operation<C extends CollectionsLike<C>> = {
  [K in keyof C & string]: Create<K, C[K]> | Update<K, C[K]> | Upsert<K, C[K]> | Delete<K>;
}[keyof C & string];

/** The result of an operation: a delete has no data. */
export type OperationResult<C extends CollectionsLike<C>, O> = O extends { readonly op: 'delete' }
  ? { readonly status: 204; readonly data?: undefined }
  : O extends { readonly op: 'create' | 'update' | 'upsert'; readonly collection: infer K extends keyof C }
    ? { readonly status: 200 | 201; readonly data: Written<C[K]['record']> }
    : never;
