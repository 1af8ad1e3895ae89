/** Images in the sizes that the schema lists, made when first asked for and kept beside the original. */
import sharp from 'sharp';
import { Problem } from '../problem.ts';
import type { Uploads } from '../schema/model.ts';
import type { Key, Storage } from './storage.ts';

export const FITS = ['cover', 'contain', 'inside'] as const;
export type Fit = (typeof FITS)[number];

export interface VariantRequest {
  readonly id: string;
  readonly contentType: string;
  readonly width: number | undefined;
  readonly height: number | undefined;
  readonly fit: Fit;
}
export interface Variant {
  readonly key: Key;
  readonly contentType: string;
  readonly size: number;
}

/** What is read, and what it becomes. Nothing that is markup, and nothing that needs a further program. */
const OUTPUT: Readonly<Record<string, 'jpeg' | 'png' | 'webp'>> = {
  'image/jpeg': 'jpeg',
  'image/png': 'png',
  'image/webp': 'webp',
  'image/gif': 'png',
  'image/avif': 'webp',
};
/** Images that are made at once: each holds its pixels in memory. */
const AT_ONCE = 2;
const TIMEOUT_SECONDS = 15;

sharp.cache(false);
sharp.concurrency(1);

export class Variants {
  readonly #storage: Storage;
  readonly #maxPixels: number;
  readonly #making = new Map<Key, Promise<Variant>>();
  readonly #waiting: (() => void)[] = [];
  #running = 0;

  constructor(storage: Storage, { maxPixels }: Uploads['images']) {
    this.#storage = storage;
    this.#maxPixels = maxPixels;
  }

  static keyOf({ id, width, height, fit }: VariantRequest): Key {
    return `${id}.w${width ?? ''}h${height ?? ''}${fit}`;
  }

  /** Throws `validation_failed` where the bytes are no image, or one with too many pixels. Undefined: the original is gone. */
  async of(request: VariantRequest): Promise<Variant | undefined> {
    const key = Variants.keyOf(request);
    const output = OUTPUT[request.contentType];
    if (output === undefined) throw notResizable(`a file of the type ${request.contentType} has no other sizes`);
    const contentType = `image/${output}`;
    const size = await this.#storage.size(key);
    if (size !== undefined) return { key, contentType, size };
    if ((await this.#storage.size(request.id)) === undefined) return undefined;
    const making =
      this.#making.get(key) ?? this.#make(request, { key, output }).finally(() => this.#making.delete(key));
    this.#making.set(key, making);
    return making;
  }

  async #make(
    request: VariantRequest,
    { key, output }: { readonly key: Key; readonly output: 'jpeg' | 'png' | 'webp' },
  ): Promise<Variant> {
    await this.#turn();
    try {
      const bytes = await this.#render(request, output);
      const incoming = await this.#storage.incoming(key);
      try {
        await incoming.write(bytes);
        await incoming.publish();
      } catch (error) {
        await incoming.discard();
        throw error;
      }
      return { key, contentType: `image/${output}`, size: bytes.length };
    } finally {
      this.#running--;
      this.#waiting.shift()?.();
    }
  }

  async #turn(): Promise<void> {
    while (this.#running >= AT_ONCE) await new Promise<void>((resolve) => this.#waiting.push(resolve));
    this.#running++;
  }

  async #render({ id, width, height, fit }: VariantRequest, output: 'jpeg' | 'png' | 'webp'): Promise<Buffer> {
    const original = await this.#storage.open(id);
    if (original === undefined) throw new Problem('not_found', 'there is no such record');
    const image = sharp({
      limitInputPixels: this.#maxPixels,
      limitInputChannels: 4,
      failOn: 'error',
      sequentialRead: true,
    });
    for await (const chunk of original) image.write(Buffer.from(chunk));
    image.end();
    try {
      return await image
        .autoOrient()
        .resize({
          ...(width === undefined ? {} : { width }),
          ...(height === undefined ? {} : { height }),
          fit,
          withoutEnlargement: fit === 'inside',
        })
        .timeout({ seconds: TIMEOUT_SECONDS })
        .toFormat(output)
        .toBuffer();
    } catch (error) {
      throw (error as NodeJS.ErrnoException).code === undefined ? notAnImage(error) : error;
    }
  }
}

function notResizable(detail: string, cause?: unknown): Problem {
  return new Problem('validation_failed', detail, {
    errors: [{ parameter: 'width', code: 'not_resizable', detail }],
    cause,
  });
}

const notAnImage = (cause: unknown): Problem =>
  notResizable('the image cannot be read: it is damaged, or holds more pixels than are allowed', cause);
