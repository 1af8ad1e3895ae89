/** Sends a body in chunks. */
import type { ServerResponse } from 'node:http';
import type { Context } from 'koa';

/**
 * Requests a chunk when the socket has sent the previous one, so that its memory can be reused;
 * with a body that Koa pipes there is no such signal. The head is sent with the first chunk, so
 * errors until then still get a response.
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
    // The only sign left that the body is incomplete.
    if (res.headersSent) res.destroy();
    else ctx.respond = true;
    throw error;
  }
}

/**
 * False: the client is gone. In both cases the chunk is no longer in use: a response closes after
 * its socket.
 */
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
