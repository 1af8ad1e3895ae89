/**
 * The feeds of a process: it reads the log from one snapshot to the next, when a write wakes it and every second in any
 * case, and gives each subscriber the events that its list would show.
 */
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Database } from '../database/contract.ts';
import { inRounds } from '../in-rounds.ts';
import { Problem } from '../problem.ts';
import { asCaller, SERVICE } from '../queued-caller.ts';
import { Store } from '../records/access-context.ts';
import { readVersionKey } from '../records/versions.ts';
import type { Schema } from '../schema/model/model.ts';
import { ChangeLog, type PageBounds } from './change-log.ts';
import { type ChangeBatch, changeBatchOf } from './commits.ts';
import type { ResetReason } from './events.ts';
import { FeedGroups } from './feed-groups.ts';
import { endOf, type FeedObserver, FeedSender, type ReachedMoment } from './feed-sender.ts';
import { pruneLog } from './log-pruning.ts';
import { FeedRules, loggedShapesOf } from './logged-schema.ts';
import { Positions } from './position.ts';
import { Publisher } from './publisher.ts';
import { Replay, type ReplayParts } from './replay.ts';
import { ReplayDecisions } from './replay-decisions.ts';
import type { ExceededBound, StreamPlaces } from './stream-places.ts';
import { type EventSink, type FeedRequest, Subscriber } from './subscriber.ts';
import { whenServed } from './when-served.ts';
import { Turns, WorkPace } from './work-pace.ts';

const CHANNEL = 'bylaw_changes';
/** Finds the writes of other programs, and of nodes that ended before they reported theirs: a server may have them. */
const LOOK_MS = 1_000;
const LOOK_WITHOUT_NEWS_MS = 200;
/** Writes within this time are read together. */
const GATHER_WRITES_MS = 10;
const RECHECK_MS = 300;
/** The size of a round: a single statement reads the sessions of the streams in it. */
const RECHECKED_TOGETHER = 500;
/** A comment keeps proxies from closing a silent stream. */
const STREAM_BEAT_MS = 15_000;
const PRUNE_MS = 60_000;
/** Replays that go on at a time, besides those that wait for their readers. */
const REPLAYS_AT_ONCE = 8;
const RETRY_AFTER = { 'Retry-After': '10' };

interface FeedParts {
  readonly db: Database;
  readonly schema: Schema;
  /** The place of the database, which its copies do not share. */
  readonly place: string;
  readonly places: StreamPlaces;
  readonly observer: FeedObserver;
  readonly onError: (what: string, error: unknown) => void;
  readonly pages?: PageBounds | undefined;
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
  readonly #retention: number;
  readonly #timers: NodeJS.Timeout[];
  readonly #sender: FeedSender;
  readonly #publisher: Publisher;
  readonly #replays: ReplayParts;
  /** The state up to which all was sent. Undefined: there are no listeners. */
  #tail: ReachedMoment | undefined;
  #opening: Promise<void> | undefined;
  #isDown = false;
  #isStopping = false;
  /** Others write to a server; the last read may have failed. */
  #mayMissWrites: boolean;
  #lookedAt = 0;
  #gathering: NodeJS.Timeout | undefined;
  #announcedAt = 0;
  #unlisten: (() => Promise<void>) | undefined;
  /** Called when the log may have news, by a write of this process or of another. */
  onNews: (() => void) | undefined;
  /** Reads the log now. Resolves when the streams have what it holds. */
  readonly look = inRounds(() => asCaller(SERVICE, () => this.#readOn()));
  readonly #recheck = inRounds(() => this.#recheckAll());

  private constructor({ db, schema, places, observer, onError, pages }: FeedParts, positions: Positions) {
    this.#db = db;
    this.#places = places;
    this.#schema = schema;
    this.#observer = observer;
    this.#onError = onError;
    this.#mayMissWrites = db.kind === 'postgres';
    this.#log = new ChangeLog(db, pages);
    this.#store = new Store(db, schema, { statisticsOf: () => undefined });
    this.#groups = new FeedGroups(this.#store);
    this.#shapes = loggedShapesOf(schema);
    this.#sender = new FeedSender({ db, positions, rules: new FeedRules(schema, this.#shapes), observer });
    const grounds = { store: this.#store, groups: this.#groups, log: this.#log, shapes: this.#shapes };
    const isHeard = (): boolean => this.#tail !== undefined;
    this.#publisher = new Publisher({ ...grounds, sender: this.#sender, observer, onError, isHeard });
    this.#replays = {
      ...grounds,
      sender: this.#sender,
      decisions: new ReplayDecisions(grounds),
      turns: new Turns(REPLAYS_AT_ONCE),
      pace: new WorkPace(),
    };
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
    const feeds = new ChangeFeeds(parts, new Positions(await readVersionKey(parts.db)));
    await feeds.#log.open(parts.place);
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
  subscribe(request: FeedRequest, sink: EventSink): Subscriber {
    const subscriber = new Subscriber(request, sink);
    this.#subscribers.add(subscriber);
    this.#observer.onStreams(this.#subscribers.size);
    this.#following(subscriber, () => this.#begin(subscriber));
    return subscriber;
  }

  #following(subscriber: Subscriber, work: () => Promise<void>): void {
    void work().catch((error: unknown) => {
      if (subscriber.isEnded) return;
      this.#onError('a stream of changes could not go on', error);
      this.leave(subscriber, 'error');
    });
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

  /** Streams that come at once share the reading, which belongs to none of their callers. */
  #open(): Promise<void> {
    this.#opening ??= asCaller(SERVICE, () => this.#readTail()).finally(() => {
      this.#opening = undefined;
    });
    return this.#opening;
  }

