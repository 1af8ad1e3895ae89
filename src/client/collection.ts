import type { ErrorDetail } from './bylaw-error.ts';
import { type Change, changesOf, type FeedOptions, type FeedStream, type LiveQuery, LiveRecords } from './changes.ts';
import type { Transport } from './transport.ts';

/** A UUID or another string; or a number, where the ids of the collection are ints. */
export type RecordId = string | number;

/** A record whose type is unknown, except its id. */
export interface AnyRecord {
  /** The types of `bylaw types` have a number where the ids of a collection are ints. */
  readonly id: string;
  readonly [member: string]: unknown;
}

/** The types of one collection, as `bylaw types` prints them. */
export interface CollectionTypes {
  readonly record: object;
  readonly create: object;
  readonly update: object;
  readonly filters: object;
  /** The names of its relations. */
  readonly expand?: string;
  /** The names of its relations to one record. */
  readonly through?: string;
  /** The paths through these relations. */
  readonly linked?: string;
  /** The fields that have an order. */
  readonly sort?: string;
  /** The fields that have the order of people. */
  readonly folded?: string;
  /** The fields and belongs_to that an upsert finds a record by. */
  readonly unique?: string;
  /** Fields and belongs_to that form groups. */
  readonly group_by?: string;
  /** The fields that hold a date. */
  readonly dated?: string;
}

/** The types without `bylaw types`: any collection, any field. */
export interface AnyTypes extends CollectionTypes {
  readonly record: AnyRecord;
  readonly create: Readonly<Record<string, unknown>>;
  readonly update: Readonly<Record<string, unknown>>;
  readonly filters: Readonly<Record<string, unknown>>;
}

type Words = 'expand' | 'through' | 'sort' | 'folded' | 'unique' | 'group_by' | 'dated' | 'points';
/** Any text where the types name none. */
type NamesOf<T extends CollectionTypes, K extends Words> = T extends { readonly [P in K]: infer Names extends string }
  ? Names
  : string;
type Relations<T extends CollectionTypes> = NamesOf<T, 'expand'>;
type LinkedName<T extends CollectionTypes> = T extends { readonly linked: infer Names extends string }
  ? Names
  : `${NamesOf<T, 'through'>}.${string}`;
type SortName<T extends CollectionTypes> =
  | 'id'
  | NamesOf<T, 'sort'>
  | `${NamesOf<T, 'folded'>}:text`
  | `${NamesOf<T, 'points'>}:from(${number} ${number})`
  | LinkedName<T>;
type SortKey<T extends CollectionTypes> = SortName<T> | `-${SortName<T>}`;
export type UniqueName<T extends CollectionTypes> = NamesOf<T, 'unique'>;
type GroupName<T extends CollectionTypes> = NamesOf<T, 'group_by'> | LinkedName<T>;
type GroupKey<T extends CollectionTypes> =
  | GroupName<T>
  | `${'year' | 'month' | 'week' | 'day' | 'hour' | 'weekday'}(${NamesOf<T, 'dated'> | LinkedName<T>})`;
type MeasureText<T extends CollectionTypes> =
  | 'count'
  | `${'count(distinct ' | 'sum(' | 'avg(' | 'min(' | 'max('}${GroupName<T>})`;
type FieldName<T extends CollectionTypes> = Exclude<Extract<keyof T['record'], string>, 'expand' | 'expand_more'>;
type AlwaysThere = 'id' | 'expand' | 'expand_more';

/** A record with the members that a query asked for. */
export type Picked<T extends CollectionTypes, F extends FieldName<T>> = (string extends F
  ? T['record']
  : Pick<T['record'], Extract<keyof T['record'], F | AlwaysThere>>) & {
  /** Given if the query asked for `capabilities`. */
  readonly can?: Pick<RecordCapabilities, 'update' | 'delete'>;
};

/** `depends`: on what is written. */
export type Capability = boolean | 'depends';

/** The actions that the caller may take in a collection. */
export interface CollectionCapabilities {
  readonly list: boolean;
  readonly create: Capability;
}

/** The actions that the caller may take on a record. */
export interface RecordCapabilities {
  readonly update: Capability;
  readonly delete: boolean;
  /** The fields and belongs_to with rules of their own. */
  readonly fields: Readonly<Record<string, { readonly read: boolean; readonly write: Capability }>>;
}

/** A write that is tried and not kept. */
export type TriedWrite<T extends CollectionTypes> =
  | { readonly action: 'create'; readonly data: T['create'] }
  | { readonly action: 'update'; readonly id: RecordId; readonly data: T['update'] }
  | { readonly action: 'delete'; readonly id: RecordId };

