/** A body that comes in chunks. */
import type { ServerResponse } from 'node:http';
import type { Context } from 'koa';

/**
 * Asks for a chunk when the socket is done with the one before, so that its memory can be used again; a body that Koa pipes tells nobody when that is. The head
 * goes out with the first chunk: what is thrown until then is answered.
 */
export async function sendChunks(ctx: Context, chunks: AsyncIterable<Buffer>): Promise<void> {
  const { res } = ctx;
  ctx.respond = false;
  // Chunks that end before the announced length end in an error, not in a client that waits for the rest.
  res.strictContentLength = true;
  try {
    for await (const chunk of chunks) if (!(await writeChunk(res, chunk))) return;
    res.end();
  } catch (error) {
    // All that is left to tell a body that ends early from a whole one.
    if (res.headersSent) res.destroy();
    else ctx.respond = true;
    throw error;
  }
}

/** False: the client is gone. Either way, nobody reads the chunk any more: a response is closed after its socket is. */
function writeChunk(res: ServerResponse, chunk: Buffer): Promise<boolean> {
  return new Promise((resolve) => {
    // A response whose connection is lost does not call back.
    const onClose = (): void => resolve(false);
    if (res.destroyed) return onClose();
    res.once('close', onClose);
    res.write(chunk, (error) => {
      res.off('close', onClose);
      resolve(error == null);
    });
  });
}
