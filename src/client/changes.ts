/**
 * The changes of records as the service sends them. All feeds of a client share one stream, which is opened anew when
 * their set changes, each feed from its own position.
 */
import { type BylawError, isBylawError } from './bylaw-error.ts';
import type { Transport } from './transport.ts';

/** An event of a feed. `position` resumes the feed behind it. */
export type Change<R> =
  | { readonly type: 'ready'; readonly position: string }
  | { readonly type: 'enter' | 'change'; readonly record: R; readonly position: string }
  | { readonly type: 'leave'; readonly id: string | number; readonly position: string }
  | { readonly type: 'reset'; readonly reason: string; readonly position: string };

/** The records and fields that a feed is of. */
type FeedParam = string | number | boolean | null;

export interface FeedQuery {
  /** An expression over the record: `status = "open" and owner = $me`. */
  readonly filter?: string;
  /** Values for the `$names` of `filter`. */
  readonly params?: Readonly<Record<string, FeedParam | readonly FeedParam[]>>;
  readonly fields?: readonly string[];
  /** The position of an earlier event. */
  readonly since?: string;
}
export interface FeedOptions extends FeedQuery {
  readonly signal?: AbortSignal;
  /** Called with a position that came without an event, once those before it were taken; of a feed that is alone on its stream. */
  readonly onPosition?: (position: string) => void;
}
export interface LiveQuery extends Omit<FeedQuery, 'since'> {
  readonly sort?: readonly string[];
  readonly limit?: number;
}

/** Milliseconds. */
const FIRST_BACK_OFF = 500;
const LONGEST_BACK_OFF = 30_000;
/** Feeds that begin within this time share a stream. */
const GATHER = 5;
const LIST_AT_MOST_EVERY = 100;
const RESET_SPREAD = 500;
const LIVE_PAGE = 100;

interface Feed {
  readonly body: FeedQuery & { readonly collection: string };
  since: string | undefined;
  readonly take: (change: Change<never>) => void;
  readonly beat?: (position: string) => void;
  readonly fail: (error: unknown) => void;
}

/** The page, where there is one. */
interface PageEvents {
  addEventListener?(name: 'pagehide' | 'pageshow', listener: (event: { readonly persisted: boolean }) => void): void;
}

export class FeedStream {
  readonly #transport: Transport;
  readonly #feeds = new Map<string, Feed>();
  #made = 0;
  #running: AbortController | undefined;
  #gathering: ReturnType<typeof setTimeout> | undefined;
  #failures = 0;
  /** The service spreads the readers of streams that it ends. */
  #retry = FIRST_BACK_OFF;

