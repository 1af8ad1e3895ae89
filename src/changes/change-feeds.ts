/**
 * The feeds of a process: it reads the log from one snapshot to the next, when a write wakes it and every second in any
 * case, and gives each subscriber the events that its list would show.
 */
import type { Database } from '../database/contract.ts';
import { inRounds } from '../in-rounds.ts';
import { Problem } from '../problem.ts';
import { Store } from '../records/access-context.ts';
import { readVersionKey } from '../records/versions.ts';
import type { Schema } from '../schema/model/model.ts';
import type { Audience } from './audience.ts';
import { ChangeLog, type Moment } from './change-log.ts';
import { type ChangeBatch, changeBatchOf } from './commits.ts';
import {
  CollectionChanges,
  END_OF_BATCH,
  type EventType,
  type FeedEvent,
  type ResetReason,
  resetOf,
} from './events.ts';
import { FeedGroups } from './feed-groups.ts';
import { feedRulesDigest, loggedShapesOf } from './logged-schema.ts';
import { type FeedPosition, Positions } from './position.ts';
import { Snapshot } from './snapshot.ts';
import type { ExceededBound, StreamPlaces } from './stream-places.ts';
import { type EventSink, type FeedGroup, type FeedRequest, Subscriber } from './subscriber.ts';

const CHANNEL = 'bylaw_changes';
/** Finds the writes of other programs, and of nodes that ended before they reported theirs. */
const LOOK_MS = 1_000;
const LOOK_WITHOUT_NEWS_MS = 200;
/** Writes within this time are read together. */
const GATHER_WRITES_MS = 10;
const RECHECK_MS = 300;
/** A comment keeps proxies from closing a silent stream. */
const STREAM_BEAT_MS = 15_000;
const PRUNE_MS = 60_000;
const RETRY_AFTER = { 'Retry-After': '10' };

/** Counts for the metrics. */
export interface FeedObserver {
  readonly onStreams: (count: number) => void;
  readonly onEntries: (count: number) => void;
  readonly onEvent: (type: EventType) => void;
  readonly onReset: (reason: ResetReason) => void;
  /** Seconds from a write to the socket. */
  readonly onLag: (seconds: number) => void;
  readonly onClosed: (reason: string) => void;
}

interface FeedParts {
  readonly db: Database;
  readonly schema: Schema;
  /** The place of the database, which its copies do not share. */
  readonly place: string;
  readonly places: StreamPlaces;
  readonly observer: FeedObserver;
  readonly onError: (what: string, error: unknown) => void;
}

