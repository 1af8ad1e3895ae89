/** A process that serves streams, for the fuzz: in this process, or one of its own that a signal ends. */
import type { ChangeFeeds } from '../../../src/changes/change-feeds.ts';
import type { PageBounds } from '../../../src/changes/change-log.ts';
import type { EventType } from '../../../src/changes/events.ts';
import type { FeedRequest, Subscriber } from '../../../src/changes/subscriber.ts';
import type { Cells, Database } from '../../../src/database/contract.ts';
import type { Schema } from '../../../src/schema/model/model.ts';
import type { Sql } from '../../../src/sql.ts';
import { manyPlaces, noFeedObserver } from '../../support/feed-observer.ts';
import type { FeedCaller } from './feed-caller.ts';
import type { FeedModules } from './feed-modules.ts';
import { type AskedList, type ListedRecords, SnapshotLists } from './snapshot-lists.ts';

/** A subscription as data, which another process can make. */
export interface Subscription {
  readonly collection: string;
  /** The number of the caller. */
  readonly caller: number;
  readonly filter?: string | undefined;
  readonly fields?: readonly string[] | undefined;
  readonly since?: string | undefined;
}

export interface NodeEvent {
  readonly type: EventType;
  readonly data: string;
  readonly position: string;
  /** The quiet moment in which the log was read for it: a list of that moment shows the same. Undefined: amid writes. */
  readonly still: number | undefined;
  /** The record in the list of the snapshot that the event was read in; null: not there. Undefined: no such list was taken. */
  readonly listed?: string | null | undefined;
  /** The event was decided in that snapshot; a page of several hides what is hidden since. */
  readonly isExact?: boolean;
}

export interface NodeStream {
  /** Earlier changes are being replayed. */
  readonly isBehind: boolean;
  /** Resolves when no event will come any more. */
  readonly ended: Promise<void>;
  leave(): void;
}

export interface FeedNode {
  readonly failures: readonly string[];
  subscribe(subscription: Subscription, take: (event: NodeEvent) => void): Promise<NodeStream>;
  /** Resolves when the streams have what the log holds. */
  look(): Promise<void>;
  /** A write has ended. */
  wake(): void;
  /** The readers of replays take nothing more. → call it when they go on */
  hold(): () => void;
  close(): Promise<void>;
}

export interface NodeGrounds {
  readonly modules: FeedModules;
  readonly schema: Schema;
  readonly callers: readonly FeedCaller[];
  readonly pages: PageBounds | undefined;
  /** The number of writes, or bursts of them, before the present quiet moment; undefined amid writes. */
  readonly still: () => number | undefined;
}

/** Some readers of a burst are slow. */
const LAGS_EVERY = 5;
/** The other reads amid writes are bounded by bytes, which those of a transaction are not. */
const LISTS_EVERY = 2;

/** A stream that this node serves, with its list in the snapshot of the latest read of the log. */
interface ServedStream extends AskedList {
  readonly isLive: () => boolean;
  listed: ListedRecords | undefined;
}

/** Another page of a snapshot that a page was read in. */
const isLaterPage = ({ text }: Sql): boolean => text.includes('e.seq > ');

export class NearNode implements FeedNode {
  readonly failures: string[] = [];
  readonly #grounds: NodeGrounds;
  #feeds!: ChangeFeeds;
  /** The quiet moment of the last read of the loop. */
  #still: number | undefined;
  #asked = 0;
  #held: Promise<void> | undefined;
  #reads = 0;
  #isExact = false;
  #lists!: SnapshotLists;
  readonly #streams = new Set<ServedStream>();

  private constructor(grounds: NodeGrounds) {
    this.#grounds = grounds;
  }

  static async open(db: Database, grounds: NodeGrounds): Promise<NearNode> {
    const node = new NearNode(grounds);
    const { modules, schema, pages } = grounds;
    node.#lists = new SnapshotLists(db, modules, schema);
    const feeds = await modules.ChangeFeeds.open({
      db: {
        ...db,
        rows: (statement, options) => {
          // Behind a batch, the loop looks for later changes of some sources.
          const isBatch = options?.lane === 'urgent' && !statement.text.includes('e.source = ANY');
          const isPage = statement.text.includes('bylaw_change_log s') && !statement.text.includes('e.source = ANY');
          const read = () => db.rows(statement, options);
          const readPage = () => (isPage ? node.#readPage(statement, options?.lane === 'urgent', read) : read());
          return isBatch ? node.#readBatch(readPage, isPage && !isLaterPage(statement)) : readPage();
        },
      },
      schema,
      pages,
      places: manyPlaces,
      place: 'test',
      observer: noFeedObserver,
      onError: (what, error) => {
        // On a busy machine, a pruning may come too late.
        if (!what.includes('pruned'))
          node.failures.push(`${what}: ${error instanceof Error ? error.stack : String(error)}`);
      },
    });
    node.#feeds = feeds!;
    return node;
  }

  /**
   * A write that begins during the read may be in it, though it has ended before the read. Later pages are of the snapshot of the
   * first one.
   */
  async #readBatch(read: () => Promise<readonly Cells[]>, isFirst: boolean): Promise<readonly Cells[]> {
    const began = this.#grounds.still();
    const rows = await read();
    const isStill = began === this.#grounds.still() && (isFirst || began === this.#still);
    this.#still = isStill ? began : undefined;
    return rows;
  }

