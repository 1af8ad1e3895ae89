/**
 * Bounds how many requests of one caller this process works on at a time, so that one program
 * cannot take every place in the queues.
 */
import type { ServerResponse } from 'node:http';
import { Problem } from '../../problem.ts';

/** Of each caller. A browser opens 6 connections, over HTTP/2 behind a proxy some 100. */
const MAX_IN_FLIGHT = 128;

export class InFlight {
  readonly #counts = new Map<string, number>();

  /** Until the response is closed. Throws `rate_limited`. */
  enter(callerId: string, response: ServerResponse): void {
    // Its client left while the session was read, and the event is over.
    if (response.closed) return;
    const count = this.#counts.get(callerId) ?? 0;
    if (count >= MAX_IN_FLIGHT) {
      throw new Problem(
        'rate_limited',
        `more than ${MAX_IN_FLIGHT} requests at a time; wait for answers before you send more`,
        {
          headers: { 'Retry-After': '1' },
        },
      );
    }
    this.#counts.set(callerId, count + 1);
    response.on('close', () => this.#leave(callerId));
  }

  #leave(callerId: string): void {
    const left = (this.#counts.get(callerId) ?? 1) - 1;
    if (left === 0) this.#counts.delete(callerId);
    else this.#counts.set(callerId, left);
  }
}
