/** What is left of a body that nobody wants. Not a route. */
import type { Context } from 'koa';

/** Bytes, and milliseconds: more is cut off. */
const MAX_BYTES = 32 * 1024 * 1024;
const MAX_MS = 3_000;

/** A connection that is closed while its client still sends is reset, and the client never reads why. So a little more is read; and then it is closed all the same. */
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