  constructor(transport: Transport) {
    this.#transport = transport;
    const page = globalThis as PageEvents;
    // A page that the browser keeps for the way back would hold one of its few connections.
    page.addEventListener?.('pagehide', () => this.#running?.abort());
    page.addEventListener?.('pageshow', ({ persisted: isKept }) => isKept && this.#begin(GATHER));
  }

  /** → ends the feed. */
  add(feed: Feed): () => void {
    const name = `f${++this.#made}`;
    this.#feeds.set(name, feed);
    this.#begin(GATHER);
    return () => {
      this.#feeds.delete(name);
      this.#begin(GATHER);
    };
  }

  #begin(after: number): void {
    clearTimeout(this.#gathering);
    this.#gathering = setTimeout(() => void this.#run(), after);
  }

  async #run(): Promise<void> {
    this.#running?.abort();
    if (this.#feeds.size === 0) return;
    const running = new AbortController();
    this.#running = running;
    try {
      const feeds = Object.fromEntries([...this.#feeds].map(([name, { body, since }]) => [name, { ...body, since }]));
      const response = await this.#transport.send('/api/changes', {
        method: 'POST',
        body: { feeds },
        repeatable: true,
        signal: running.signal,
      });
      for await (const block of blocksOf(response.body!)) this.#take(block);
    } catch (error) {
      if (!running.signal.aborted && isRefusal(error)) return this.#fail(error);
    }
    if (running.signal.aborted) return;
    const pause = this.#retry * 2 ** this.#failures++ * (1 + Math.random() / 2);
    this.#begin(Math.min(LONGEST_BACK_OFF, pause));
  }

  #take(block: string): void {
    const fields = fieldsOf(block);
    const { id: position = '', event: type, data, retry } = fields;
    if (retry !== undefined) this.#retry = Number(retry) || FIRST_BACK_OFF;
    if (data === undefined || type === undefined) {
      if (position !== '' && this.#feeds.size === 1)
        for (const feed of this.#feeds.values()) {
          feed.since = position;
          feed.beat?.(position);
        }
      return;
    }
    this.#failures = 0;
    const { feed: name, ...rest } = JSON.parse(data) as { readonly feed: string };
    const feed = this.#feeds.get(name);
    if (feed === undefined || feed.since === position) return;
    feed.since = position;
    feed.take({ type, ...rest, position } as Change<never>);
  }

  /** The refusal of one feed leaves the others. */
  #fail(error: BylawError): void {
    const [, refused = ''] = /^\/feeds\/(\w+)/.exec(error.errors[0]?.pointer ?? '') ?? [];
    const names = this.#feeds.has(refused) ? [refused] : [...this.#feeds.keys()];
    for (const name of names) {
      const feed = this.#feeds.get(name);
      this.#feeds.delete(name);
      feed?.fail(error);
    }
    if (this.#feeds.size > 0) this.#begin(GATHER);
  }
}

/** A refusal stays one; a lost connection or a restart does not. */
const isRefusal = (error: unknown): error is BylawError =>
  isBylawError(error) && error.status < 500 && error.status !== 429;

/** The blocks of server-sent events, which an empty line ends. */
async function* blocksOf(body: ReadableStream<Uint8Array>): AsyncGenerator<string> {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let rest = '';
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const blocks = (rest + decoder.decode(value, { stream: true })).split('\n\n');
    rest = blocks.pop()!;
    yield* blocks;
  }
}

function fieldsOf(block: string): Readonly<Record<string, string | undefined>> {
  const pairs = block.split('\n').map((line) => {
    const at = line.indexOf(':');
    return [line.slice(0, at), line.slice(at + 1).replace(/^ /, '')] as const;
  });
  return Object.fromEntries(pairs);
}

// ---------------------------------------------------------------- an iterator

export async function* changesOf<R>(
  stream: FeedStream,
  collection: string,
  { signal, since, onPosition, ...query }: FeedOptions,
): AsyncGenerator<Change<R>> {
  const waiting: (Change<R> | { readonly type: 'beat'; readonly position: string })[] = [];
  let failure: { readonly error: unknown } | undefined;
  let wake = (): void => undefined;
  const end = stream.add({
    body: { collection, ...query },
    since,
    take: (change) => {
      waiting.push(change);
      wake();
    },
    beat: (position) => {
      if (onPosition !== undefined) waiting.push({ type: 'beat', position });
      wake();
    },
    fail: (error) => {
      failure = { error };
      wake();
    },
  });
  const onAbort = (): void => wake();
  signal?.addEventListener('abort', onAbort);
  try {
    while (signal?.aborted !== true) {
      const next = waiting.shift();
      if (next?.type === 'beat') onPosition?.(next.position);
      else if (next !== undefined) yield next;
      else if (failure !== undefined) throw failure.error;
      else
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
    }
  } finally {
    signal?.removeEventListener('abort', onAbort);
    end();
  }
}

// ---------------------------------------------------------------- a list that is kept current

interface LivePage<R> {
  readonly data: readonly R[];
  readonly page: { readonly next_cursor: string | null };
}
type ListPage<R> = (query: LiveQuery & { readonly cursor?: string }) => PromiseLike<LivePage<R>>;

/** The records of a query, kept current. */
export class LiveRecords<R extends object> {
  /** Resolves with the first list. Rejects where the list or its feed is refused. */
  readonly ready: Promise<void>;
  #records: readonly R[] = [];
  readonly #listeners = new Set<(records: readonly R[]) => void>();
  readonly #query: LiveQuery;
  readonly #list: ListPage<R>;
  readonly #end: () => void;
  #listing: ReturnType<typeof setTimeout> | undefined;
  /** The events that came while a list was on its way. */
  #since: Change<never>[] | undefined;
  #isClosed = false;
  #isListed = false;
  #failures = 0;
  #resolveFirst = (): void => undefined;
  #rejectFirst: (error: unknown) => void = () => undefined;

