/** A body that comes in chunks. */
import type { ServerResponse } from 'node:http';
import type { Context } from 'koa';

/**
 * Asks for a chunk when the socket is done with the one before, so that its memory can be used again. Koa would pipe the body, and then nobody knows when that
 * is. The head goes out with the first chunk; until then, what is thrown is answered.
 */
export async function sendChunks(ctx: Context, chunks: AsyncIterable<Buffer>): Promise<void> {
  const { res } = ctx;
  // Chunks that end before the announced length end in an error, not in a client that waits for the rest.
  res.strictContentLength = true;
  try {
    for await (const chunk of chunks) {
      ctx.respond = false;
      if (!(await written(res, chunk))) return;
    }
    ctx.respond = false;
    res.end();
  } catch (error) {
    // A body that ends early is told from a whole one by the connection that ends with it.
    if (res.headersSent) res.destroy();
    throw error;
  }
}

/** False: the client is gone. */
function written(res: ServerResponse, chunk: Buffer): Promise<boolean> {
  return new Promise((resolve) => {
    const onClose = (): void => resolve(false);
    // A response whose connection is lost does not call back.
    if (res.destroyed) return onClose();
    res.once('close', onClose);
    res.write(chunk, (error) => {
      res.off('close', onClose);
      resolve(error == null);
    });
  });
}
