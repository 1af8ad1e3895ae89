/**
 * Renders images in the sizes that the schema lists, each at its first request. A size is kept next
 * to the original while the kept sizes of a file together take no more bytes than the file itself:
 * storage never exceeds twice the quota.
 */
import type { Sharp, SharpConstructor } from 'sharp';
import { FairQueue, type Refused } from '../../fair-queue.ts';
import { loadOptional, MissingPackage } from '../../optional-package.ts';
import { Problem } from '../../problem.ts';
import type { Uploads } from '../../schema/model/model.ts';
import { codeOf } from '../../thrown.ts';
import { type ByteRange, type Storage, type StorageKey, storeBytes } from '../storage/storage.ts';

export const FITS = ['cover', 'contain', 'inside'] as const;
type Fit = (typeof FITS)[number];
type ImageFormat = 'jpeg' | 'png' | 'webp';

export interface Sizes {
  readonly width: number | undefined;
  readonly height: number | undefined;
  readonly fit: Fit;
}
export interface VariantRequest extends Sizes {
  readonly id: string;
  readonly contentType: string;
}
export interface Variant {
  readonly contentType: string;
  readonly size: number;
  /** The key under which the storage keeps it; undefined if it is in memory only. */
  readonly key: StorageKey | undefined;
  /** Undefined: the variant was deleted in the meantime. */
  open(range?: ByteRange): Promise<AsyncIterable<Buffer> | undefined>;
  /** Frees the memory of a variant that is not kept. Call it once, when the response has ended. */
  release(): void;
}

/** The formats that can be read, with their output. No markup, and no format that needs another program. */
const OUTPUT: Readonly<Record<string, ImageFormat>> = {
  'image/jpeg': 'jpeg',
  'image/png': 'png',
  'image/webp': 'webp',
  'image/gif': 'png',
  'image/avif': 'webp',
};
/** Each running render holds the pixels of its image in memory. */
const VARIANTS_AT_ONCE = 2;
const MOST_WAITING = 100;
/** Bytes of variants that are not kept, in all running responses. */
const MAX_UNKEPT = 64 * 1024 * 1024;
const TIMEOUT_SECONDS = 15;

/** Process-wide: the module is loaded once. */
let loadingSharp: Promise<SharpConstructor> | undefined;

/** Lazy: the library is slow to load, and optional. */
function imageLibrary(): Promise<SharpConstructor> {
  loadingSharp ??= loadSharp();
  return loadingSharp;
}

/** Throws `unavailable`: the original can still be read. */
async function loadSharp(): Promise<SharpConstructor> {
  try {
    const { default: sharp } = await loadOptional({
      packages: ['sharp'],
      reason: 'images are requested in other sizes',
      load: () => import('sharp'),
    });
    sharp.cache(false);
    sharp.concurrency(1);
    return sharp;
  } catch (error) {
    if (!(error instanceof MissingPackage)) throw error;
    throw new Problem('unavailable', `${error.message} on the server`, {
      cause: error,
    });
  }
}

const tooManyRenders = ({ reason }: Refused): Problem =>
  new Problem(
    reason === 'own' ? 'rate_limited' : 'unavailable',
    'too many images are waiting to be resized; try again in a moment',
  );

export class Variants {
  readonly #storage: Storage;
  readonly #maxPixels: number;
  readonly #queue = new FairQueue({ places: VARIANTS_AT_ONCE, mostWaiting: MOST_WAITING, refuse: tooManyRenders });
  #unkept = 0;

  constructor(storage: Storage, { maxPixels }: Uploads['images']) {
    this.#storage = storage;
    this.#maxPixels = maxPixels;
  }

  static keyOf({ id, width, height, fit }: VariantRequest): StorageKey {
    return `${id}.w${width ?? ''}h${height ?? ''}${fit}`;
  }

