/**
 * Serves the files of a front end (`--public DIR`), and nothing outside of its folder: no dot file, and
 * no file that a symbolic link leads to elsewhere.
 */
import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { readFile, realpath, stat } from 'node:fs/promises';
import { extname, join, relative, sep } from 'node:path';
import type { Context } from 'koa';
import { present } from '../../invariant.ts';
import { codeOf } from '../../thrown.ts';
import { bestCoding, compressed, compressedChunks, LEAST_COMPRESSED, setCoding } from './compression.ts';
import { isUnchanged, sendChunks } from './send.ts';

interface PublicFile {
  readonly path: string;
  readonly size: number;
  readonly modified: number;
}

const HTML_EXTENSION = '.html';

export class PublicFiles {
  readonly #folder: string;

  constructor(folder: string) {
    this.#folder = folder;
  }

  /**
   * Returns false, and sends nothing, if the file is missing. A page at a path without a file is the
   * front end's index.html.
   */
  async answer(ctx: Context): Promise<boolean> {
    const segments = segmentsOf(ctx.path);
    if (segments === undefined) return false;
    const named = segments.at(-1) === '' ? [...segments.slice(0, -1), 'index.html'] : segments;
    const file = await this.#find(named);
    const index = file === undefined && asksForPage(ctx) ? await this.#find(['index.html']) : undefined;
    const found = file ?? index;
    if (found === undefined) return false;
    await sendFile(ctx, found, file !== undefined && isHashed(named) ? CACHED_FOREVER : 'no-cache');
    return true;
  }

  async #find(segments: readonly string[]): Promise<PublicFile | undefined> {
    try {
      const folder = await realpath(this.#folder);
      const path = await realpath(join(folder, ...segments));
      // A symbolic link may lead outside, or to a dot file.
      if (
        relative(folder, path)
          .split(sep)
          .some((name) => name.startsWith('.'))
      )
        return undefined;
      const found = await stat(path);
      return found.isFile() ? { path, size: found.size, modified: found.mtimeMs } : undefined;
    } catch (error) {
      if (UNREADABLE.has(String(codeOf(error)))) return undefined;
      throw error;
    }
  }
}

const UNREADABLE = new Set(['ENOENT', 'ENOTDIR', 'ENAMETOOLONG', 'ELOOP', 'EACCES']);

/**
 * Decodes the segments; the last is empty for a path that ends in `/`. Undefined: the path can name no
 * file of the folder.
 */
function segmentsOf(path: string): readonly string[] | undefined {
  let segments: readonly string[];
  try {
    segments = path.split('/').slice(1).map(decodeURIComponent);
  } catch {
    return undefined;
  }
  const isName = (segment: string, i: number): boolean =>
    segment === '' ? i === segments.length - 1 : !/^\.|[/\\\0:]/.test(segment);
  return segments.every(isName) ? segments : undefined;
}

/** Browsers ask for HTML when they go to an address; scripts, images and `fetch` do not. */
const asksForPage = (ctx: Context): boolean => /\btext\/html\b/i.test(ctx.get('Accept'));

// ---------------------------------------------------------------- caching

const CACHED_FOREVER = 'public, max-age=31536000, immutable';
/** Folders whose files build tools name by their content. */
const BUILT = new Set(['assets', 'immutable', '_next']);

/**
 * Returns true if a build tool named the file by its content: by 8 hexadecimal digits or more (webpack,
 * esbuild), or in its own folder by 8 characters of base64url (Vite). Browsers keep such files for a
 * year, so a doubtful name does not count.
 */
export function isHashed(segments: readonly string[]): boolean {
  const last = lastWordOf(segments.at(-1)!);
  if (last === undefined) return false;
  const has = (...kinds: readonly RegExp[]): boolean => kinds.every((kind) => kind.test(last));
  if (/^[0-9a-f]{8,}$/.test(last)) return has(/[0-9]/, /[a-f]/);
  return last.length >= 8 && segments.some((segment) => BUILT.has(segment)) && has(/[0-9]/, /[a-z]/, /[A-Z]/);
}

// ---------------------------------------------------------------- the response

async function sendFile(ctx: Context, file: PublicFile, caching: string): Promise<void> {
  const etag = `"${file.size.toString(36)}-${Math.round(file.modified).toString(36)}"`;
  const page = extname(file.path).toLowerCase() === HTML_EXTENSION ? await readFile(file.path, 'utf8') : undefined;
  ctx.set({ ETag: etag, 'Cache-Control': caching });
  // With a 304 too: its headers replace the headers that the browser keeps with the page.
  if (page !== undefined) ctx.set('Content-Security-Policy', contentSecurityPolicyOf(page));
  if (isUnchanged(ctx.get('If-None-Match') || undefined, etag)) {
    ctx.status = 304;
    return;
  }
  ctx.status = 200;
  ctx.type = extname(file.path) || 'application/octet-stream';
  if (ctx.type === '') ctx.type = 'application/octet-stream';
  const isCompressed = file.size >= LEAST_COMPRESSED && COMPRESSIBLE.test(ctx.type);
  const coding = isCompressed ? bestCoding(ctx) : undefined;
  if (coding !== undefined) setCoding(ctx, coding);
  if (page !== undefined) {
    ctx.body = coding === undefined ? page : await compressed(Buffer.from(page), coding);
    return;
  }
  if (coding === undefined) ctx.length = file.size;
  if (ctx.method === 'HEAD') return;
  if (file.size === 0) {
    ctx.body = '';
    return;
  }
  // Never more than announced, if the file grows meanwhile.
  const chunks: AsyncIterable<Buffer> = createReadStream(file.path, { end: file.size - 1 });
  await sendChunks(ctx, coding === undefined ? chunks : compressedChunks(chunks, coding));
}

const COMPRESSIBLE = /^(?:text\/.+|image\/svg\+xml|application\/(?:javascript|json|manifest\+json|wasm|xml))$/;

const isExtension = (text: string): boolean => /^\w+$/.test(text);

/**
 * Finds the word between a name with a separator and the extensions: `B2x3kZa9` of
 * `index-B2x3kZa9.min.js`.
 */
function lastWordOf(name: string): string | undefined {
  const parts = name.split('.');
  const stem = parts.findLastIndex((part, i) => i < parts.length - 1 && part.length >= 8);
  if (stem === -1 || !parts.slice(stem + 1).every(isExtension)) return undefined;
  const part = present(parts[stem], 'the part');
  const dash = part.lastIndexOf('-');
  return stem === 0 && dash === -1 ? undefined : part.slice(dash + 1);
}

/**
 * Allows scripts of this site and of the page itself; no script of another site, no plug-in, no frame
 * around it.
 */
export function contentSecurityPolicyOf(page: string): string {
  const inline = [...page.matchAll(/<script\b(?![^>]*\bsrc\s*=)[^>]*>([\s\S]*?)<\/script\s*>/gi)].map(
    ([, script = '']) => `'sha256-${createHash('sha256').update(script).digest('base64')}'`,
  );
  return [
    "default-src 'self'",
    ["script-src 'self'", ...new Set(inline)].join(' '),
    "style-src 'self' 'unsafe-inline' https:",
    "font-src 'self' https: data:",
    "img-src 'self' https: data: blob:",
    "media-src 'self' https: blob:",
    "connect-src 'self' https: wss:",
    "object-src 'none'",
    "base-uri 'self'",
    "form-action 'self'",
    "frame-ancestors 'none'",
  ].join('; ');
}
