/** Gives subscribers their events, each with the position that a stream resumes from. */
import type { Database } from '../database/contract.ts';
import type { Moment } from './change-log.ts';
import { END_OF_BATCH, type EventType, type FeedEvent, type ResetReason, resetOf } from './events.ts';
import type { FeedPosition, Positions } from './position.ts';
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

/** The part of the log that one read covers. */
export interface Stretch {
  readonly life: string;
  readonly from: Moment;
  readonly to: Moment;
}

/** A moment in one life of the log. */
export interface ReachedMoment {
  readonly life: string;
  readonly moment: Moment;
}

/** All that the moment sees was sent. */
export const endOf = ({ life, moment }: ReachedMoment): Stretch => ({ life, from: moment, to: moment });

interface SenderParts {
  readonly db: Database;
  readonly positions: Positions;
  /** A digest of the rules. */
  readonly rules: string;
  readonly observer: FeedObserver;
}

export class FeedSender {
  readonly #db: Database;
  readonly #positions: Positions;
  readonly #rules: string;
  readonly #observer: FeedObserver;

  constructor({ db, positions, rules, observer }: SenderParts) {
    this.#db = db;
    this.#positions = positions;
    this.#rules = rules;
    this.#observer = observer;
  }

  /** Events of one place come together: the position of the last one alone has all of them behind it. */
  send(subscriber: Subscriber, events: readonly FeedEvent[], stretch: Stretch): void {
    let nth = 0;
    for (const [i, { type, data, seq }] of events.entries()) {
      if (subscriber.isEnded) return;
      const isLast = events[i + 1]?.seq !== seq;
      const place = { seq: isLast ? seq : seq - 1, nth: isLast ? 0 : ++nth };
      if (isLast) nth = 0;
      const position =
        seq === END_OF_BATCH ? this.#end(subscriber, stretch) : this.#position(subscriber, stretch, place);
      subscriber.sink.send({ type, data }, position);
      this.#observer.onEvent(type);
    }
  }

  /** The list that follows is at least as new as the position. */
  async ready(subscriber: Subscriber, at: Stretch): Promise<void> {
    await this.#db.noteWrite(subscriber.access.principal);
    this.send(subscriber, [READY_EVENT], at);
  }

  /** The same for a reset. */
  async reset(subscriber: Subscriber, reason: ResetReason, at: Stretch): Promise<void> {
    this.#observer.onReset(reason);
    await this.#db.noteWrite(subscriber.access.principal);
    this.send(subscriber, [resetOf(reason)], at);
  }

  beat(subscriber: Subscriber, at: Stretch): void {
    subscriber.sink.beat(this.#end(subscriber, at));
  }

  /** The place of a subscriber, or why it has to list again. */
  resumed(subscriber: Subscriber, since: string): FeedPosition | ResetReason {
    const position = this.#positions.read(since, subscriber.scope);
    if (position === undefined) return 'position';
    if (position.rules !== this.#rules) return 'schema';
    return position.caller === subscriber.caller ? position : 'caller';
  }

  #end(subscriber: Subscriber, { life, to }: Stretch): string {
    // A reset and the `ready` behind it are at one place, and differ.
    return this.#position(subscriber, { life, from: to, to }, { seq: 0, nth: ++subscriber.ends });
  }

  #position(
    { caller, scope }: Subscriber,
    { life, from, to }: Stretch,
    place: Pick<FeedPosition, 'seq' | 'nth'>,
  ): string {
    const snapshots = { from: from.snapshot, at: from.at, to: to.snapshot };
    return this.#positions.write({ life, ...snapshots, ...place, caller, rules: this.#rules }, scope);
  }
}

const READY_EVENT: FeedEvent = { type: 'ready', data: '', seq: END_OF_BATCH };
