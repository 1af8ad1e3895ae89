/**
 * Writes server-sent events to a response. A reader that does not read is disconnected, so that it holds no memory and
 * delays no other; it resumes from the last event that it has read.
 */
import type { Context } from 'koa';

/** Bytes that a reader may leave unread, before another event. */
const MOST_UNREAD_EVENTS = 1_048_576;
/** A replay waits for its reader beyond this many bytes. */
const PACE_BYTES = 65_536;
const RETRY_MS = 1_000;
/** After the end of a service, its readers come back within this range of times. */
const LEAST_RETRY_MS = 500;
const RETRY_SPREAD_MS = 3_500;

export interface StreamEvent {
  readonly id: string;
  readonly type: string;
  /** Text without line breaks. */
  readonly data: string;
}

function setHead(ctx: Context): void {
  const { res } = ctx;
  ctx.respond = false;
  res.statusCode = 200;
  res.setHeader('Content-Type', 'text/event-stream');
  res.setHeader('Cache-Control', 'no-store');
  // nginx would gather events.
  res.setHeader('X-Accel-Buffering', 'no');
}

/** Answers HEAD: a stream would send no byte, and hold its place until the client leaves. */
export function sendStreamHead(ctx: Context): void {
  setHead(ctx);
  ctx.res.end();
}

export class EventStream {
  readonly #res: Context['res'];
  #isEnded = false;
  #isUnread = false;

  /** Sends the head. */
  constructor(ctx: Context, onClose: (reason: string) => void) {
    const { res } = ctx;
    this.#res = res;
    setHead(ctx);
    res.on('close', () => onClose(this.#closeReason));
    ctx.req.socket.setNoDelay(true);
    res.write(`retry: ${RETRY_MS}\n\n`);
  }

  /** False: the reader is too far behind, and the stream has ended. */
  send({ id, type, data }: StreamEvent): boolean {
    return this.#write(`id: ${id}\nevent: ${type}\ndata: ${data}\n\n`);
  }

  /** A comment, with the position that readers keep. */
  beat(id: string | undefined): boolean {
    return this.#write(id === undefined ? ':\n\n' : `:\nid: ${id}\n\n`);
  }

  /** The reader has much to read. */
  lags(): boolean {
    return !this.#res.destroyed && this.#res.writableLength > PACE_BYTES;
  }

  async drained(): Promise<void> {
    const res = this.#res;
    while (this.lags())
      await new Promise<void>((resolve) => {
        res.once('drain', resolve);
        res.once('close', resolve);
      });
  }

  /** @param isSpread the readers shall not come back all at once */
  end(isSpread: boolean): void {
    if (this.#isEnded) return;
    this.#isEnded = true;
    if (isSpread) this.#res.write(`retry: ${LEAST_RETRY_MS + Math.floor(Math.random() * RETRY_SPREAD_MS)}\n\n`);
    this.#res.end();
  }

  get #closeReason(): string {
    if (this.#isUnread) return 'unread';
    return this.#isEnded ? 'ended' : 'reader';
  }

  #write(text: string): boolean {
    if (this.#isEnded) return false;
    // A single event may be longer, and a reader who takes it is none who lags.
    if (this.#res.writableLength > MOST_UNREAD_EVENTS) {
      this.#isEnded = true;
      this.#isUnread = true;
      this.#res.destroy();
      return false;
    }
    this.#res.write(text);
    return true;
  }
}