  async #readTail(): Promise<void> {
    const { now, life } = await whenServed(
      () => this.#log.read(undefined),
      () => this.#subscribers.size > 0,
    );
    this.#tail ??= { moment: now, life };
    this.#lookedAt = performance.now();
  }

  async #begin(subscriber: Subscriber): Promise<void> {
    while (this.#tail === undefined) {
      await this.#open();
      if (subscriber.isEnded) return;
    }
    const { since } = subscriber.request;
    const reached = await this.#orReset(
      subscriber,
      since === undefined ? this.#tail : await this.#replay(subscriber).resume(since),
    );
    await this.#sender.ready(subscriber, endOf(reached));
    await this.#catchUp(subscriber, reached);
  }

  /** Replays what is left until the subscriber can take each batch. */
  async #catchUp(subscriber: Subscriber, found: ReachedMoment | ResetReason): Promise<void> {
    let reached = await this.#orReset(subscriber, found);
    while (!subscriber.isEnded && !this.#join(subscriber, reached))
      reached = await this.#orReset(subscriber, await this.#replay(subscriber).after(reached));
  }

  /** A subscriber who has to list again has reached the present. */
  async #orReset(subscriber: Subscriber, found: ReachedMoment | ResetReason): Promise<ReachedMoment> {
    if (typeof found !== 'string') return found;
    const reached = this.#tail!;
    await this.#sender.reset(subscriber, found, endOf(reached));
    return reached;
  }

  #replay(subscriber: Subscriber): Replay {
    return new Replay(this.#replays, subscriber);
  }

  /** The subscriber takes each batch at once from now on. False: batches that it does not have were sent to others. */
  #join(subscriber: Subscriber, { life, moment }: ReachedMoment): boolean {
    const tail = this.#tail!;
    if (life !== tail.life || !moment.snapshot.covers(tail.moment.snapshot)) return false;
    subscriber.floor = moment;
    this.#groups.add(subscriber);
    return true;
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
    const isDue = this.#mayMissWrites && performance.now() - this.#lookedAt >= LOOK_MS;
    if (this.#tail !== undefined && (this.#isDown || isDue)) void this.look();
  }

  async #readOn(): Promise<void> {
    const before = this.#tail;
    if (before === undefined) return;
    this.#lookedAt = performance.now();
    try {
      await this.#readFrom(before);
      this.#mayMissWrites = this.#db.kind === 'postgres';
    } catch (error) {
      this.#mayMissWrites = true;
      this.#onError('the change log could not be read', error);
      // The reset replaces the pages that were not sent.
      if (this.#tail !== undefined && this.#tail !== before) this.#publisher.resetAll('position', this.#tail);
    }
  }

  /** All entries, however many, a page at a time. */
  async #readFrom(before: ReachedMoment): Promise<void> {
    let isOfMany = false;
    for await (const page of this.#log.pages(before.moment.snapshot, { isLive: true })) {
      this.#lookedAt = performance.now();
      const reached = { moment: page.now, life: page.life };
      // The last listener has left; another one may have come.
      if (this.#tail === undefined || (!isOfMany && this.#tail !== before)) return;
      if (!isOfMany) this.#tail = reached;
      if (page.life !== before.life || before.moment.at < page.prunedAt)
        return this.#publisher.resetAll('position', reached);
      const batch = changeBatchOf(before.moment, page, this.#shapes);
      if (page.isCut && !isOfMany) await this.#publisher.resetAhead(batch);
      isOfMany ||= page.isCut;
      if (page.entries.length > 0) await this.#publisher.publishOrReset(batch, isOfMany);
      const last = page.entries.at(-1);
      if (page.isCut && last !== undefined) this.#paceReaders(batch, last.seq);
    }
  }

  /** A reader who lags gets the rest at its own pace. @param seq the last place that was sent */
  #paceReaders(batch: ChangeBatch, seq: number): void {
    const { life, to } = batch;
    for (const subscriber of this.#subscribers) {
      if (subscriber.group === undefined || subscriber.has(to) || !subscriber.sink.lags()) continue;
      this.#groups.remove(subscriber);
      const { snapshot, at } = subscriber.startIn(batch);
      const start = { life, from: snapshot, at, to: to.snapshot, seq };
      this.#following(subscriber, async () => this.#catchUp(subscriber, await this.#replay(subscriber).since(start)));
    }
  }

  // ---------------------------------------------------------------- in the background

  #beat(): void {
    const end = this.#tail && endOf(this.#tail);
    for (const subscriber of this.#subscribers)
      if (subscriber.group === undefined || end === undefined) subscriber.sink.beat(undefined);
      else this.#sender.beat(subscriber, end);
  }

  async #recheckAll(): Promise<void> {
    const all = [...this.#subscribers];
    for (let at = 0; at < all.length; at += RECHECKED_TOGETHER) {
      await Promise.all(all.slice(at, at + RECHECKED_TOGETHER).map((each) => this.#recheckOne(each)));
      await nextTurn();
    }
  }

  async #recheckOne(subscriber: Subscriber): Promise<void> {
    const state = await subscriber.request.recheck();
    if (state === 'ended') this.leave(subscriber, 'session');
    else if (state === 'changed') this.#changeCaller(subscriber);
  }

  #changeCaller(subscriber: Subscriber): void {
    subscriber.renew();
    if (subscriber.group !== undefined) this.#groups.add(subscriber);
    if (this.#tail !== undefined) this.#publisher.reset([subscriber], 'caller', this.#tail);
  }

  async #prune(): Promise<void> {
    try {
      // Its own streams have all that is deleted.
      await this.look();
      await pruneLog(this.#db, this.#retention);
      this.#observer.onEntries(await this.#log.estimatedEntries());
    } catch (error) {
      this.#onError('the change log could not be pruned', error);
    }
  }
}