  /**
   * Undefined: the original is gone. Throws `validation_failed` if the bytes are not an image or
   * have too many pixels, and `unavailable` if too many renders are waiting or the image library is
   * not installed.
   */
  async of(request: VariantRequest): Promise<Variant | undefined> {
    const format = OUTPUT[request.contentType];
    if (format === undefined) throw notResizable(`files of the type ${request.contentType} cannot be resized`);
    const kept = await this.#kept(request, format);
    if (kept !== undefined) return kept;
    return this.#queue.serve(async () => {
      // Another request may have made it while this one waited.
      return (await this.#kept(request, format)) ?? this.#make(request, format);
    });
  }

  async #kept(request: VariantRequest, format: ImageFormat): Promise<Variant | undefined> {
    const key = Variants.keyOf(request);
    const size = await this.#storage.size(key);
    return size === undefined ? undefined : this.#stored(key, format, size);
  }

  #stored(key: StorageKey, format: ImageFormat, size: number): Variant {
    const open = (range?: ByteRange) => this.#storage.open(key, range);
    return { contentType: `image/${format}`, size, key, open, release: () => undefined };
  }

  async #make(request: VariantRequest, format: ImageFormat): Promise<Variant | undefined> {
    const original = await this.#storage.size(request.id);
    if (original === undefined) return undefined;
    const bytes = await this.#render(request, format);
    const key = Variants.keyOf(request);
    const sizes = await this.#storage.sizes(request.id);
    const kept = [...sizes].reduce((sum, [of, size]) => (of === key || of === request.id ? sum : sum + size), 0);
    if (kept + bytes.length > original) return this.#inMemory(bytes, format);
    await this.#keep(key, bytes);
    return this.#stored(key, format, bytes.length);
  }

  async #keep(key: StorageKey, bytes: Buffer): Promise<void> {
    await storeBytes(await this.#storage.incoming(key), bytes);
  }

  #inMemory(bytes: Buffer, format: ImageFormat): Variant {
    const size = bytes.length;
    if (this.#unkept + size > MAX_UNKEPT)
      throw new Problem('unavailable', 'too many resized images are being sent; try again in a moment');
    this.#unkept += size;
    return {
      contentType: `image/${format}`,
      size,
      key: undefined,
      open: async ({ start, end }: ByteRange = { start: 0, end: size }) => chunk(bytes.subarray(start, end + 1)),
      release: () => {
        this.#unkept -= size;
      },
    };
  }

  async #render({ id, width, height, fit }: VariantRequest, format: ImageFormat): Promise<Buffer> {
    const sharp = await imageLibrary();
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
      const box = smaller({ width, height }, await pictureOf(image), fit);
      return await image
        .autoOrient()
        .resize({ ...box, fit })
        .timeout({ seconds: TIMEOUT_SECONDS })
        .toFormat(format)
        .toBuffer();
    } catch (error) {
      throw codeOf(error) === undefined ? notAnImage(error) : error;
    }
  }
}

interface Picture {
  readonly width: number;
  readonly height: number;
}
type Box = { readonly [side in keyof Picture]: number | undefined };

/** The picture after the rotation that its EXIF data specifies. */
async function pictureOf(image: Sharp): Promise<Picture> {
  const { autoOrient, width, height } = await image.metadata();
  return { width: autoOrient.width ?? width, height: autoOrient.height ?? height };
}

/** Shrinks the box, in its own shape, until the picture fills it: an image is never enlarged. */
function smaller(box: Box, picture: Picture, fit: Fit): Box {
  const scales = (['width', 'height'] as const).flatMap((side) => {
    const wanted = box[side];
    return wanted === undefined ? [] : [wanted / picture[side]];
  });
  const scale = fit === 'cover' ? Math.max(...scales) : Math.min(...scales);
  if (scale <= 1) return box;
  const shrunk = (length: number | undefined) => length && Math.max(1, Math.round(length / scale));
  return { width: shrunk(box.width), height: shrunk(box.height) };
}

async function* chunk(bytes: Buffer): AsyncIterable<Buffer> {
  yield bytes;
}

function notResizable(detail: string, cause?: unknown): Problem {
  return new Problem('validation_failed', detail, {
    errors: [{ parameter: 'width', code: 'not_resizable', detail }],
    cause,
  });
}

const notAnImage = (cause: unknown): Problem =>
  notResizable('the image cannot be read: it is damaged, or has more pixels than are allowed', cause);
