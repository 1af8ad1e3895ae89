/** Texts that all callers get: pages, scripts, the OpenAPI document. Each is compressed once, or before the service starts. */
import { hash } from 'node:crypto';
import type { Context } from 'koa';
import { bestCoding, type Coding, compressed, LEAST_COMPRESSED, setCoding } from './compression.ts';
import { isUnchanged } from './send.ts';

export type PackedForms = Readonly<Record<Coding, Buffer>>;
interface StaticTextOptions {
  /** `immutable`: the address changes with the text. */
  readonly caching?: 'no-cache' | 'immutable';
  /** The text as it was compressed before. */
  readonly packed?: PackedForms;
}

export class StaticText {
  readonly #type: string;
  readonly #bytes: Buffer;
  readonly #etag: string;
  readonly #packed: PackedForms | undefined;
  readonly #compressed = new Map<Coding, Promise<Buffer>>();
  readonly #caching: string;

  constructor(type: string, text: string | Buffer, { caching = 'no-cache', packed }: StaticTextOptions = {}) {
    this.#type = type;
    this.#caching = caching === 'immutable' ? 'public, max-age=31536000, immutable' : caching;
    this.#bytes = Buffer.from(text);
    this.#packed = packed;
    this.#etag = `"${hash('sha256', text, 'base64url').slice(0, 22)}"`;
  }

  async send(ctx: Context): Promise<void> {
    ctx.set({ ETag: this.#etag, 'Cache-Control': this.#caching });
    const coding = this.#bytes.length < LEAST_COMPRESSED ? undefined : bestCoding(ctx);
    if (coding !== undefined) setCoding(ctx, coding);
    if (isUnchanged(ctx.get('If-None-Match') || undefined, this.#etag)) {
      ctx.remove('Content-Encoding');
      ctx.status = 304;
      return;
    }
    ctx.status = 200;
    ctx.set('Content-Type', this.#type);
    ctx.body = coding === undefined ? this.#bytes : await this.#in(coding);
  }

  async #in(coding: Coding): Promise<Buffer> {
    if (this.#packed !== undefined) return this.#packed[coding];
    let bytes = this.#compressed.get(coding);
    if (bytes === undefined) {
      bytes = compressed(this.#bytes, coding);
      this.#compressed.set(coding, bytes);
    }
    return bytes;
  }
}
