import type { Transport } from './transport.ts';

/** The types of one collection, as `bylaw types` prints them. */
export interface CollectionTypes {
  readonly record: object;
  readonly create: object;
  readonly update: object;
  readonly filters: object;
  /** The names of its relations. */
  readonly expand?: string;
}
type Relations<T extends CollectionTypes> = T extends { readonly expand: infer Names extends string } ? Names : string;

export interface Paging<Relation extends string = string> {
  readonly limit?: number;
  readonly offset?: number;
  /** Relations whose records come along, under `expand` of each record. */
  readonly expand?: readonly Relation[];
}
export interface Page<T> {
  readonly data: readonly T[];
  readonly page: {
    readonly limit: number;
    readonly offset: number;
    readonly has_more: boolean;
    readonly total?: number;
  };
}
export interface CallOptions {
  readonly signal?: AbortSignal;
}
export interface WriteOptions<Relation extends string = string> extends CallOptions {
  readonly expand?: readonly Relation[];
}
export interface ChangeOptions<Relation extends string = string> extends WriteOptions<Relation> {
  /** Change it only if it is still as it was read: a record that this client returned, or an ETag. */
  readonly ifMatch?: object | string;
}

/** Where the rules hide the result of a write from its writer, only the id is known. */
export type Written<T> = T | { readonly id: string };

/** Shared by all clients: the ETag belongs to the record object, and is released with it. */
const etags = new WeakMap<object, string>();

/** The ETag that a record was read with, if it came with one (records of lists do not). */
export const etagOf = (record: object): string | undefined => etags.get(record);

/** The pages of a list. `await` it for the first one; iterate it for all, or its `records()`. */
export class Pages<T> implements PromiseLike<Page<T>>, AsyncIterable<Page<T>> {
  readonly #fetchAt: (offset: number) => Promise<Page<T>>;
  readonly #offset: number;

  constructor(fetchAt: (offset: number) => Promise<Page<T>>, offset: number) {
    this.#fetchAt = fetchAt;
    this.#offset = offset;
  }

  then<A = Page<T>, B = never>(
    resolve?: ((page: Page<T>) => A | PromiseLike<A>) | null,
    reject?: ((reason: unknown) => B | PromiseLike<B>) | null,
  ): Promise<A | B> {
    return this.#fetchAt(this.#offset).then(resolve, reject);
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Page<T>> {
    let offset = this.#offset;
    for (;;) {
      const page = await this.#fetchAt(offset);
      yield page;
      if (!page.page.has_more) return;
      offset += page.page.limit;
    }
  }

  async *records(): AsyncGenerator<T> {
    for await (const { data } of this) yield* data;
  }
}

/** The records of one collection. Every method may throw BylawError. */
export class Collection<T extends CollectionTypes> {
  readonly #transport: Transport;
  readonly #path: string;

  constructor(transport: Transport, name: string) {
    this.#transport = transport;
    this.#path = `/api/${encodeURIComponent(name)}`;
  }

  /** `filters` are exact matches, as in the query string of the list. */
  list(
    filters: T['filters'] & Paging<Relations<T>> = {},
    options: CallOptions & { readonly count?: 'exact' } = {},
  ): Pages<T['record']> {
    const headers = { prefer: options.count === undefined ? undefined : `count=${options.count}` };
    const fetchAt = (offset: number): Promise<Page<T['record']>> =>
      this.#transport.json(this.#path, {
        query: { ...filters, offset: offset === 0 ? undefined : offset },
        headers,
        signal: options.signal,
      });
    return new Pages(fetchAt, (filters as Paging).offset ?? 0);
  }

  async read(id: string, { expand, signal }: WriteOptions<Relations<T>> = {}): Promise<T['record']> {
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
    id: string,
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

  async delete(id: string, { ifMatch, signal }: Omit<ChangeOptions, 'expand'> = {}): Promise<void> {
    await this.#transport.send(this.#at(id), { method: 'DELETE', headers: { 'if-match': tagOf(ifMatch) }, signal });
  }

  #at(id: string): string {
    return `${this.#path}/${encodeURIComponent(id)}`;
  }
}

export async function recordOf<R extends object>(response: Response): Promise<R> {
  const { data } = (await response.json()) as { data: R };
  const etag = response.headers.get('etag');
  if (etag !== null) etags.set(data, etag);
  return data;
}

/** Throws TypeError for a record that came without an ETag: without one the check would silently not be made. */
function tagOf(ifMatch: object | string | undefined): string | undefined {
  if (ifMatch === undefined || typeof ifMatch === 'string') return ifMatch;
  const etag = etagOf(ifMatch);
  if (etag === undefined) throw new TypeError('this record has no ETag: read it by its id before a conditional write');
  return etag;
}
