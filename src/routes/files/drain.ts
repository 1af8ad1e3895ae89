/** Reads the rest of a rejected body. Not a route. */
import type { Context } from 'koa';

/** Bytes and milliseconds; beyond them the connection is closed. */
const MAX_BYTES = 32 * 1024 * 1024;
const MAX_MS = 3_000;

/**
 * Closing a connection while its client still sends resets it, and the client never reads the response.
 * Read a bounded amount more, then close anyway.
 */
export async function drain({ req, res }: Context): Promise<void> {
  if (req.complete || req.destroyed) return;
  res.setHeader('Connection', 'close');
  let bytes = 0;
  await new Promise<void>((resolve) => {
    const late = setTimeout(done, MAX_MS);
    const count = (chunk: Buffer): void => {
      bytes += chunk.length;
      if (bytes > MAX_BYTES) done();
    };
    function done(): void {
      clearTimeout(late);
      req.off('data', count).off('end', done).off('close', done).off('error', done);
      resolve();
    }
    req.on('data', count).once('end', done).once('close', done).on('error', done).resume();
  });
}
