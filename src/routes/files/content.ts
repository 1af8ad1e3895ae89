import { randomBytes } from 'node:crypto';
import type { Context } from 'koa';
import type { RouteAnswer } from '../../describe/operation.ts';
import { dispositionOf } from '../../files/receive/file-names.ts';
import { isInline } from '../../files/receive/media-types.ts';
import { rangeLength, readRange } from '../../files/storage/ranges.ts';
import type { ByteRange, Storage } from '../../files/storage/storage.ts';
import { type Sizes, type Variant, Variants } from '../../files/variants/variants.ts';
import { isUnchanged, sendChunks } from '../../http/answer/send.ts';
import type { App } from '../../http/app.ts';
import { admissionOf, notFoundProblem } from '../../http/gate.ts';
import { queryOf } from '../../http/request.ts';
import { Problem } from '../../problem.ts';
import { route } from '../define-route.ts';
import { headerOf, idInPath, ifNoneMatchParameter } from '../records/request.ts';
import { readSizes, sizeParameters } from './sizes.ts';

const bytesAnswer = (description: string, headers: RouteAnswer['headers'] = []): RouteAnswer => ({
  description,
  type: '*/*',
  shape: () => ({ type: 'string', contentMediaType: 'application/octet-stream' }),
  headers: ['ETag', 'Accept-Ranges', 'Content-Disposition', ...headers],
});

export const readContent = route({
  method: 'GET',
  path: '/api/files/:id/content',
  door: { action: 'read', collection: 'files', link: true },
  accepts: 'any',
  id: 'read_file_content',
  head: 'head_file_content',
  summary: 'Get the bytes of a file, or of an image in another size',
  description: 'A caller who may not read the file gets 404. A link (`?token=`) stands in for a credential.',
  parameters: [
    {
      name: 'token',
      in: 'query',
      description: 'Of a link to this file.',
      schema: { type: 'string' },
    },
    sizeParameters,
    ifNoneMatchParameter,
    {
      name: 'Range',
      in: 'header',
      description: 'Of bytes (RFC 9110).',
      schema: { type: 'string', examples: ['bytes=0-1023'] },
    },
    {
      name: 'If-Range',
      in: 'header',
      description: 'The ETag for which `Range` holds; the whole content follows where it has changed.',
      schema: { type: 'string' },
    },
  ],
  answers: {
    200: bytesAnswer('The bytes.'),
    206: bytesAnswer('The parts that `Range` asks for.', ['Content-Range']),
    302: {
      description: 'To a signed address in the bucket, where the service is configured so.',
      headers: ['Location'],
    },
    304: { description: 'You have this content already.', headers: ['ETag'] },
  },
  problems: ['invalid_parameter', 'validation_failed', 'not_found', 'range_not_satisfiable'],
  async handle(ctx, app) {
    const sizes = readSizes(queryOf(ctx), app.schema.uploads.images);
    const id = idInPath(ctx);
    const admission = admissionOf(ctx);
    const { json } = await app.records.read(admission.access(), { id, relations: [] });
    const content = await contentOf(JSON.parse(String(json)) as FileRecord, sizes, app);
    try {
      setHeaders(ctx, content);
      if (isUnchanged(headerOf(ctx, 'If-None-Match'), content.etag)) ctx.status = 304;
      else await answerContent(ctx, content, app.files.storage);
    } finally {
      content.release();
    }
  },
});

interface FileRecord {
  readonly id: string;
  readonly name: string;
  readonly content_type: string;
  readonly size: number;
  readonly sha256: string;
}
/** The bytes themselves, or an image in another size. */
interface ServedContent extends Variant {
  readonly etag: string;
  readonly disposition: string;
}

async function contentOf(record: FileRecord, sizes: Sizes | undefined, app: App): Promise<ServedContent> {
  const { id, name, content_type: contentType, size, sha256 } = record;
  const { storage, variants } = app.files;
  const disposition = dispositionOf(isInline(contentType) ? 'inline' : 'attachment', name);
  if (sizes === undefined) {
    const open = (range?: ByteRange) => storage.open(id, range);
    return { key: id, contentType, size, etag: `"${sha256}"`, disposition, open, release: () => undefined };
  }
  const request = { id, contentType, ...sizes };
  const variant = await variants.of(request);
  if (variant === undefined) throw notFoundProblem();
  return { ...variant, etag: `"${sha256}${Variants.keyOf(request).slice(id.length)}"`, disposition };
}

