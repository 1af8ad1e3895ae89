/**
 * Bytes in a local folder: `ab/cd/<key>`, where abcd is the beginning of a hash of the id, so that
 * no folder grows large. Bytes arrive under `incoming/`, are synced there, and are renamed into
 * their place. A variant lies beside its original.
 */
import { createHash, randomBytes } from 'node:crypto';
import { type FileHandle, mkdir, open, readdir, rename, stat, unlink } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { codeOf } from '../thrown.ts';
import { freeBuffer } from './free-buffer.ts';
import { type ByteRange, type Incoming, idOfKey, type Key, type Storage, type Sweep } from './storage.ts';

const INCOMING = 'incoming';
/** Bytes that are collected before a write. An upload has at most three such buffers in memory. */
const WRITE_BYTES = 512 * 1024;
/** Bytes of a read. A download has two such buffers. */
const READ_AHEAD = 256 * 1024;
const SWEEP_BATCH = 500;

export function localStorage(root: string): Storage {
  const placeOf = (key: Key): string => {
    const hash = createHash('sha256').update(idOfKey(key)).digest('hex');
    return join(root, hash.slice(0, 2), hash.slice(2, 4), key);
  };
  /** Of a file and its variants. */
  const placesOf = async (id: string): Promise<readonly string[]> => {
    const folder = dirname(placeOf(id));
    const names = await entriesOf(folder);
    return names.filter((name) => idOfKey(name) === id).map((name) => join(folder, name));
  };
  return {
    async incoming(key) {
      const folder = join(root, INCOMING);
      await mkdir(folder, { recursive: true });
      const temporary = join(folder, `${key}.${randomBytes(6).toString('hex')}`);
      return new LocalIncoming(await open(temporary, 'wx', 0o600), { root, temporary, place: placeOf(key) });
    },
    open: (key, range) => openRange(placeOf(key), range),
    async size(key) {
      return (await unlessMissing(stat(placeOf(key))))?.size;
    },
    async sizes(id) {
      const places = await placesOf(id);
      const sizes = await Promise.all(
        places.map(async (place) => [basename(place), (await unlessMissing(stat(place)))?.size ?? 0] as const),
      );
      return new Map(sizes);
    },
    async remove(id) {
      await Promise.all((await placesOf(id)).map((place) => unlessMissing(unlink(place))));
    },
    redirect: async () => undefined,
    sweep: (order) => sweep(root, order),
  };
}

interface Places {
  readonly root: string;
  readonly temporary: string;
  readonly place: string;
}

/**
 * Copies chunks into one buffer while another is written: few, large writes, and the caller may
 * reuse a chunk.
 */
class LocalIncoming implements Incoming {
  readonly #file: FileHandle;
  readonly #places: Places;
  readonly #spare: Buffer[] = [];
  #filling: Buffer | undefined;
  #filled = 0;
  #writing: Promise<void> = Promise.resolve();
  #open = true;
  #published = false;

  constructor(file: FileHandle, places: Places) {
    this.#file = file;
    this.#places = places;
  }

