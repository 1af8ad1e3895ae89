/** Sends one subscriber the events since its position, at the pace of its reader. */
import type { Store } from '../records/access-context.ts';
import { type Audience, namesNow } from './audience.ts';
import type { ChangeLog, LogPage } from './change-log.ts';
import type { ChangeBatch } from './commits.ts';
import { CollectionChanges, type FeedEvent, type ResetReason } from './events.ts';
import type { FeedGroups } from './feed-groups.ts';
import type { FeedSender, ReachedMoment } from './feed-sender.ts';
import type { FeedPosition } from './position.ts';
import type { ReplayDecision, ReplayDecisions } from './replay-decisions.ts';
import type { Snapshot } from './snapshot.ts';
import type { Subscriber } from './subscriber.ts';
import { whenServed } from './when-served.ts';
import type { Turns, WorkPace } from './work-pace.ts';

/** Milliseconds for which a decision holds while its events wait for the reader. */
const DECIDED_FOR = 250;

export interface ReplayParts {
  readonly log: ChangeLog;
  readonly store: Store;
  readonly groups: FeedGroups;
  readonly sender: FeedSender;
  readonly decisions: ReplayDecisions;
  /** All replays: thousands at once would hold the memory of thousands, and the queue of the database would refuse them. */
  readonly turns: Turns;
  readonly pace: WorkPace;
}

/** Milliseconds of events that are sent in one go. */
const SENT_TOGETHER_MS = 0.25;

/** Events up to `seq` that `to` sees were sent. */
type Sent = Pick<FeedPosition, 'to' | 'seq'>;

/** The events that the subscriber had before the replay, and those that it has now. */
interface ReplayPlaces {
  readonly sent: Sent;
  readonly reached: Sent;
  readonly isReplay: boolean;
}

export type ReplayStart = Pick<FeedPosition, 'life' | 'from' | 'at' | 'to' | 'seq'>;

export class Replay {
  readonly #parts: ReplayParts;
  readonly #subscriber: Subscriber;
  readonly #isWanted = (): boolean => !this.#subscriber.isEnded;
  /** Reads of other streams before it do not serve this one: a record may have been hidden since. */
  readonly #askedAt = performance.now();

  constructor(parts: ReplayParts, subscriber: Subscriber) {
    this.#parts = parts;
    this.#subscriber = subscriber;
  }

  after({ life, moment: { snapshot, at } }: ReachedMoment): Promise<ReachedMoment | ResetReason> {
    return this.since({ life, from: snapshot, at, to: snapshot, seq: 0 });
  }

  /** → the moment that was reached, or why the subscriber has to list again. */
  since(start: ReplayStart): Promise<ReachedMoment | ResetReason> {
    return this.#inTurn(() => this.#since(start));
  }