/** The outcome of a write that was tried. */
export type TriedOutcome =
  | { readonly allowed: true }
  | {
      readonly allowed: false;
      readonly status: number;
      readonly code: string;
      /** The message of the rule that denies it. */
      readonly message?: string;
      readonly errors: readonly ErrorDetail[];
    };

export interface Paging<Relation extends string = string> {
  readonly limit?: number;
  readonly offset?: number;
  /** Relations whose records come along, under `expand` of each record. */
  readonly expand?: readonly Relation[];
}
/** The words of a query that a list takes too, as a link does. */
export type ListWords<T extends CollectionTypes, F extends FieldName<T>> = Pick<
  Query<T, F>,
  'filter' | 'params' | 'sort' | 'fields'
>;
export interface Page<T> {
  readonly data: readonly T[];
  readonly page: {
    readonly limit: number;
    readonly offset: number;
    readonly has_more: boolean;
    readonly total?: number;
    /** Given with the words of a query. */
    readonly next_cursor?: string | null;
  };
}
/** A change of a record: the members that it changed, as the reader may see them. */
export interface HistoryEntry<R> {
  readonly entry: number;
  readonly at: string;
  /** The principal who wrote; null: another program. */
  readonly by: string | null;
  readonly action: 'create' | 'update' | 'delete';
  readonly changed: readonly string[];
  readonly before: Partial<R> | null;
  readonly after: Partial<R> | null;
}
export interface HistoryPage<R> {
  readonly data: readonly HistoryEntry<R>[];
  readonly page: { readonly limit: number; readonly next_before: number | null };
}
export interface CallOptions {
  readonly signal?: AbortSignal;
}
export interface WriteOptions<Relation extends string = string> extends CallOptions {
  readonly expand?: readonly Relation[];
}
export interface ChangeOptions<Relation extends string = string> extends WriteOptions<Relation> {
  /** A record that this client returned, or an ETag: the write fails if the record has changed since. */
  readonly ifMatch?: object | string;
}

/** The record, or only its id if the rules hide the result from its writer. */
export type Written<T> = T | { readonly id: T extends { readonly id: infer Id } ? Id : RecordId };

/** Shared by all clients: the ETag belongs to the record object, and is released with it. */
const etags = new WeakMap<object, string>();

/** The ETag that a record was read with, if it came with one (records of lists do not). */
export const etagOf = (record: object): string | undefined => etags.get(record);

/** The common part of the pages of a list and of a query. */
interface AnyPage<T> {
  readonly data: readonly T[];
  readonly page: { readonly has_more: boolean };
}

/** The pages of a list or a query. `await` it for the first one; iterate it for all, or its `records()`. */
export class Pages<T, P extends AnyPage<T> = Page<T>> implements PromiseLike<P>, AsyncIterable<P> {
  /** Fetches the page after `previous`, or the first one. */
  readonly #fetchAfter: (previous: P | undefined) => Promise<P>;

  constructor(fetchAfter: (previous: P | undefined) => Promise<P>) {
    this.#fetchAfter = fetchAfter;
  }

