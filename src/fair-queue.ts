/**
 * A queue for a few places that serves its callers in turn (round robin), so that a caller who floods it waits behind
 * their own tasks. While others wait, one caller has at most `SHARE` of the places; who asks alone has all of them.
 */
import { setTimeout as pause } from 'node:timers/promises';
import { currentCaller, type QueuedCaller, SERVICE } from './queued-caller.ts';

const SHARE = 0.75;
/** Milliseconds that a task may wait. */
export const MAX_WAIT_MS = 5_000;
/** Milliseconds after which a caller learns at the earliest that their own tasks are too many; at most twice as many. */
const REFUSAL_MS = 500;
/** The weight of the last service in the mean of all. */
const LAST_WEIGHT = 0.1;
/** Milliseconds beyond the usual that one task adds at most: the first may wait for the start of an engine. */
const EXCEPTION_MS = 100;

export interface Refused {
  /** `own`: tasks of the caller are in the way, and another caller would have been served. `left`: its client has left. */
  readonly reason: 'own' | 'others' | 'closed' | 'left';
  /** Milliseconds until another try is worth it. */
  readonly waitMs: number;
}

export interface FairQueueOptions {
  /** Tasks that run at a time, kept places aside. */
  readonly places: number;
  /** Places that only kept work takes, such as sign-in, where all others are taken. */
  readonly kept?: number | undefined;
  /** Places, of `places`, that only a caller without a place gets: long tasks of one caller leave them free. */
  readonly spare?: number | undefined;
  /** The tasks of one caller that may wait. */
  readonly mostWaiting?: number | undefined;
  readonly maxWaitMs?: number | undefined;
  /** A task whose client has left is refused instead of started. */
  readonly dropsLeft?: boolean | undefined;
  /** The error of a task that gets no place. */
  readonly refuse: (refused: Refused) => Error;
}

interface Waiting {
  /** The task waits for the end of its caller's rest. */
  readonly rests: boolean;
  /** Takes the place, or refuses the task. */
  start(): void;
}

/** The tasks that wait, by their callers; the caller whose turn is next is the first. INVARIANT: no list is empty. */
type WaitingByCaller = Map<string, Waiting[]>;

/** In all queues of the process. */
let waitingNow = 0;
export const waitingTasks = (): number => waitingNow;

/** Ends a task, once; `isTypical` unless its time says nothing of the next ones. */
export type Leave = (isTypical?: boolean) => void;

export class FairQueue {
  /** As in the options, until it is changed. */
  places: number;
  /** A time of the clock of `performance`: since then, one caller alone has had places, the service aside. */
  soleSince = Number.NEGATIVE_INFINITY;
  readonly #options: FairQueueOptions;
  readonly #turns: WaitingByCaller = new Map();
  readonly #keptTurns: WaitingByCaller = new Map();
  /** Places by the caller who has them. */
  readonly #held = new Map<string, number>();
  readonly #resting = new Set<string>();
  readonly #emptied = Promise.withResolvers<void>();
  #used = 0;
  /** The caller of the last place, the service aside. */
  #last = '';
  #isClosed = false;
  /** Milliseconds of a task, the later ones above all. */
  #mean = 1;

  constructor(options: FairQueueOptions) {
    this.#options = options;
    this.places = options.places;
  }

  /**
   * Resolves once the caller has a place, at once where one is free. Rejects where the wait would be too long, and when
   * `patienceMs` have passed.
   */
  async enter(patienceMs = Number.POSITIVE_INFINITY, rests = true): Promise<Leave> {
    const caller = currentCaller();
    return this.enterAtOnce(caller, rests) ?? this.#enterInTurn(caller, patienceMs, rests);
  }

