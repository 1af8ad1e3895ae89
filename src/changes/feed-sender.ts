/** Gives subscribers their events, each with the position that a stream resumes from. */
import type { Database } from '../database/contract.ts';
import type { Moment } from './change-log.ts';
import { END_OF_BATCH, type EventType, type FeedEvent, type ResetReason, resetOf } from './events.ts';
import type { FeedRules } from './logged-schema.ts';
import type { FeedPosition, LogStretch, PlaceInStretch, Positions, StretchPlaces } from './position.ts';
import type { Subscriber } from './subscriber.ts';

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

/** Events of a stretch; those before `from` were sent. */
export interface SentEvents {
  readonly events: readonly FeedEvent[];
  readonly stretch: LogStretch;
  readonly from: number;
}

/** A moment in one life of the log. */
export interface ReachedMoment {
  readonly life: string;
  readonly moment: Moment;
}

/** Positions of one `seq` in a feed: beyond them begin those of an equal feed of the same response. */
const MOST_PLACES = 2 ** 24;

/** All that the moment sees was sent. */
export const endOf = ({ life, moment }: ReachedMoment): LogStretch => ({ life, from: moment, to: moment });

interface SenderParts {
  readonly db: Database;
  readonly positions: Positions;
  readonly rules: FeedRules;
  readonly observer: FeedObserver;
}

export class FeedSender {
  readonly #db: Database;
  readonly #positions: Positions;
  readonly #rules: FeedRules;
  readonly #observer: FeedObserver;
  readonly #places = new WeakMap<LogStretch, StretchPlaces>();

  constructor({ db, positions, rules, observer }: SenderParts) {
    this.#db = db;
    this.#positions = positions;
    this.#rules = rules;
    this.#observer = observer;
  }

  /**
   * Events of one place come together: the position of the last one alone has all of them behind it.
   *
   * INVARIANT: no event overtakes a reset, because its position would be behind the cause of the reset.
   */
  send(subscriber: Subscriber, events: readonly FeedEvent[], stretch: LogStretch): void {
    const { pendingReset } = subscriber;
    if (pendingReset === undefined) this.sendWhile(subscriber, { events, stretch, from: 0 }, () => true);
    // The list behind another reset has them too.
    else void pendingReset.then(() => subscriber.pendingReset ?? this.send(subscriber, events, stretch));
  }

  /** Sends events as long as more may follow. @returns the number of events up to the last that was sent */
  sendWhile(subscriber: Subscriber, { events, stretch, from }: SentEvents, mayFollow: () => boolean): number {
    let nth = 0;
    for (let i = from; i < events.length; i++) {
      if (subscriber.isEnded) return i;
      const { type, data, seq } = events[i]!;
      const isLast = events[i + 1]?.seq !== seq;
      const place = { seq: isLast ? seq : seq - 1, nth: isLast ? 0 : ++nth };
      if (isLast) nth = 0;
      const position =
        seq === END_OF_BATCH ? this.#endOf(subscriber, stretch) : this.#positionAt(place, subscriber, stretch);
      subscriber.sink.send({ type, data }, position);
      this.#observer.onEvent(type);
      if (isLast && !mayFollow()) return i + 1;
    }
    return events.length;
  }

  /** The list that follows is at least as new as the position. */
  async ready(subscriber: Subscriber, at: LogStretch): Promise<void> {
    await this.#db.noteWrite(subscriber.access.principal);
    while (subscriber.pendingReset !== undefined) await subscriber.pendingReset;
    this.send(subscriber, [READY_EVENT], at);
  }

  /** The same for a reset: the copy is made anew. */
  reset(subscriber: Subscriber, reason: ResetReason, at: LogStretch): Promise<void> {
    this.#observer.onReset(reason);
    const pending = this.#db.noteWrite(subscriber.access.principal).then(() => {
      if (subscriber.pendingReset === pending) subscriber.pendingReset = undefined;
      subscriber.mark = undefined;
      this.sendWhile(subscriber, { events: [resetOf(reason)], stretch: at, from: 0 }, () => true);
    });
    subscriber.pendingReset = pending;
    return pending;
  }

  beat(subscriber: Subscriber, at: LogStretch): void {
    subscriber.sink.beat(subscriber.pendingReset === undefined ? this.#endOf(subscriber, at) : undefined);
  }

  /** The place of a subscriber, or why it has to list again. */
  resumed(subscriber: Subscriber, since: string): FeedPosition | ResetReason {
    const position = this.#positions.read(since, subscriber.scope);
    if (position === undefined) return 'position';
    if (position.rules !== this.#rules.digestOf(subscriber.request)) return 'schema';
    if (position.caller !== subscriber.caller) return 'caller';
    subscriber.mark = position.mark;
    return position;
  }

  #endOf(subscriber: Subscriber, at: LogStretch): string {
    // A reset and the `ready` behind it are at one place, and differ.
    return this.#positionAt({ seq: 0, nth: ++subscriber.ends }, subscriber, at);
  }

  #positionAt({ seq, nth }: PlaceInStretch, subscriber: Subscriber, stretch: LogStretch): string {
    const { equalBefore = 0 } = subscriber.request;
    const place = { seq, nth: nth + equalBefore * MOST_PLACES };
    return `${this.#markOf(subscriber, stretch)}${this.#placesIn(stretch).at(place)}`;
  }

  #markOf(subscriber: Subscriber, { life, from }: LogStretch): string {
    if (subscriber.mark !== undefined) return subscriber.mark;
    const { caller, scope, request } = subscriber;
    const rules = this.#rules.digestOf(request);
    subscriber.mark = this.#positions.markOf({ life, since: from, caller, rules }, scope);
    return subscriber.mark;
  }

  #placesIn(stretch: LogStretch): StretchPlaces {
    const known = this.#places.get(stretch);
    const places = known ?? this.#positions.placesIn(stretch);
    if (known === undefined) this.#places.set(stretch, places);
    return places;
  }
}

const READY_EVENT: FeedEvent = { type: 'ready', data: '', seq: END_OF_BATCH };