  then<A = P, B = never>(
    resolve?: ((page: P) => A | PromiseLike<A>) | null,
    reject?: ((reason: unknown) => B | PromiseLike<B>) | null,
  ): Promise<A | B> {
    return this.#fetchAfter(undefined).then(resolve, reject);
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<P> {
    for (let page: P | undefined; page === undefined || page.page.has_more; ) {
      page = await this.#fetchAfter(page);
      yield page;
    }
  }

  async *records(): AsyncGenerator<T> {
    for await (const { data } of this) yield* data;
  }
}

/** The body of `POST /api/{collection}/query`. */
export interface Query<T extends CollectionTypes = AnyTypes, F extends FieldName<T> = FieldName<T>> {
  /** An expression over the record: `status = "open" and owner.name contains $q`. */
  readonly filter?: string;
  /** Values for the `$names` of `filter`. */
  readonly params?: Readonly<Record<string, QueryValue | readonly QueryValue[]>>;
  /** `field`, or `-field` for descending; also through belongs_to and has_one. `name:text` is the order of people, for fields with `search: true`. */
  readonly sort?: readonly SortKey<T>[];
  readonly limit?: number;
  /** The end of an earlier response; not together with `offset`. */
  readonly cursor?: string | null;
  readonly offset?: number;
  /** The members of each record; `id` always comes. */
  readonly fields?: readonly F[];
  readonly expand?: string extends Relations<T>
    ? { readonly [relation: string]: true | QueryExpand }
    : QueryExpands<T['record']>;
  readonly count?: 'none' | 'exact' | 'estimated';
  /** Adds `can: { update, delete }` to each record. */
  readonly capabilities?: boolean;
  /** Finds deleted records of a collection with `soft_delete`, under its rules for `restore`; `deleted()` has their types. */
  readonly deleted?: boolean;
}
type QueryValue = string | number | boolean | null;
/** The related records of a record, by the relations' names; their counts are beside them. */
type RelatedOf<R> = R extends { readonly expand?: infer E } ? NonNullable<E> : never;
type RelatedElement<V> = V extends readonly (infer Each)[] ? Each : V;
type QueryExpands<R> = {
  readonly [Name in keyof RelatedOf<R> as NonNullable<RelatedOf<R>[Name]> extends number ? never : Name]?:
    | true
    | QueryExpand<RelatedElement<NonNullable<RelatedOf<R>[Name]>>>;
};
interface QueryExpand<R = AnyRecord> extends Pick<Query, 'filter' | 'params' | 'sort' | 'limit'> {
  /** The members of each related record; `id` always comes. */
  readonly fields?: readonly Exclude<Extract<keyof R, string>, 'expand' | 'expand_more'>[];
  readonly expand?: string extends keyof R ? { readonly [relation: string]: true | QueryExpand } : QueryExpands<R>;
  /** Adds the number of the related records as `<relation>_count`; `limit` may then be 0. */
  readonly count?: boolean;
}
/** The collection of the deleted records of another, which has `soft_delete`. */
type Deleted<T extends CollectionTypes> = Omit<T, 'record'> & {
  readonly record: T['record'] & { readonly deleted_at: string };
};
/** A query of deleted records. */
export interface DeletedQuery<T extends CollectionTypes, F extends FieldName<Deleted<T>>>
  extends Omit<Query<Deleted<T>, F>, 'sort' | 'deleted'> {
  readonly sort?: readonly (SortKey<T> | 'deleted_at' | '-deleted_at')[];
}
type FoundPages<T extends CollectionTypes, F extends FieldName<T>> = Pages<Picked<T, F>, QueryPage<Picked<T, F>>>;
export interface QueryPage<T> {
  readonly data: readonly T[];
  readonly page: {
    readonly limit: number;
    readonly has_more: boolean;
    readonly next_cursor: string | null;
    readonly total?: number;
    readonly total_is_estimate?: boolean;
  };
}

/** The body of a write by filter. */
export interface Matching extends Pick<Query, 'filter' | 'params'> {
  readonly filter: string;
  /** The most records to write, up to 1,000; default: 100. */
  readonly limit?: number;
  /** Leaves out the records that the rules refuse, where one of them would refuse all. */
  readonly skip_refused?: boolean;
}
export interface MatchingOutcome {
  readonly matched: number;
  readonly changed: number;
}

/** The body of `POST /api/{collection}/aggregate`. */
export interface Aggregate<T extends CollectionTypes = AnyTypes> extends Pick<Query, 'filter' | 'params' | 'limit'> {
  /** Up to three fields or belongs_to names, also through relations to one record, or periods of dates, such as `month(f)`. */
  readonly group_by?: readonly GroupKey<T>[];
  /** The time zone of the periods, as IANA names it; default: UTC. */
  readonly zone?: string;
  /** Names of groups and measures; `-` for descending. */
  readonly sort?: readonly string[];
  /** `count`, `count(distinct f)`, `sum(f)`, `avg(f)`, `min(f)` or `max(f)`, by name; with `where`, of some of the records. */
  readonly measures?: Readonly<
    Record<string, MeasureText<T> | { readonly of: MeasureText<T>; readonly where?: string }>
  >;
  /** A filter over the measures. */
  readonly having?: string;
}
/** Groups and measures by name. A measure beyond the exact integers is null, and named in `errors`. */
interface AggregatedRow {
  readonly [name: string]: QueryValue | undefined | AggregatedRow['errors'];
  readonly errors?: readonly { readonly measure: string; readonly code: 'out_of_range' }[];
}
export interface Aggregated {
  readonly data: readonly AggregatedRow[];
  readonly page: { readonly has_more: boolean };
}

/** `params: { q: 'x' }` is `param.q=x`. */
function asQueryString(asked: object): Readonly<Record<string, unknown>> {
  const { params, ...filters } = asked as { readonly params?: object };
  const named = Object.entries(params ?? {}).map(([name, value]) => {
    const isEmpty = value === null || (Array.isArray(value) && value.length === 0);
    if (isEmpty)
      throw new TypeError(`\`${name}\`: an address has no null and no empty list; \`query\` takes this param`);
    return [`param.${name}`, value] as const;
  });
  return { ...filters, ...Object.fromEntries(named) };
}

/** The records of one collection. Every method may throw BylawError. */
export class Collection<T extends CollectionTypes> {
  readonly #transport: Transport;
  readonly #feeds: FeedStream;
  readonly #name: string;
  readonly #path: string;