  /** Undefined if the caller would have to wait. */
  enterAtOnce(caller = currentCaller(), rests = true): Leave | undefined {
    const { id, isKept } = caller;
    const turns = isKept ? this.#keptTurns : this.#turns;
    if (this.#isClosed) throw this.#options.refuse({ reason: 'closed', waitMs: 0 });
    if (this.#options.dropsLeft && caller.hasLeft?.()) throw this.#options.refuse({ reason: 'left', waitMs: 0 });
    const isFree = turns.size === 0 && this.#hasPlaceFor(id, isKept) && (isKept || !rests || !this.#resting.has(id));
    return isFree ? this.#take(id) : undefined;
  }

  async #enterInTurn(caller: QueuedCaller, patienceMs: number, rests = true): Promise<Leave> {
    const turns = caller.isKept ? this.#keptTurns : this.#turns;
    const own = turns.get(caller.id) ?? [];
    const refusal = this.#refusalOf(caller, own, turns.size);
    if (refusal !== undefined) {
      // A flood of refusals, each of which brings the next request, would take the processor from other callers.
      await pause(REFUSAL_MS * (1 + Math.random()));
      throw refusal;
    }
    const { promise, resolve, reject } = Promise.withResolvers<Leave>();
    const waiting: Waiting = {
      rests: rests && !caller.isKept,
      start: () => {
        if (this.#options.dropsLeft && caller.hasLeft?.()) reject(this.#options.refuse({ reason: 'left', waitMs: 0 }));
        else resolve(this.#take(caller.id));
      },
    };
    const ahead = own.length;
    turns.set(caller.id, own);
    own.push(waiting);
    waitingNow++;
    // A place is free where all others that wait rest.
    this.#startNext(turns, caller.isKept);
    if (patienceMs === Number.POSITIVE_INFINITY) return promise;
    const late = setTimeout(() => {
      remove(turns, caller.id, waiting);
      reject(this.#refusal(caller, ahead, patienceMs));
    }, patienceMs);
    try {
      return await promise;
    } finally {
      clearTimeout(late);
    }
  }

  async serve<T>(work: () => Promise<T>, patienceMs = Number.POSITIVE_INFINITY): Promise<T> {
    const caller = currentCaller();
    const leave = this.enterAtOnce(caller) ?? (await this.#enterInTurn(caller, patienceMs));
    try {
      return await work();
    } finally {
      leave();
    }
  }

  /** Rejects later tasks, and waits until earlier ones have ended. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#resting.clear();
    this.#startNext(this.#turns, false);
    if (this.#used > 0) await this.#emptied.promise;
  }

  get isIdle(): boolean {
    return this.#used === 0;
  }

  /** True if others than this caller wait, and do not rest. */
  hasOthersThan(id: string): boolean {
    const all = [...this.#turns, ...this.#keptTurns];
    return all.some(([other, own]) => other !== id && this.#nextIn(other, own) >= 0);
  }

  /** Gives the caller no place for some milliseconds, kept work and tasks that do not rest aside. */
  rest(id: string, ms: number): void {
    if (this.#isClosed) return;
    this.#resting.add(id);
    setTimeout(() => {
      this.#resting.delete(id);
      this.#startNext(this.#turns, false);
    }, ms);
  }

  /** A short queue is always worth its wait, because a slow service may have been an exception. */
  #refusalOf(caller: QueuedCaller, own: readonly Waiting[], callers: number): Error | undefined {
    const { mostWaiting = 1_000, maxWaitMs = MAX_WAIT_MS } = this.#options;
    const expected = (own.length * Math.max(1, callers) * this.#mean) / this.places;
    const isLong = own.length >= this.places && expected > maxWaitMs;
    return isLong || own.length >= mostWaiting ? this.#refusal(caller, own.length, expected) : undefined;
  }

  #refusal({ id }: QueuedCaller, ahead: number, waitMs: number): Error {
    return this.#options.refuse({ reason: ahead > 0 || this.#held.has(id) ? 'own' : 'others', waitMs });
  }

  #hasPlaceFor(id: string, isKept: boolean): boolean {
    const { kept = 0, spare = 0 } = this.#options;
    return this.#used < this.places + (isKept ? kept : this.#held.has(id) ? -spare : 0);
  }

  #take(id: string): Leave {
    this.#used++;
    this.#held.set(id, (this.#held.get(id) ?? 0) + 1);
    const since = performance.now();
    if (id !== this.#last && id !== SERVICE.id) {
      this.#last = id;
      this.soleSince = since;
    }
    return (isTypical = true) => {
      const took = performance.now() - since;
      if (isTypical) this.#mean += (Math.min(took, this.#mean * 4 + EXCEPTION_MS) - this.#mean) * LAST_WEIGHT;
      this.#used--;
      const held = this.#held.get(id)! - 1;
      if (held === 0) this.#held.delete(id);
      else this.#held.set(id, held);
      this.#startNext(this.#keptTurns, true);
      this.#startNext(this.#turns, false);
      if (this.#used === 0 && this.#isClosed) this.#emptied.resolve();
    };
  }

  #startNext(turns: WaitingByCaller, isKept: boolean): void {
    while (turns.size > 0) {
      const id = this.#nextOf(turns, isKept);
      if (id === undefined) return;
      const own = turns.get(id)!;
      const [first] = own.splice(this.#nextIn(id, own), 1);
      // The caller goes behind all others.
      turns.delete(id);
      if (own.length > 0) turns.set(id, own);
      waitingNow--;
      first!.start();
    }
  }

  /**
   * The first caller in turn who has less than their share; the first of all where each has it. Undefined: no place is
   * free for any of them, or all rest.
   */
  #nextOf(turns: WaitingByCaller, isKept: boolean): string | undefined {
    const share = Math.max(1, Math.floor(this.places * SHARE));
    const ids = [...turns].flatMap(([id, own]) =>
      this.#hasPlaceFor(id, isKept) && this.#nextIn(id, own) >= 0 ? [id] : [],
    );
    return ids.find((id) => (this.#held.get(id) ?? 0) < share) ?? ids[0];
  }

  /** The index of the caller's next task; -1 while all of them rest. */
  #nextIn(id: string, own: readonly Waiting[]): number {
    return this.#resting.has(id) ? own.findIndex(({ rests }) => !rests) : 0;
  }
}

function remove(turns: WaitingByCaller, id: string, waiting: Waiting): void {
  const own = turns.get(id)!;
  own.splice(own.indexOf(waiting), 1);
  waitingNow--;
  if (own.length === 0) turns.delete(id);
}
