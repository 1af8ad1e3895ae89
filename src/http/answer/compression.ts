/** Compresses answers for clients that ask for it. */
import { pipeline, Readable } from 'node:stream';
import { promisify } from 'node:util';
import { brotliCompress, constants, createBrotliCompress, createGzip, gzip } from 'node:zlib';
import type { Context } from 'koa';

/** Bytes. A shorter answer takes one or two packets in any case. */
export const LEAST_COMPRESSED = 1024;

export type Coding = 'br' | 'gzip';

/** Higher levels take several times as long for a few percent. */
const GZIP = { level: 4 };
const BROTLI = { params: { [constants.BROTLI_PARAM_QUALITY]: 5 } };

const compressBytes = {
  br: (bytes: Buffer): Promise<Buffer> => promisify(brotliCompress)(bytes, BROTLI),
  gzip: (bytes: Buffer): Promise<Buffer> => promisify(gzip)(bytes, GZIP),
} as const;

/** Undefined: the client takes none of the codings. */
export const bestCoding = (ctx: Context, codings: readonly Coding[] = ['br', 'gzip']): Coding | undefined =>
  codings.find((coding) => ctx.acceptsEncodings(coding, 'identity') === coding);

/** The entity tag names the coding, because the bytes differ (RFC 9110, section 8.8.3.3). */
export function setCoding(ctx: Context, coding: Coding): void {
  ctx.set('Content-Encoding', coding);
  ctx.vary('Accept-Encoding');
  const etag = ctx.res.getHeader('ETag');
  if (etag !== undefined) ctx.set('ETag', String(etag).replace(/"$/, `-${coding}"`));
}

/** Tokens and text that a caller chooses could share an answer about accounts. */
const PLAIN_PATHS = /^(?:\/api)?\/auth(?:\/|$)/;

/** Compresses a body that a handler has set as text or as a value, such as a problem. */
export async function compressBody(ctx: Context): Promise<void> {
  const { body } = ctx;
  if (PLAIN_PATHS.test(ctx.path)) return;
  const isJson = isPlainValue(body);
  if (!isJson && typeof body !== 'string') return;
  const bytes = Buffer.from(isJson ? JSON.stringify(body) : body);
  if (bytes.length < LEAST_COMPRESSED) return;
  const coding = bestCoding(ctx, ctx.type.includes('json') ? ['gzip'] : ['br', 'gzip']);
  if (coding === undefined) return;
  setCoding(ctx, coding);
  ctx.body = await compressed(bytes, coding);
}

const isPlainValue = (body: unknown): body is object =>
  typeof body === 'object' && body !== null && Object.getPrototypeOf(body) === Object.prototype;

/** The tag of the same content without a coding. */
export const tagWithoutCoding = (tag: string): string => tag.replace(/-(?:br|gzip)"$/, '"');

export const compressed = (bytes: Buffer, coding: Coding): Promise<Buffer> => compressBytes[coding](bytes);

/** Ends the source when the result is left early. */
export function compressedChunks(
  source: Iterable<Buffer> | AsyncIterable<Buffer>,
  coding: Coding,
): AsyncIterable<Buffer> {
  const packer = coding === 'br' ? createBrotliCompress(BROTLI) : createGzip(GZIP);
  // An error reaches the reader of the chunks through the packer.
  return pipeline(Readable.from(source), packer, () => undefined) as AsyncIterable<Buffer>;
}