  /** Takes the lists of the streams in the snapshot of the page, amid writes: otherwise a list afterwards is the same. */
  async #readPage(page: Sql, isLive: boolean, read: () => Promise<readonly Cells[]>): Promise<readonly Cells[]> {
    if (isLaterPage(page)) {
      this.#isExact = false;
      return read();
    }
    const streams = [...this.#streams].filter((each) => each.isLive() === isLive);
    for (const each of streams) each.listed = undefined;
    const isListed =
      this.#grounds.still() === undefined && (isLive || streams.length === 1) && ++this.#reads % LISTS_EVERY === 0;
    if (!isListed || streams.length === 0) return read();
    const [rows, lists] = await this.#lists.read(page, streams);
    for (const [i, each] of streams.entries()) each.listed = lists[i];
    const { entries } = this.#grounds.pages ?? { entries: Number.POSITIVE_INFINITY };
    this.#isExact = isLive && rows.length <= entries;
    return rows;
  }

  async subscribe(subscription: Subscription, take: (event: NodeEvent) => void): Promise<NodeStream> {
    let replayed = this.#grounds.still();
    const { promise: ended, resolve: end } = Promise.withResolvers<void>();
    let subscriber: Subscriber | undefined;
    const request = this.#requestOf(subscription);
    const isLive = (): boolean => subscriber?.group !== undefined;
    const { access, filters, members } = request;
    const stream: ServedStream = { access, filter: filters[0], members, isLive, listed: undefined };
    this.#streams.add(stream);
    subscriber = this.#feeds.subscribe(request, {
      send: ({ type, data }, position) => {
        const still = isLive() ? this.#still : replayed;
        take({ type, data, position, still, ...this.#listedOf(stream, data) });
      },
      beat: () => undefined,
      lags: () => {
        // A reader who falls behind gets the rest by a replay amid writes.
        if (isLive()) replayed = undefined;
        return this.#held !== undefined || this.#asked++ % LAGS_EVERY === LAGS_EVERY - 1;
      },
      drained: async () => this.#held,
      end: () => {
        this.#streams.delete(stream);
        end();
      },
    });
    const made = subscriber;
    return {
      ended,
      get isBehind() {
        return made.group === undefined;
      },
      leave: () => this.#feeds.leave(made, 'test'),
    };
  }

  #listedOf({ listed, isLive }: ServedStream, data: string): Pick<NodeEvent, 'listed' | 'isExact'> {
    const { record, id = record?.id } = JSON.parse(`{${data}}`);
    if (listed === undefined || id === undefined) return {};
    return { listed: listed.get(String(id)) ?? null, isExact: isLive() && this.#isExact };
  }

  #requestOf({ collection, caller: number, filter: text, fields, since }: Subscription): FeedRequest {
    const { schema, callers, modules } = this.#grounds;
    const caller = callers[number]!;
    let { version } = caller;
    const place = { catalog: schema, collection, params: {} };
    const filter = text === undefined ? undefined : modules.compileFilter(text, place).filter!;
    return {
      collection: schema.collections.get(collection)!,
      access: () => caller.ask(collection),
      recheck: () => {
        if (caller.version === version) return 'same';
        version = caller.version;
        return 'changed';
      },
      filters: filter === undefined ? [] : [filter],
      members: fields && new Set(fields),
      query: JSON.stringify([text, fields]),
      since,
    };
  }

  look(): Promise<void> {
    return this.#feeds.look();
  }

  wake(): void {
    this.#feeds.wake();
  }

  hold(): () => void {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#held = promise;
    return () => {
      this.#held = undefined;
      resolve();
    };
  }

  close(): Promise<void> {
    return this.#feeds.close();
  }
}
