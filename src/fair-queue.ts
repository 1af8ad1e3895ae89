/**
 * A queue for a few places that serves its callers in turn (round robin), so that a caller who floods it waits behind
 * their own tasks. While others wait, one caller has at most `SHARE` of the places; who asks alone has all of them.
 */
import { type Caller, currentCaller } from './caller.ts';

/** Source: design of shares, docs/operations.md, "Shares of callers". */
const SHARE = 0.75;
/** Milliseconds that a task may wait. */
const MAX_WAIT_MS = 5_000;
/** The weight of the last service in the mean of all. */
const LAST_WEIGHT = 0.1;

export interface FairQueueOptions {
  /** Tasks that run at a time. */
  readonly places: number;
  /** How many of the places are left for kept work, such as sign-in. */
  readonly kept?: number;
  /** The tasks of one caller that may wait. */
  readonly mostWaiting?: number;
  /** Milliseconds. */
  readonly maxWaitMs?: number;
}

/** The caller would wait too long. */
export class QueueFull extends Error {
  /** Tasks of the caller are in the way: another caller would have been served. */
  readonly isOwn: boolean;
  /** Seconds until another try is worth it. */
  readonly retryAfter: number;
  constructor(isOwn: boolean, waitMs: number) {
    super('the queue is full');
    this.name = 'QueueFull';
    this.isOwn = isOwn;
    this.retryAfter = Math.min(60, Math.max(1, Math.ceil(waitMs / 1000)));
  }
}

interface Waiting {
  start(): void;
  readonly timer: NodeJS.Timeout;
}

/** The tasks that wait, by their callers; the caller whose turn is next is the first. */
type Turns = Map<string, Waiting[]>;

/** A place in the queue. Call it once, when the task has ended. */
export type Leave = () => void;

export class FairQueue {
  readonly #options: Required<FairQueueOptions>;
  readonly #turns: Turns = new Map();
  readonly #keptTurns: Turns = new Map();
  /** Places by the caller who has them. */
  readonly #held = new Map<string, number>();
  #used = 0;
  /** Milliseconds of a task, the later ones above all. */
  #mean = 1;

  constructor({ places, kept = 0, mostWaiting = 1_000, maxWaitMs = MAX_WAIT_MS }: FairQueueOptions) {
    this.#options = { places, kept, mostWaiting, maxWaitMs };
  }

  /** Rejects with QueueFull. */
  async run<T>(task: () => Promise<T>): Promise<T> {
    const leave = await this.enter();
    try {
      return await task();
    } finally {
      leave();
    }
  }

  /** At once where a place is free. Rejects with QueueFull; throws it where the wait would be too long from the start. */
  enter(maxWaitMs = this.#options.maxWaitMs, caller = currentCaller()): Leave | Promise<Leave> {
    const turns = caller.isKept ? this.#keptTurns : this.#turns;
    if (turns.size === 0 && this.#hasPlaceFor(caller.isKept)) return this.#take(caller.id);
    const own = turns.get(caller.id) ?? [];
    const wait = (own.length * turns.size * this.#mean) / this.#options.places;
    const isTooLong = own.length > this.#options.places && wait > maxWaitMs;
    if (own.length >= this.#options.mostWaiting || isTooLong) throw this.#full(caller, own.length, wait);
    return new Promise((resolve, reject) => {
      const ahead = own.length;
      const giveUp = (): void => {
        this.#remove(turns, caller.id, waiting);
        reject(this.#full(caller, ahead, maxWaitMs));
      };
      const start = (): void => {
        clearTimeout(waiting.timer);
        resolve(this.#take(caller.id));
      };
      const waiting: Waiting = { start, timer: setTimeout(giveUp, maxWaitMs) };
      turns.set(caller.id, own);
      own.push(waiting);
    });
  }

  get waiting(): number {
    let count = 0;
    for (const turns of [this.#turns, this.#keptTurns]) for (const own of turns.values()) count += own.length;
    return count;
  }

  #full({ id }: Caller, ahead: number, wait: number): QueueFull {
    return new QueueFull(ahead > 0 || this.#held.has(id), wait);
  }

  #hasPlaceFor(isKept: boolean): boolean {
    const { places, kept } = this.#options;
    return this.#used < (isKept ? places : places - kept);
  }

  #take(id: string): Leave {
    this.#used++;
    this.#held.set(id, (this.#held.get(id) ?? 0) + 1);
    const since = performance.now();
    let hasLeft = false;
    return () => {
      if (hasLeft) return;
      hasLeft = true;
      this.#mean += (performance.now() - since - this.#mean) * LAST_WEIGHT;
      this.#used--;
      const held = this.#held.get(id)! - 1;
      if (held === 0) this.#held.delete(id);
      else this.#held.set(id, held);
      this.#startNext(this.#keptTurns, true);
      this.#startNext(this.#turns, false);
    };
  }

  #startNext(turns: Turns, isKept: boolean): void {
    while (turns.size > 0 && this.#hasPlaceFor(isKept)) {
      const id = this.#nextOf(turns);
      const own = turns.get(id)!;
      const first = own.shift()!;
      // The caller goes behind all others.
      turns.delete(id);
      if (own.length > 0) turns.set(id, own);
      first.start();
    }
  }

  /** The first caller in turn who has less than their share; the first of all where each has it. */
  #nextOf(turns: Turns): string {
    const { places, kept } = this.#options;
    const share = Math.max(1, Math.floor((places - kept) * SHARE));
    let first: string | undefined;
    for (const id of turns.keys()) {
      if ((this.#held.get(id) ?? 0) < share) return id;
      first ??= id;
    }
    return first!;
  }

  #remove(turns: Turns, id: string, waiting: Waiting): void {
    const own = turns.get(id)!;
    own.splice(own.indexOf(waiting), 1);
    if (own.length === 0) turns.delete(id);
  }
}
