/** How long requests may take to arrive: a client that stalls holds little, and not for long. */
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { Problem } from '../../problem.ts';

export interface ArrivalLimits {
  /** Milliseconds for a JSON body. */
  readonly bodyMs: number;
  /** Milliseconds for what is left of a body after the response. */
  readonly lingerMs: number;
}

export const ARRIVAL_LIMITS: ArrivalLimits = { bodyMs: 30_000, lingerMs: 5_000 };

/**
 * Milliseconds for a whole upload: 100 MiB at 30 KiB a second. Slower ones fail earlier, at the
 * least rate.
 */
export const MAX_REQUEST_MS = 3_600_000;

export function limitArrivals(server: Server, { lingerMs }: ArrivalLimits): void {
  server.on('request', (request: IncomingMessage, response: ServerResponse) => {
    response.on('finish', () => {
      if (request.complete) return;
      const late = setTimeout(() => request.socket.destroy(), lingerMs);
      for (const event of ['end', 'close'] as const) request.once(event, () => clearTimeout(late));
    });
  });
}

/** Rejects with `request_timeout` when `reading` takes longer than `ms`. */
export async function inTime<T>(reading: Promise<T>, ms: number): Promise<T> {
  const late = Promise.withResolvers<never>();
  const detail = `the body did not arrive within ${ms / 1_000} s`;
  const timer = setTimeout(
    () => late.reject(new Problem('request_timeout', detail, { headers: { Connection: 'close' } })),
    ms,
  );
  try {
    return await Promise.race([reading, late.promise]);
  } finally {
    clearTimeout(timer);
  }
}
