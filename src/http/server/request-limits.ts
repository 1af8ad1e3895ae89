/** Limits how long a request may take to arrive, and how many of one caller run at a time. */
import type { ServerResponse } from 'node:http';
import { Problem } from '../../problem.ts';

export interface ArrivalLimits {
  /** Milliseconds for a JSON body. */
  readonly bodyMs: number;
  /** Milliseconds for the rest of a body after the response. */
  readonly lingerMs: number;
}

export const ARRIVAL_LIMITS: ArrivalLimits = { bodyMs: 30_000, lingerMs: 5_000 };

/**
 * Milliseconds for a whole upload: 100 MiB at 30 KiB a second. Slower ones fail earlier, at the
 * least rate.
 */
export const MAX_REQUEST_MS = 3_600_000;

/** The limit of each caller. A browser opens 6 connections, over HTTP/2 behind a proxy some 100. */
const MAX_IN_FLIGHT = 128;

/** Counts the requests of each caller on this process, so that one program cannot take every place in the queues. */
export class InFlight {
  readonly #counts = new Map<string, number>();

  /** Counts until the response is closed. Throws `rate_limited`. */
  enter(callerId: string, response: ServerResponse): void {
    // Its client left while the session was read, and the event is over.
    if (response.closed) return;
    const count = this.#counts.get(callerId) ?? 0;
    if (count >= MAX_IN_FLIGHT) {
      const detail = `more than ${MAX_IN_FLIGHT} requests at a time; wait for answers before you send more`;
      throw new Problem('rate_limited', detail, { headers: { 'Retry-After': '1' } });
    }
    this.#counts.set(callerId, count + 1);
    response.on('close', () => {
      const left = (this.#counts.get(callerId) ?? 1) - 1;
      if (left === 0) this.#counts.delete(callerId);
      else this.#counts.set(callerId, left);
    });
  }
}
