/** Collects the bytes of a body, up to a limit. What is beyond it is not read. */
import type { IncomingMessage } from 'node:http';
import { Problem } from '../problem.ts';
import { inTime } from './arrival.ts';

export interface BodyLimits {
  readonly bytes: number;
  /** For the whole body to arrive. */
  readonly ms: number;
}

/** Throws `too_large`, `request_timeout`, and `malformed_json` where the client ends the body early. */
export async function collectBody(request: IncomingMessage, { bytes: most, ms }: BodyLimits): Promise<Buffer> {
  if (Number(request.headers['content-length'] ?? 0) > most) throw tooLarge(most);
  if (!request.readable) throw endedEarly();
  // Small bodies come with the head: there is nothing to wait for.
  if (!request.complete) return inTime(arriving(request, most), ms);
  const whole = (request.read() as Buffer | null) ?? Buffer.alloc(0);
  if (whole.length > most) throw tooLarge(most);
  return whole;
}

function arriving(request: IncomingMessage, most: number): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let length = 0;
    const settle = (act: () => void): void => {
      for (const [event, listener] of Object.entries(listeners)) request.off(event, listener);
      act();
    };
    const fail = (error: Problem): void => settle(() => reject(error));
    const listeners = {
      data(chunk: Buffer): void {
        length += chunk.length;
        if (length <= most) {
          chunks.push(chunk);
          return;
        }
        request.pause();
        fail(tooLarge(most));
      },
      end: () => settle(() => resolve(Buffer.concat(chunks, length))),
      error: (cause: unknown) => fail(endedEarly(cause)),
      close: () => fail(endedEarly()),
    };
    for (const [event, listener] of Object.entries(listeners)) request.on(event, listener);
  });
}

const tooLarge = (most: number): Problem => new Problem('too_large', `a JSON body may hold ${most} bytes at most`);

const endedEarly = (cause?: unknown): Problem =>
  new Problem('malformed_json', 'the body ended before its announced length', { cause });
