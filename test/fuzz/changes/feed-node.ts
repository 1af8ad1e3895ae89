/** A process that serves streams, for the fuzz: in this process, or one of its own that a signal ends. */
import type { ChangeFeeds } from '../../../src/changes/change-feeds.ts';
import type { PageBounds } from '../../../src/changes/change-log.ts';
import type { EventType } from '../../../src/changes/events.ts';
import type { FeedRequest, Subscriber } from '../../../src/changes/subscriber.ts';
import type { Database } from '../../../src/database/contract.ts';
import type { Schema } from '../../../src/schema/model/model.ts';
import { manyPlaces, noFeedObserver } from '../../support/feed-observer.ts';
import type { FeedCaller } from './feed-caller.ts';
import type { FeedModules } from './feed-modules.ts';

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
  /** The log was read for it while nothing was written, so a list now shows the same. */
  readonly isStill: boolean;
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
  close(): Promise<void>;
}

export interface NodeGrounds {
  readonly modules: FeedModules;
  readonly schema: Schema;
  readonly callers: readonly FeedCaller[];
  readonly pages: PageBounds | undefined;
  /** Nothing is being written. */
  readonly isStill: () => boolean;
}

/** Some readers of a burst are slow. */
const LAGS_EVERY = 5;

export class NearNode implements FeedNode {
  readonly failures: string[] = [];
  readonly #grounds: NodeGrounds;
  #feeds!: ChangeFeeds;
  /** The last read of the loop began while nothing was written. */
  #isRead = false;
  #asked = 0;

  private constructor(grounds: NodeGrounds) {
    this.#grounds = grounds;
  }

  static async open(db: Database, grounds: NodeGrounds): Promise<NearNode> {
    const node = new NearNode(grounds);
    const { modules, schema, pages, isStill } = grounds;
    const feeds = await modules.ChangeFeeds.open({
      db: {
        ...db,
        rows: (statement, options) => {
          // Behind a batch, the loop looks for later changes of some sources.
          const isBatch = options?.lane === 'urgent' && !statement.text.includes('e.source = ANY');
          if (isBatch) node.#isRead = isStill();
          return db.rows(statement, options);
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

  async subscribe(subscription: Subscription, take: (event: NodeEvent) => void): Promise<NodeStream> {
    const began = this.#grounds.isStill();
    const { promise: ended, resolve: end } = Promise.withResolvers<void>();
    let subscriber: Subscriber | undefined;
    subscriber = this.#feeds.subscribe(this.#requestOf(subscription), {
      send: ({ type, data }, position) => {
        const isLive = subscriber?.group !== undefined;
        take({ type, data, position, isStill: isLive ? this.#isRead : began });
      },
      beat: () => undefined,
      lags: () => this.#asked++ % LAGS_EVERY === LAGS_EVERY - 1,
      drained: async () => undefined,
      end: () => end(),
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

  close(): Promise<void> {
    return this.#feeds.close();
  }
}