  /** The same from a position as a subscriber gives it. */
  resume(since: string): Promise<ReachedMoment | ResetReason> {
    return this.#inTurn(async () => {
      const position = this.#parts.sender.resumed(this.#subscriber, since);
      return typeof position === 'string' ? position : this.#since(position);
    });
  }

  /** Readers who leave before their turn cost nothing. */
  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    return this.#parts.turns.run(async () => {
      if (this.#subscriber.isEnded) throw new Error('the reader of a replay has left');
      return work();
    });
  }

  async #since(position: ReplayStart): Promise<ReachedMoment | ResetReason> {
    const { log, decisions } = this.#parts;
    const retention = this.#subscriber.request.collection.feed!.retention * 1000;
    const from = { snapshot: position.from, at: position.at };
    let reached: ReachedMoment | undefined;
    const batchOf = (page: LogPage): ChangeBatch => decisions.batchOf(from, page);
    for await (const page of log.pages(position.from, { isWanted: this.#isWanted, askedAt: this.#askedAt })) {
      const { life, prunedAt, readAt, now } = page;
      if (life !== position.life || position.at < Math.max(prunedAt, readAt - retention)) return 'position';
      const isFirstOfMany = reached === undefined && page.isCut;
      const isOfMany = isFirstOfMany || reached !== undefined;
      const reason =
        (isFirstOfMany ? await this.#relatedReset(position.from, batchOf) : undefined) ??
        (await this.#send(batchOf(page), position, isOfMany));
      if (reason !== undefined) return reason;
      reached = { life, moment: now };
      if (this.#subscriber.isEnded) break;
    }
    return reached!;
  }

  /** No page may show what a related change in a later one has opened. */
  async #relatedReset(from: Snapshot, batchOf: (page: LogPage) => ChangeBatch): Promise<ResetReason | undefined> {
    const { groups, log, store } = this.#parts;
    const audience = groups.audienceNow(this.#subscriber);
    if (audience.related.size === 0) return undefined;
    const { collection } = audience;
    const asked = { sources: [...audience.related], isWanted: this.#isWanted, askedAt: this.#askedAt };
    for await (const page of log.pages(from, asked)) {
      const changes = await CollectionChanges.of(store, batchOf(page), { collection, audiencesOf: () => [] });
      const reason = changes.resetOf(audience);
      if (reason !== undefined) return reason;
    }
    return undefined;
  }

  /** Decides again after a wait: nothing is sent that is hidden meanwhile. */
  async #send(batch: ChangeBatch, sent: Sent, isOfMany: boolean): Promise<ResetReason | undefined> {
    const { turns } = this.#parts;
    const { sink } = this.#subscriber;
    let reached: Sent | undefined = sent;
    while (reached !== undefined && !this.#subscriber.isEnded) {
      const known: Sent = reached;
      const places = { sent, reached: known, isReplay: isOfMany || known !== sent };
      const next: Sent | ResetReason | undefined = await this.#sendSome(batch, places);
      if (typeof next === 'string') return next;
      reached = next;
      if (sink.lags()) await turns.giveWayUntil(sink.drained());
    }
    return undefined;
  }

  /** Sends what the reader takes at once. → what it has then, if other events are left */
  async #sendSome(
    batch: ChangeBatch,
    { sent, reached, isReplay }: ReplayPlaces,
  ): Promise<Sent | ResetReason | undefined> {
    const { groups, sender, pace } = this.#parts;
    const subscriber = this.#subscriber;
    if (subscriber.isEnded) return undefined;
    const asked = { audience: groups.audienceNow(subscriber), isReplay };
    const { at, reason, events: all } = await whenServed(() => this.#decided(batch, asked), this.#isWanted);
    if (reason !== undefined) return reason;
    const events = all.filter((event) => !isSent(event, sent) && !isSent(event, reached));
    const isPaced = (end: number) => (): boolean => !subscriber.sink.lags() && performance.now() < end;
    const mayFollow = isPaced(at + DECIDED_FOR);
    let from = 0;
    do {
      const next = { events, stretch: batch, from };
      from = await pace.run(() => sender.sendWhile(subscriber, next, isPaced(performance.now() + SENT_TOGETHER_MS)));
    } while (from < events.length && !subscriber.isEnded && mayFollow());
    if (from === events.length) return undefined;
    return { to: batch.to.snapshot, seq: events[from - 1]?.seq ?? reached.seq };
  }

  #decided(
    batch: ChangeBatch,
    asked: { readonly audience: Audience; readonly isReplay: boolean },
  ): Promise<ReplayDecision> {
    const { decisions, store } = this.#parts;
    const { collection, filters } = this.#subscriber.request;
    return namesNow(collection, filters, store.schema)
      ? decisions.made(batch, asked)
      : decisions.of(batch, { ...asked, askedAt: this.#askedAt });
  }
}

const isSent = ({ seq, xid }: FeedEvent, { to, seq: last }: Sent): boolean =>
  xid !== undefined && seq <= last && to.sees(xid);