function setHeaders(ctx: Context, { contentType, etag, disposition }: ServedContent): void {
  ctx.set('ETag', etag);
  ctx.set('Cache-Control', 'private, no-cache');
  ctx.set('Content-Disposition', disposition);
  ctx.set('Content-Type', contentType);
  ctx.set('Accept-Ranges', 'bytes');
  // A browser that shows it as a page runs no script, has no origin and no form, and loads nothing.
  ctx.set('Content-Security-Policy', "default-src 'none'; frame-ancestors 'none'; sandbox");
}

async function answerContent(ctx: Context, content: ServedContent, storage: Storage): Promise<void> {
  const { key, size, contentType, disposition } = content;
  const mayRedirect = ctx.method === 'GET' && key !== undefined;
  const elsewhere = mayRedirect ? await storage.redirect(key, { contentType, disposition }) : undefined;
  if (elsewhere !== undefined) {
    ctx.redirect(elsewhere);
    ctx.body = null;
    ctx.status = 302;
    ctx.set('Cache-Control', 'private, no-store');
    return;
  }
  const asked =
    ctx.method === 'GET' && isSameFor(headerOf(ctx, 'If-Range'), content) ? headerOf(ctx, 'Range') : undefined;
  const ranges = readRange(asked, size);
  if (ranges === 'unsatisfiable') {
    throw new Problem('range_not_satisfiable', `the content has ${size} bytes`, {
      headers: { 'Content-Range': `bytes */${size}` },
    });
  }
  if (ranges === 'whole') await sendContent(ctx, content, { length: size });
  else {
    const [range, ...others] = ranges;
    if (range !== undefined && others.length === 0) await sendRange(ctx, range, content);
    else await sendRanges(ctx, ranges, content);
  }
}

/** Without a date of the content, only a strong tag proves that it is the same (RFC 9110, 13.1.5). */
const isSameFor = (ifRange: string | undefined, { etag }: ServedContent): boolean =>
  ifRange === undefined || ifRange.trim() === etag;

interface SentPart {
  readonly length: number;
  /** Undefined: all of it. */
  readonly range?: ByteRange;
}

async function sendContent(ctx: Context, { open }: ServedContent, { length, range }: SentPart): Promise<void> {
  if (ctx.method === 'HEAD') {
    ctx.status = 200;
    ctx.length = length;
    return;
  }
  const chunks = await open(range);
  // The bytes were deleted after the record was read.
  if (chunks === undefined) throw notFoundProblem();
  ctx.status = range === undefined ? 200 : 206;
  ctx.length = length;
  await sendChunks(ctx, chunks);
}

async function sendRange(ctx: Context, range: ByteRange, content: ServedContent): Promise<void> {
  ctx.set('Content-Range', contentRange(range, content.size));
  await sendContent(ctx, content, { length: rangeLength(range), range });
}

async function sendRanges(
  ctx: Context,
  ranges: readonly ByteRange[],
  { open, size, contentType }: ServedContent,
): Promise<void> {
  const boundary = randomBytes(18).toString('hex');
  const heads = ranges.map(
    (range) =>
      `\r\n--${boundary}\r\nContent-Type: ${contentType}\r\nContent-Range: ${contentRange(range, size)}\r\n\r\n`,
  );
  const tail = `\r\n--${boundary}--\r\n`;
  async function* parts(): AsyncIterable<Buffer> {
    for (const [i, range] of ranges.entries()) {
      yield Buffer.from(heads[i]!, 'latin1');
      const chunks = await open(range);
      if (chunks === undefined) throw notFoundProblem();
      yield* chunks;
    }
    yield Buffer.from(tail, 'latin1');
  }
  ctx.status = 206;
  ctx.set('Content-Type', `multipart/byteranges; boundary=${boundary}`);
  ctx.length =
    heads.reduce((sum, head) => sum + head.length, tail.length) +
    ranges.reduce((sum, range) => sum + rangeLength(range), 0);
  await sendChunks(ctx, parts());
}

const contentRange = ({ start, end }: ByteRange, size: number): string => `bytes ${start}-${end}/${size}`;
