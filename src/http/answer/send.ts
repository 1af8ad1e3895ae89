/** Sends answers: JSON text, entity tags, and bodies in chunks. */
import { createHash, hash } from 'node:crypto';
import type { ServerResponse } from 'node:http';
import type { Context } from 'koa';
import { Problem } from '../../problem.ts';
import { type JsonText, stringsOf, utf8BytesOf } from '../../records/json-pieces.ts';
import { countUnread, roomForAnswer } from '../../unread-answers.ts';
import { compressed, compressedChunks, LEAST_COMPRESSED, setCoding, tagWithoutCoding } from './compression.ts';

const JSON_CONTENT_TYPE = 'application/json; charset=utf-8';

/** UTF-16 code units of an answer that is written at once. */
const MOST_AT_ONCE = 262_144;
/** UTF-16 code units of an answer whose bytes count as unread until it is sent. */
const LONG_ANSWER = 65_536;

/**
 * Sends JSON text, a long one in chunks, so that no answer is in memory as a whole. Koa would look the type up for each
 * answer, and count the bytes twice. Throws `rate_limited` where the caller leaves too many bytes unread.
 *
 * @param status of a write, whose answer is sent in any case; undefined: the answer of a read
 */
export async function sendJson(ctx: Context, json: JsonText, status?: number): Promise<void> {
  const { res } = ctx;
  if (json.length > LONG_ANSWER) {
    const bytes = utf8BytesOf(json);
    if (status === undefined && bytes > roomForAnswer()) throw tooMuchUnread();
    countUnread(bytes, res);
  }
  ctx.status = status ?? 200;
  res.setHeader('Content-Type', JSON_CONTENT_TYPE);
  const isNegotiated = json.length >= LEAST_COMPRESSED && ctx.req.headers['accept-encoding'] !== undefined;
  if (isNegotiated && ctx.acceptsEncodings('gzip', 'identity') === 'gzip') return sendGzipped(ctx, json);
  if (json.length > MOST_AT_ONCE) {
    res.setHeader('Content-Length', utf8BytesOf(json));
    return sendChunks(ctx, encodedChunks(json));
  }
  const text = String(json);
  const bytes = Buffer.byteLength(text);
  res.setHeader('Content-Length', bytes);
  ctx.respond = false;
  // Node encodes ASCII several times faster as Latin-1.
  res.end(text, bytes === text.length ? 'latin1' : 'utf8');
}

async function sendGzipped(ctx: Context, json: JsonText): Promise<void> {
  setCoding(ctx, 'gzip');
  if (json.length > MOST_AT_ONCE) return sendChunks(ctx, compressedChunks(encodedChunks(json), 'gzip'));
  ctx.body = await compressed(Buffer.from(String(json)), 'gzip');
}

const tooMuchUnread = (): Problem =>
  new Problem('rate_limited', 'too many bytes of your answers wait to be read; read them before you ask for more');

/** Chunks of at most `MOST_AT_ONCE` code units. */
function* encodedChunks(json: JsonText): Generator<Buffer> {
  let texts: string[] = [];
  let length = 0;
  for (const piece of stringsOf(json)) {
    for (const text of slicesOf(piece)) {
      if (length + text.length > MOST_AT_ONCE) {
        yield Buffer.from(texts.join(''));
        texts = [];
        length = 0;
      }
      texts.push(text);
      length += text.length;
    }
  }
  yield Buffer.from(texts.join(''));
}

function* slicesOf(text: string): Generator<string> {
  for (let at = 0; at < text.length; ) {
    let end = at + MOST_AT_ONCE;
    // Both halves of a surrogate pair become one character of UTF-8.
    if ((text.charCodeAt(end - 1) & 0xfc00) === 0xd800) end--;
    yield text.slice(at, end);
    at = end;
  }
}

// ---------------------------------------------------------------- entity tags

/**
 * An entity tag: `"<version>.<digest>"`. If-Match compares the version of the record, which the
 * database keeps; If-None-Match compares the whole tag, because the representation also depends on
 * the expanded relations and on the caller's permits. `version` holds no quotation mark.
 */
export function entityTagOf(version: string, json: JsonText): string {
  return `"${version}.${digestOfJson(json).slice(0, 16)}"`;
}

function digestOfJson(json: JsonText): string {
  if (typeof json === 'string') return hash('sha256', json, 'base64url');
  const digest = createHash('sha256');
  for (const chunk of encodedChunks(json)) digest.update(chunk);
  return digest.digest('base64url');
}

/** A strong tag of `entityTagOf`; captures the version. */
const OWN_TAG = /^"([\x21\x23-\x7e]+)\.[\w-]+"$/;
const TAG = /(?:W\/)?"[^"]*"|[^,\s]+/g;

const tagsOf = (header: string): readonly string[] => header.match(TAG) ?? [];

/**
 * The versions that If-Match allows; undefined: any. A weak or foreign tag allows none (RFC 9110,
 * section 13.1.1).
 */
export function versionsOf(ifMatch: string | undefined): readonly string[] | undefined {
  if (ifMatch === undefined || ifMatch.trim() === '*') return undefined;
  return tagsOf(ifMatch).flatMap((tag) => {
    const version = OWN_TAG.exec(tag)?.[1];
    return version === undefined ? [] : [version];
  });
}

/** Returns true if If-None-Match names this tag, by weak comparison (RFC 9110, section 13.1.2). */
export function isUnchanged(ifNoneMatch: string | undefined, etag: string): boolean {
  if (ifNoneMatch === undefined) return false;
  if (ifNoneMatch.trim() === '*') return true;
  const tags = tagsOf(ifNoneMatch).map((tag) => tag.replace(/^W\//, ''));
  return tags.some((tag) => tag === etag || tagWithoutCoding(tag) === etag);
}

// ---------------------------------------------------------------- chunks

/**
 * Requests a chunk when the socket has sent the previous one, so that its memory can be reused;
 * a body that Koa pipes has no such signal. The head is sent with the first chunk, so errors until
 * then still get a response.
 */
export async function sendChunks(ctx: Context, chunks: AsyncIterable<Buffer> | Iterable<Buffer>): Promise<void> {
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
 * Returns false if the client is gone. The chunk may be reused in both cases: a response closes
 * after its socket.
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