  constructor(transport: Transport, feeds: FeedStream, name: string) {
    this.#transport = transport;
    this.#feeds = feeds;
    this.#name = name;
    this.#path = `/api/${encodeURIComponent(name)}`;
  }

  /** `filters` are exact matches, as in the query string of the list, and the words of a query. */
  list<F extends FieldName<T> = FieldName<T>>(
    filters: T['filters'] & Paging<Relations<T>> & ListWords<T, F> = {},
    options: CallOptions & { readonly count?: 'exact' } = {},
  ): Pages<Picked<T, F>> {
    const asked = asQueryString(filters);
    const headers = { prefer: options.count === undefined ? undefined : `count=${options.count}` };
    const start = (filters as Paging).offset ?? 0;
    return new Pages((previous) => {
      const offset = previous === undefined ? start : previous.page.offset + previous.page.limit;
      return this.#transport.json<Page<Picked<T, F>>>(this.#path, {
        query: { ...asked, offset: offset === 0 ? undefined : offset },
        headers,
        signal: options.signal,
      });
    });
  }

  /** The address of a list, such as for a link or a prefetch. */
  link<F extends FieldName<T> = FieldName<T>>(
    filters: T['filters'] & Paging<Relations<T>> & ListWords<T, F> = {},
  ): string {
    return this.#transport.urlOf(this.#path, asQueryString(filters));
  }

  /**
   * Pages by cursor, so that each record which stays in place is met once. A read: repeated where
   * that helps.
   */
  query<F extends FieldName<T> = FieldName<T>>(query: Query<T, F> = {}, options?: CallOptions): FoundPages<T, F> {
    return this.#found(query, options);
  }

  /** The same of deleted records, under the rules for `restore`, for a collection with `soft_delete`. */
  deleted<F extends FieldName<Deleted<T>> = FieldName<Deleted<T>>>(
    query: DeletedQuery<T, F> = {},
    options?: CallOptions,
  ): FoundPages<Deleted<T>, F> {
    return this.#found({ ...query, deleted: true }, options);
  }

  #found<E>(query: Pick<Query, 'offset' | 'deleted'>, { signal }: CallOptions = {}): Pages<E, QueryPage<E>> {
    return new Pages((previous) => {
      const { offset, ...rest } = query;
      const body = previous === undefined ? query : { ...rest, cursor: previous.page.next_cursor };
      return this.#transport.json<QueryPage<E>>(`${this.#path}/query`, {
        method: 'POST',
        body,
        repeatable: true,
        signal,
      });
    });
  }

  /** The changes that a list with this filter would show. Resumes by itself; ends with `signal`, or where it is refused. */
  changes(options: FeedOptions = {}): AsyncGenerator<Change<T['record']>> {
    return changesOf(this.#feeds, this.#name, options);
  }

  /** The records of a query, kept current: without `sort` and `limit` all of them, in the order in which they came. */
  live(query: LiveQuery = {}): LiveRecords<T['record']> {
    return new LiveRecords(this.#feeds, this.#name, query, (page) =>
      this.#transport.json(`${this.#path}/query`, { method: 'POST', body: page, repeatable: true }),
    );
  }

  /** Measures over groups of the records that a query with that filter would find. */
  aggregate(body: Aggregate<T>, { signal }: CallOptions = {}): Promise<Aggregated> {
    return this.#transport.json(`${this.#path}/aggregate`, { method: 'POST', body, repeatable: true, signal });
  }

  async read(id: RecordId, { expand, signal }: WriteOptions<Relations<T>> = {}): Promise<T['record']> {
    return recordOf(await this.#transport.send(this.#at(id), { query: { expand }, signal }));
  }

  /** Retried safely if the response was lost: each call has its own idempotency key. */
  async create(data: T['create'], { expand, signal }: WriteOptions<Relations<T>> = {}): Promise<Written<T['record']>> {
    return recordOf(
      await this.#transport.send(this.#path, {
        method: 'POST',
        query: { expand },
        body: { data },
        headers: { 'idempotency-key': crypto.randomUUID() },
        repeatable: true,
        signal,
      }),
    );
  }

  async update(
    id: RecordId,
    data: T['update'],
    { expand, ifMatch, signal }: ChangeOptions<Relations<T>> = {},
  ): Promise<Written<T['record']>> {
    return recordOf(
      await this.#transport.send(this.#at(id), {
        method: 'PATCH',
        query: { expand },
        body: { data },
        headers: { 'if-match': tagOf(ifMatch) },
        signal,
      }),
    );
  }

  /** Updates the record that has the unique value, or creates it. Repeatable. */
  async upsert(
    field: UniqueName<T>,
    value: RecordId | boolean,
    data: Partial<T['create']>,
    { expand, signal }: WriteOptions<Relations<T>> = {},
  ): Promise<Written<T['record']>> {
    const path = `${this.#path}/by/${encodeURIComponent(field)}/${encodeURIComponent(value)}`;
    const call = { method: 'PUT', query: { expand }, body: { data }, repeatable: true, signal } as const;
    return recordOf(await this.#transport.send(path, call));
  }

  /** Updates the records that match a filter: all of them, or none. */
  updateMatching(matching: Matching, data: T['update'], { signal }: CallOptions = {}): Promise<MatchingOutcome> {
    return this.#writeMatching('update', { ...matching, data }, signal);
  }

  /** Deletes the records that match a filter: all of them, or none. */
  deleteMatching(matching: Matching, { signal }: CallOptions = {}): Promise<MatchingOutcome> {
    return this.#writeMatching('delete', matching, signal);
  }

  async #writeMatching(verb: string, body: object, signal?: AbortSignal): Promise<MatchingOutcome> {
    const headers = { 'idempotency-key': crypto.randomUUID() };
    const call = { method: 'POST', body, headers, repeatable: true, signal } as const;
    return (await this.#transport.json<{ readonly data: MatchingOutcome }>(`${this.#path}/${verb}`, call)).data;
  }

  async delete(id: RecordId, { ifMatch, signal }: Omit<ChangeOptions, 'expand'> = {}): Promise<void> {
    await this.#transport.send(this.#at(id), { method: 'DELETE', headers: { 'if-match': tagOf(ifMatch) }, signal });
  }

  /** The changes of the record, the newest first. `before`: `next_before` of the page before. */
  history(
    id: RecordId,
    { signal, ...query }: CallOptions & { readonly before?: number; readonly limit?: number } = {},
  ): Promise<HistoryPage<T['record']>> {
    return this.#transport.json(`${this.#at(id)}/history`, { query, signal });
  }

  /** Brings back a deleted record of a collection with `soft_delete`. Retried safely, as `create` is. */
  async restore(id: RecordId, { signal }: CallOptions = {}): Promise<Written<T['record']>> {
    const headers = { 'idempotency-key': crypto.randomUUID() };
    const call = { method: 'POST', headers, repeatable: true, signal } as const;
    return recordOf(await this.#transport.send(`${this.#at(id)}/restore`, call));
  }

  /** The actions that the caller may take on the record. Throws where the caller may not read it. */
  async capabilities(id: RecordId, { signal }: CallOptions = {}): Promise<RecordCapabilities> {
    const path = `${this.#at(id)}/can`;
    return (await this.#transport.json<{ readonly data: RecordCapabilities }>(path, { signal })).data;
  }

  /** The actions that the caller may take before there is a record. */
  async allowed({ signal }: CallOptions = {}): Promise<CollectionCapabilities> {
    return (await this.#transport.json<{ readonly data: CollectionCapabilities }>(`${this.#path}/can`, { signal }))
      .data;
  }

  /** Tries a write and keeps nothing of it: the outcome that the write would have now. */
  async can(write: TriedWrite<T>, { signal }: CallOptions = {}): Promise<TriedOutcome> {
    const call = { method: 'POST', body: write, repeatable: true, signal } as const;
    return (await this.#transport.json<{ readonly data: TriedOutcome }>(`${this.#path}/can`, call)).data;
  }

  #at(id: RecordId): string {
    return `${this.#path}/${encodeURIComponent(id)}`;
  }
}

export async function recordOf<R extends object>(response: Response): Promise<R> {
  const { data } = (await response.json()) as { data: R };
  return withEtag(data, response.headers.get('etag'));
}

export function withEtag<R extends object>(record: R, etag: string | null): R {
  if (etag !== null) etags.set(record, etag);
  return record;
}

/**
 * Throws TypeError for a record that came without an ETag: without one the check would silently not
 * be made.
 */
function tagOf(ifMatch: object | string | undefined): string | undefined {
  if (ifMatch === undefined || typeof ifMatch === 'string') return ifMatch;
  const etag = etagOf(ifMatch);
  if (etag === undefined) throw new TypeError('this record has no ETag: read it by its id before a conditional write');
  return etag;
}
