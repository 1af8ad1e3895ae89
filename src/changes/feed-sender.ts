/** Gives subscribers their events, each with the position that a stream resumes from. */
import type { Database } from '../database/contract.ts';
import type { Moment } from './change-log.ts';
import { END_OF_BATCH, type EventType, type FeedEvent, type ResetReason, resetOf } from './events.ts';
import type { FeedPosition, Positions, PositionWriter } from './position.ts';
import type { Subscriber } from './subscriber.ts';
import type { WorkPace } from './work-pace.ts';

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

/** Events of a stretch; those before `from` were sent. */
export interface SentEvents {
  readonly events: readonly FeedEvent[];
  readonly stretch: Stretch;
  readonly from: number;
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
  readonly pace: WorkPace;
}

export class FeedSender {
  readonly #db: Database;
  readonly #positions: Positions;
  readonly #rules: string;
  readonly #observer: FeedObserver;
  readonly #pace: WorkPace;

  constructor({ db, positions, rules, observer, pace }: SenderParts) {
    this.#db = db;
    this.#positions = positions;
    this.#rules = rules;
    this.#observer = observer;
    this.#pace = pace;
  }

  /** Events of one place come together: the position of the last one alone has all of them behind it. */
  send(subscriber: Subscriber, events: readonly FeedEvent[], stretch: Stretch): void {
    this.sendWhile(subscriber, { events, stretch, from: 0 }, () => true);
  }

  /** Sends events as long as more may follow. @returns the number of events up to the last that was sent */
  sendWhile(subscriber: Subscriber, { events, stretch, from }: SentEvents, mayFollow: () => boolean): number {
    let nth = 0;
    let write: PositionWriter | undefined;
    for (let i = from; i < events.length; i++) {
      if (subscriber.isEnded) return i;
      const { type, data, seq } = events[i]!;
      const isLast = events[i + 1]?.seq !== seq;
      const place = { seq: isLast ? seq : seq - 1, nth: isLast ? 0 : ++nth };
      if (isLast) nth = 0;
      write ??= this.#writerOf(subscriber, stretch);
      subscriber.sink.send({ type, data }, seq === END_OF_BATCH ? this.#end(subscriber, stretch) : write(place));
      this.#observer.onEvent(type);
      if (isLast && !mayFollow()) return i + 1;
    }
    return events.length;
  }

  /** The list that follows is at least as new as the position. */
  async ready(subscriber: Subscriber, at: Stretch): Promise<void> {
    await this.#db.noteWrite(subscriber.access.principal);
    await this.#pace.run(() => this.send(subscriber, [READY_EVENT], at));
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
  async resumed(subscriber: Subscriber, since: string): Promise<FeedPosition | ResetReason> {
    const position = await this.#pace.run(() => this.#positions.read(since, subscriber.scope));
    if (position === undefined) return 'position';
    if (position.rules !== this.#rules) return 'schema';
    return position.caller === subscriber.caller ? position : 'caller';
  }

  #end(subscriber: Subscriber, { life, to }: Stretch): string {
    // A reset and the `ready` behind it are at one place, and differ.
    return this.#writerOf(subscriber, { life, from: to, to })({ seq: 0, nth: ++subscriber.ends });
  }

  #writerOf({ caller, scope }: Subscriber, { life, from, to }: Stretch): PositionWriter {
    const snapshots = { from: from.snapshot, at: from.at, to: to.snapshot };
    return this.#positions.writerOf({ life, ...snapshots, caller, rules: this.#rules }, scope);
  }
}

const READY_EVENT: FeedEvent = { type: 'ready', data: '', seq: END_OF_BATCH };