export class ChangeFeeds {
  readonly #db: Database;
  readonly #schema: Schema;
  readonly #observer: FeedObserver;
  readonly #onError: FeedParts['onError'];
  readonly #log: ChangeLog;
  readonly #store: Store;
  readonly #groups: FeedGroups;
  readonly #subscribers = new Set<Subscriber>();
  readonly #places: StreamPlaces;
  readonly #shapes: ReadonlyMap<string, string>;
  readonly #rules: string;
  readonly #retention: number;
  readonly #timers: NodeJS.Timeout[];
  #positions: Positions | undefined;
  /** The state up to which all was sent. Undefined: there are no listeners. */
  #tail: { readonly moment: Moment; readonly life: string } | undefined;
  #isDown = false;
  #isStopping = false;
  #lookedAt = 0;
  #gathering: NodeJS.Timeout | undefined;
  #announcedAt = 0;
  #unlisten: (() => Promise<void>) | undefined;
  /** Called when the log may have news, by a write of this process or of another. */
  onNews: (() => void) | undefined;
  /** Reads the log now. Resolves when the streams have what it holds. */
  readonly look = inRounds(() => this.#readOn());
  readonly #recheck = inRounds(() => this.#recheckAll());

  private constructor({ db, schema, places, observer, onError }: FeedParts) {
    this.#db = db;
    this.#places = places;
    this.#schema = schema;
    this.#observer = observer;
    this.#onError = onError;
    this.#log = new ChangeLog(db);
    this.#store = new Store(db, schema, { statisticsOf: () => undefined });
    this.#groups = new FeedGroups(this.#store);
    this.#shapes = loggedShapesOf(schema);
    this.#rules = feedRulesDigest(schema, this.#shapes);
    this.#retention = Math.max(...[...schema.collections.values()].map(({ feed }) => feed?.retention ?? 0));
    const pruneMs = Math.max(1_000, Math.min(PRUNE_MS, this.#retention * 100));
    this.#timers = [
      setInterval(() => this.#lookInAnyCase(), LOOK_WITHOUT_NEWS_MS),
      setInterval(() => void this.#recheck(), RECHECK_MS),
      setInterval(() => this.#beat(), STREAM_BEAT_MS),
      setInterval(() => void this.#prune(), pruneMs),
    ];
    for (const timer of this.#timers) timer.unref();
  }

  /** Undefined: no collection has a feed. */
  static async open(parts: FeedParts): Promise<ChangeFeeds | undefined> {
    if (![...parts.schema.collections.values()].some(({ feed }) => feed !== undefined)) return undefined;
    const feeds = new ChangeFeeds(parts);
    await feeds.#log.open(parts.place);
    feeds.#positions = new Positions(await readVersionKey(parts.db));
    if (parts.db.kind === 'postgres') {
      feeds.#unlisten = await parts.db.listen({
        channel: CHANNEL,
        onMessage: () => feeds.#gather(),
        onState: (up) => {
          feeds.#isDown = !up;
          if (up) feeds.#gather();
        },
      });
    }
    return feeds;
  }

  /** Call it after a commit: wakes the streams of this process and of the others. */
  wake(): void {
    this.#gather();
    if (this.#db.kind !== 'postgres' || this.#announcedAt > performance.now()) return;
    this.#announcedAt = performance.now() + GATHER_WRITES_MS;
    setTimeout(() => void this.#db.notify(CHANNEL, '').catch(() => undefined), GATHER_WRITES_MS);
  }

  /**
   * Takes the places of a response. Throws `rate_limited` where the caller, or this node, has no place for so many streams
   * more. → call it when the response has ended
   */
  async admit(share: string, count: number): Promise<() => void> {
    if (this.#isStopping) throw new Problem('unavailable', 'the service is stopping; try again');
    const exceeded = await this.#places.take(share, count);
    if (exceeded !== undefined) throw new Problem('rate_limited', this.#refusal(exceeded), { headers: RETRY_AFTER });
    return () => this.#places.leave(share, count);
  }

  #refusal(exceeded: ExceededBound): string {
    return exceeded === 'user'
      ? `more than ${this.#places.bounds.user} streams of changes at a time; close some before you open more`
      : 'the service has no place for another stream of changes';
  }

  /** Begins a stream: `ready`, behind the replay of what came since the position. */
  async subscribe(request: FeedRequest, sink: EventSink): Promise<Subscriber> {
    const subscriber = new Subscriber(request, sink);
    while (this.#tail === undefined) await this.#open();
    this.#subscribers.add(subscriber);
    this.#observer.onStreams(this.#subscribers.size);
    this.#groups.add(subscriber);
    subscriber.floor = this.#tail.moment;
    void this.#begin(subscriber).catch((error: unknown) => {
      this.#onError('a stream of changes could not begin', error);
      this.leave(subscriber, 'error');
    });
    return subscriber;
  }

  leave(subscriber: Subscriber, reason: string): void {
    if (!this.#subscribers.delete(subscriber)) return;
    this.#groups.remove(subscriber);
    this.#observer.onStreams(this.#subscribers.size);
    this.#observer.onClosed(reason);
    subscriber.end(reason);
    if (this.#subscribers.size === 0) this.#tail = undefined;
  }

  /** Takes no more streams, and ends those that there are. */
  stop(): void {
    this.#isStopping = true;
    this.endStreams();
  }

  /** Ends the streams; their readers come back. */
  endStreams(): void {
    for (const subscriber of this.#subscribers) this.leave(subscriber, 'restart');
  }

  async close(): Promise<void> {
    for (const timer of this.#timers) clearInterval(timer);
    clearTimeout(this.#gathering);
    this.stop();
    await this.#unlisten?.();
    await this.look().catch(() => undefined);
  }

  // ---------------------------------------------------------------- the beginning of a stream

  async #open(): Promise<void> {
    if (this.#tail !== undefined) return;
    const { now, life } = await this.#log.read(undefined);
    this.#tail ??= { moment: now, life };
    this.#lookedAt = performance.now();
  }

  async #begin(subscriber: Subscriber): Promise<void> {
    const { moment, life } = this.#tail!;
    let reached = moment;
    let reset: ResetReason | undefined;
    const { since } = subscriber.request;
    if (since !== undefined) {
      const resumed = await this.#replay(subscriber, since);
      if (typeof resumed === 'string') reset = resumed;
      else reached = resumed;
    }
    if (subscriber.isEnded) return;
    const at = { life, from: reached, to: reached };
    await this.#db.noteWrite(subscriber.access.principal);
    if (reset !== undefined) {
      this.#observer.onReset(reset);
      this.#send(subscriber, [resetOf(reset)], at);
    }
    this.#send(subscriber, [READY_EVENT], at);
    await this.#catchUp(subscriber, reached);
  }

  /** Sends what came meanwhile, and then lets the subscriber take each batch at once. */
  async #catchUp(subscriber: Subscriber, floor: Moment): Promise<void> {
    subscriber.floor = floor;
    for (let batch = subscriber.pending?.shift(); batch !== undefined; batch = subscriber.pending?.shift())
      await this.#sendTo(subscriber, batch);
    subscriber.pending = undefined;
  }

  /** → the moment that was reached, or why the subscriber has to list again. */
  async #replay(subscriber: Subscriber, since: string): Promise<Moment | ResetReason> {
    const position = this.#positions!.read(since, subscriber.scope);
    if (position === undefined) return 'position';
    if (position.rules !== this.#rules) return 'schema';
    if (position.caller !== subscriber.caller) return 'caller';
    const page = await this.#log.read(new Snapshot(position.from), 'slow');
    const oldest = Math.max(page.prunedAt, page.now.at - subscriber.request.collection.feed!.retention * 1000);
    if (page.life !== position.life || position.at < oldest || page.isCut) return 'position';
    const from = { snapshot: new Snapshot(position.from), at: position.at };
    await this.#sendTo(subscriber, changeBatchOf(from, page, this.#shapes), position);
    return page.now;
  }

  /** A batch for one subscriber, without what its position says that it has. */
  async #sendTo(subscriber: Subscriber, batch: ChangeBatch, position?: FeedPosition): Promise<void> {
    const { collection } = subscriber.request;
    const audience = this.#groups.audienceOf(subscriber);
    const changes = await CollectionChanges.of(this.#store, batch, collection, () => [audience]);
    const reached = position && new Snapshot(position.to);
    const isSent = ({ seq, xid }: FeedEvent): boolean =>
      reached !== undefined && xid !== undefined && seq <= position!.seq && reached.sees(xid);
    const reason = changes.resetOf(audience);
    if (reason !== undefined) return this.#sendReset(subscriber, reason, batch);
    const all = changes.eventsFor(audience).filter((event) => !isSent(event));
    const events = position === undefined ? subscriber.missing(all, batch) : all;
    for (const event of events) {
      if (subscriber.isEnded) return;
      this.#send(subscriber, [event], batch);
      await subscriber.sink.drained();
    }
  }

  // ---------------------------------------------------------------- the loop

  #gather(): void {
    this.onNews?.();
    if (this.#tail === undefined) return;
    this.#gathering ??= setTimeout(() => {
      this.#gathering = undefined;
      void this.look();
    }, GATHER_WRITES_MS);
  }

  #lookInAnyCase(): void {
    const isDue = performance.now() - this.#lookedAt >= LOOK_MS;
    if (this.#tail !== undefined && (this.#isDown || isDue)) void this.look();
  }

  async #readOn(): Promise<void> {
    if (this.#tail === undefined) return;
    this.#lookedAt = performance.now();
    try {
      const { moment, life } = this.#tail;
      const page = await this.#log.read(moment.snapshot);
      this.#lookedAt = performance.now();
      // The last listener has left; another one may have come.
      if (this.#tail?.moment !== moment) return;
      this.#tail = { moment: page.now, life: page.life };
      if (page.life !== life) return this.#resetAll(page.now, page.life);
      if (page.entries.length > 0) await this.#publishOrReset(changeBatchOf(moment, page, this.#shapes));
    } catch (error) {
      this.#onError('the change log could not be read', error);
    }
  }

  /** A batch that some have and others miss would be lost for these. */
  async #publishOrReset(batch: ChangeBatch): Promise<void> {
    try {
      await this.#publish(batch);
    } catch (error) {
      this.#onError('changes could not be decided on', error);
      this.#resetAll(batch.to, batch.life);
    }
  }

  #resetAll(now: Moment, life: string): void {
    for (const subscriber of this.#subscribers) this.#sendReset(subscriber, 'position', { life, from: now, to: now });
  }

  async #publish(batch: ChangeBatch): Promise<void> {
    const waiting = new Set([...this.#subscribers].filter(({ pending }) => pending !== undefined));
    for (const { pending } of waiting) pending?.push(batch);
    for (const name of this.#groups.collections) {
      let groups: readonly FeedGroup[] = [];
      let audiences: readonly Audience[] = [];
      const changes = await CollectionChanges.of(this.#store, batch, this.#schema.collections.get(name)!, (rows) => {
        groups = this.#groups.of(name, batch, rows);
        audiences = groups.map(({ audience }) => audience);
        return audiences;
      });
      for (const [i, { members }] of groups.entries()) {
        const receivers = [...members].filter((each) => !waiting.has(each));
        const reason = changes.resetOf(audiences[i]!);
        if (reason !== undefined) for (const each of receivers) this.#sendReset(each, reason, batch);
        const events = reason === undefined ? changes.eventsFor(audiences[i]!) : [];
        if (events.length > 0) for (const each of receivers) this.#send(each, each.missing(events, batch), batch);
      }
    }
    this.#observer.onLag(Math.max(0, Date.now() - batch.since) / 1000);
  }

  #send(subscriber: Subscriber, events: readonly FeedEvent[], { life, from, to }: Stretch): void {
    const { sink } = subscriber;
    for (const { type, data, seq } of events) {
      if (subscriber.isEnded) return;
      const place = seq === END_OF_BATCH ? { from: to, seq: 0 } : { from, seq };
      sink.send({ type, data }, this.#position(subscriber, { life, ...place, to }));
      this.#observer.onEvent(type);
    }
  }

  /** The list that follows is at least as new as the position. */
  #sendReset(subscriber: Subscriber, reason: ResetReason, at: Stretch): void {
    this.#observer.onReset(reason);
    void this.#db.noteWrite(subscriber.access.principal).then(() => this.#send(subscriber, [resetOf(reason)], at));
  }

  #position({ caller, scope }: Subscriber, { life, from, to, seq }: Stretch & { readonly seq: number }): string {
    const position = { life, from: from.snapshot.text, at: from.at, to: to.snapshot.text, seq };
    return this.#positions!.write({ ...position, caller, rules: this.#rules }, scope);
  }

  // ---------------------------------------------------------------- in the background

  #beat(): void {
    if (this.#tail === undefined) return;
    const { moment, life } = this.#tail;
    for (const subscriber of this.#subscribers)
      if (subscriber.pending === undefined)
        subscriber.sink.beat(this.#position(subscriber, { life, from: moment, to: moment, seq: 0 }));
  }

  async #recheckAll(): Promise<void> {
    for (const subscriber of [...this.#subscribers]) {
      const found = subscriber.request.recheck();
      const state = found instanceof Promise ? await found : found;
      if (state === 'ended') this.leave(subscriber, 'session');
      else if (state === 'changed') this.#changeCaller(subscriber);
    }
  }

  #changeCaller(subscriber: Subscriber): void {
    const before = subscriber.caller;
    subscriber.renew();
    this.#groups.add(subscriber);
    if (before === subscriber.caller || this.#tail === undefined) return;
    const { moment, life } = this.#tail;
    this.#sendReset(subscriber, 'caller', { life, from: moment, to: moment });
  }

  async #prune(): Promise<void> {
    try {
      await this.#log.prune(this.#retention);
      this.#observer.onEntries(await this.#log.estimatedEntries());
    } catch (error) {
      this.#onError('the change log could not be pruned', error);
    }
  }
}

/** The part of the log that one read covers. */
type Stretch = Pick<ChangeBatch, 'life' | 'from' | 'to'>;

const READY_EVENT: FeedEvent = { type: 'ready', data: '', seq: END_OF_BATCH };