  write(chunk: Buffer): Promise<void> | undefined {
    let before: Promise<void> | undefined;
    for (let at = 0; at < chunk.length; ) {
      this.#filling ??= this.#spare.pop() ?? Buffer.allocUnsafeSlow(WRITE_BYTES);
      const taken = chunk.copy(this.#filling, this.#filled, at);
      this.#filled += taken;
      at += taken;
      if (this.#filled === WRITE_BYTES) before = this.#flush();
    }
    return before;
  }

  /** Resolves when the batches before it are written; while this one is, the next is collected. */
  #flush(): Promise<void> {
    const before = this.#writing;
    const batch = this.#filling;
    if (batch === undefined) return before;
    const bytes = batch.subarray(0, this.#filled);
    this.#filling = undefined;
    this.#filled = 0;
    this.#writing = before.then(async () => {
      await writeAll(this.#file, bytes);
      this.#spare.push(batch);
    });
    // The next wait reports it; an unhandled rejection would end the process.
    this.#writing.catch(() => undefined);
    return before;
  }

  async publish(): Promise<void> {
    this.#flush();
    await this.#writing;
    await this.#file.sync();
    await this.#close();
    const folder = dirname(this.#places.place);
    const made = await mkdir(folder, { recursive: true });
    await rename(this.#places.temporary, this.#places.place);
    this.#published = true;
    await syncFolder(folder);
    // A new folder is durable once its parent is synced.
    if (made !== undefined)
      for (let at = dirname(folder); at.startsWith(this.#places.root); at = dirname(at)) await syncFolder(at);
  }

  async discard(): Promise<void> {
    await this.#writing.catch(() => undefined);
    await this.#close().catch(() => undefined);
    await unlink(this.#published ? this.#places.place : this.#places.temporary).catch(() => undefined);
  }

  async #close(): Promise<void> {
    if (!this.#open) return;
    this.#open = false;
    for (const buffer of this.#spare) freeBuffer(buffer);
    await this.#file.close();
  }
}

/** A write may be short. */
async function writeAll(file: FileHandle, batch: Buffer): Promise<void> {
  for (let at = 0; at < batch.length; ) at += (await file.write(batch, at)).bytesWritten;
}

async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

async function openRange(place: string, range: ByteRange | undefined): Promise<AsyncIterable<Buffer> | undefined> {
  const file = await unlessMissing(open(place));
  return file && chunksOf(file, range);
}

/** Reads into one buffer while the caller uses the other. */
async function* chunksOf(file: FileHandle, { start: at, end }: ByteRange = WHOLE_FILE): AsyncIterable<Buffer> {
  let [buffer, other] = [Buffer.allocUnsafeSlow(READ_AHEAD), Buffer.allocUnsafeSlow(READ_AHEAD)];
  const read = async (): Promise<Buffer> => {
    const { bytesRead } = await file.read(buffer, 0, Math.min(READ_AHEAD, end + 1 - at), at);
    return buffer.subarray(0, bytesRead);
  };
  let reading = read();
  try {
    for (let chunk = await reading; chunk.length > 0; chunk = await reading) {
      at += chunk.length;
      [buffer, other] = [other, buffer];
      reading = read();
      // The next iteration reports it; an unhandled rejection would end the process.
      reading.catch(() => undefined);
      yield chunk;
    }
  } finally {
    await reading.catch(() => undefined);
    freeBuffer(buffer);
    freeBuffer(other);
    await file.close();
  }
}
const WHOLE_FILE: ByteRange = { start: 0, end: Number.POSITIVE_INFINITY };

async function sweep(root: string, { alive, grace }: Sweep): Promise<number> {
  let removed = 0;
  const removeOld = async (place: string): Promise<void> => {
    const found = await unlessMissing(stat(place));
    if (found === undefined || Date.now() - found.mtimeMs < grace) return;
    await unlessMissing(unlink(place));
    removed++;
  };
  for (const name of await entriesOf(join(root, INCOMING))) await removeOld(join(root, INCOMING, name));
  for await (const places of batches(root)) {
    // INVARIANT: the records are read after the bytes were listed. Bytes of a record that is
    // created later are newer, or within the grace.
    const living = await alive([...new Set(places.map(({ key }) => idOfKey(key)))]);
    for (const { key, place } of places) if (!living.has(idOfKey(key))) await removeOld(place);
  }
  return removed;
}

interface PlacedFile {
  readonly key: Key;
  readonly place: string;
}

async function* batches(root: string): AsyncIterable<readonly PlacedFile[]> {
  let batch: PlacedFile[] = [];
  for (const outer of await entriesOf(root)) {
    if (!/^[0-9a-f]{2}$/.test(outer)) continue;
    for (const inner of await entriesOf(join(root, outer))) {
      for (const key of await entriesOf(join(root, outer, inner)))
        batch.push({ key, place: join(root, outer, inner, key) });
      if (batch.length < SWEEP_BATCH) continue;
      yield batch;
      batch = [];
    }
  }
  if (batch.length > 0) yield batch;
}

const entriesOf = async (folder: string): Promise<readonly string[]> => (await unlessMissing(readdir(folder))) ?? [];

async function unlessMissing<T>(work: Promise<T>): Promise<T | undefined> {
  try {
    return await work;
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return undefined;
    throw error;
  }
}
