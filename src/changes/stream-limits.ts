/** Counts the streams of a process, and of each caller. */
import { Problem } from '../problem.ts';

const RETRY_AFTER = { 'Retry-After': '10' };

export class StreamLimits {
  readonly #user: number;
  readonly #most: number;
  readonly #counts = new Map<string, number>();
  all = 0;

  /** @param user streams of one caller */
  constructor(user: number, most: number) {
    this.#user = user;
    this.#most = most;
  }

  /** Throws `rate_limited`. */
  check(share: string, more: number): void {
    if ((this.#counts.get(share) ?? 0) + more > this.#user) {
      const detail = `more than ${this.#user} streams of changes at a time; close some before you open more`;
      throw new Problem('rate_limited', detail, { headers: RETRY_AFTER });
    }
    if (this.all + more <= this.#most) return;
    throw new Problem('rate_limited', 'the service has no place for another stream of changes', {
      headers: RETRY_AFTER,
    });
  }

  add(share: string, more: number): void {
    this.all += more;
    const count = (this.#counts.get(share) ?? 0) + more;
    if (count === 0) this.#counts.delete(share);
    else this.#counts.set(share, count);
  }
}
