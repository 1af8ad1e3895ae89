/**
 * Runs a few pieces of work at a time and takes users in turn, so that one user cannot keep the
 * others waiting.
 */
import { Problem } from '../../problem.ts';

export interface QueueLimits {
  /** Pieces of work that run at once. */
  readonly atOnce: number;
  /** Pieces of work that run at once for one user. */
  readonly perUser: number;
  /** Pieces of work that one user may have waiting, and all users together. */
  readonly waitingPerUser: number;
  readonly waiting: number;
}

export class FairQueue {
  readonly #limits: QueueLimits;
  /** The users in the order of their turns. INVARIANT: no list is empty. */
  readonly #waiting = new Map<string, (() => void)[]>();
  readonly #runningOf = new Map<string, number>();
  #waitingInAll = 0;
  #running = 0;

  constructor(limits: QueueLimits) {
    this.#limits = limits;
  }

  /** Throws `unavailable` if the queue is full. */
  async run<T>(user: string, work: () => Promise<T>): Promise<T> {
    await this.#turnOf(user);
    try {
      return await work();
    } finally {
      this.#leave(user);
      this.#startNext();
    }
  }

  async #turnOf(user: string): Promise<void> {
    if (this.#mayStart(user)) return this.#start(user);
    const own = this.#waiting.get(user) ?? [];
    const { waitingPerUser, waiting } = this.#limits;
    if (own.length >= waitingPerUser || this.#waitingInAll >= waiting)
      throw new Problem('unavailable', 'too many images are waiting to be resized; try again in a moment');
    await new Promise<void>((resolve) => {
      this.#waiting.set(user, [...own, resolve]);
      this.#waitingInAll++;
    });
  }

  #mayStart(user: string): boolean {
    const { atOnce, perUser } = this.#limits;
    return this.#running < atOnce && (this.#runningOf.get(user) ?? 0) < perUser;
  }

  #start(user: string): void {
    this.#running++;
    this.#runningOf.set(user, (this.#runningOf.get(user) ?? 0) + 1);
  }

  #leave(user: string): void {
    this.#running--;
    const left = (this.#runningOf.get(user) ?? 0) - 1;
    if (left <= 0) this.#runningOf.delete(user);
    else this.#runningOf.set(user, left);
  }

  #startNext(): void {
    for (const [user, [first, ...others]] of this.#waiting) {
      if (!this.#mayStart(user)) continue;
      this.#waiting.delete(user);
      // The user's next turn comes after all others.
      if (others.length > 0) this.#waiting.set(user, others);
      this.#waitingInAll--;
      // Counted here, so that no other request takes the place before the waiter resumes.
      this.#start(user);
      first?.();
      return;
    }
  }
}