  constructor(stream: FeedStream, collection: string, query: LiveQuery, list: ListPage<R>) {
    const { sort: _, limit: __, ...feed } = query;
    this.ready = new Promise((resolve, reject) => {
      this.#resolveFirst = resolve;
      this.#rejectFirst = reject;
    });
    // A page without a reader must not end the process.
    this.ready.catch(() => undefined);
    this.#query = query;
    this.#list = list;
    this.#end = stream.add({
      body: { collection, ...feed },
      since: undefined,
      take: (change) => this.#take(change),
      fail: (error) => this.#rejectFirst(error),
    });
  }

  get records(): readonly R[] {
    return this.#records;
  }

  /** Calls the listener with each new state. → ends the subscription. */
  subscribe(listener: (records: readonly R[]) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#listing);
    this.#end();
  }

  get #isPage(): boolean {
    return this.#query.sort !== undefined || this.#query.limit !== undefined;
  }

  #take(change: Change<never>): void {
    if (change.type === 'ready') {
      // A resumed feed has sent what was missing.
      if (!this.#isListed) this.#listSoon(0);
      return;
    }
    if (change.type === 'reset') this.#listSoon(Math.random() * RESET_SPREAD);
    else if (this.#isPage) this.#listSoon(LIST_AT_MOST_EVERY);
    else if (this.#since !== undefined) this.#since.push(change);
    // The first list, which is on its way soon, has the change.
    else if (this.#isListed) this.#show(withChange(this.#records, change));
  }

  #listSoon(after: number): void {
    if (this.#isClosed) return;
    // The page that is asked for later has this event too.
    if (this.#listing === undefined) this.#listing = setTimeout(() => void this.#listNow(), after);
  }

  async #listNow(): Promise<void> {
    this.#listing = undefined;
    const since: Change<never>[] = [];
    this.#since = since;
    try {
      const found = await this.#all();
      if (this.#isClosed || this.#since !== since) return;
      this.#since = undefined;
      this.#show(since.reduce((records, change) => withChange(records, change), found));
      this.#isListed = true;
      this.#failures = 0;
      this.#resolveFirst();
    } catch (error) {
      this.#rejectFirst(error);
      if (isRefusal(error)) this.close();
      else if (this.#since === since)
        this.#listSoon(Math.min(LONGEST_BACK_OFF, FIRST_BACK_OFF * 2 ** this.#failures++));
    }
  }

  async #all(): Promise<readonly R[]> {
    const query = this.#query;
    if (this.#isPage) return (await this.#list(query)).data;
    const all: R[] = [];
    for (let cursor: string | null | undefined; cursor !== null; ) {
      const { data, page } = await this.#list({
        ...query,
        limit: LIVE_PAGE,
        ...(cursor === undefined ? {} : { cursor }),
      });
      all.push(...data);
      cursor = page.next_cursor;
    }
    return all;
  }

  #show(records: readonly R[]): void {
    this.#records = records;
    for (const listener of this.#listeners) listener(this.#records);
  }
}

/** `enter` and `change` set a record, `leave` deletes it. */
function withChange<R extends object>(records: readonly R[], change: Change<never>): readonly R[] {
  if (change.type === 'leave') return records.filter((record) => liveIdOf(record) !== change.id);
  if (change.type !== 'enter' && change.type !== 'change') return records;
  const record: R = change.record;
  const at = records.findIndex((each) => liveIdOf(each) === liveIdOf(record));
  return at < 0 ? [...records, record] : records.with(at, record);
}

const liveIdOf = (record: object): unknown => ('id' in record ? record.id : undefined);
