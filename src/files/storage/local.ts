/**
 * Stores bytes in a local folder: `ab/cd/<key>`, where abcd is the beginning of a hash of the id, so that
 * no folder grows large. Bytes arrive under `incoming/`, are synced there, and are renamed into
 * their place. A variant lies beside its original.
 */
import { randomBytes } from 'node:crypto';
import { type FileHandle, mkdir, open, readFile, rename, stat, unlink } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { asCaller, currentCaller } from '../../queued-caller.ts';
import { unlessMissing } from '../../thrown.ts';
import { freeBuffer } from '../receive/free-buffer.ts';
import { entriesOf, filePlace, INCOMING, orUnavailable, syncFolder } from './local-places.ts';
import { sweepFolder } from './local-sweep.ts';
import {
  type ByteRange,
  type Incoming,
  idOfKey,
  MARK,
  type Storage,
  type StorageKey,
  type Sweep,
  storeBytes,
} from './storage.ts';
import { StoringTurns } from './storing-turns.ts';

/** Bytes that are collected before a write. An upload has at most three such buffers in memory. */
const WRITE_BYTES = 512 * 1024;
/** Bytes of a read. A download has two such buffers. */
const READ_AHEAD = 256 * 1024;

/** Writes at a time. They leave one of libuv's four threads to passwords and downloads where the disk is slow. */
const WRITES_AT_ONCE = 3;

/** Throws StorageUnavailable for errors of the system. */
export class LocalStorage implements Storage {
  readonly #root: string;
  readonly #turns = new StoringTurns(WRITES_AT_ONCE);

  constructor(root: string) {
    this.#root = root;
  }

  incoming(key: StorageKey): Promise<Incoming> {
    return orUnavailable(this.#incoming(key));
  }

  open(key: StorageKey, range?: ByteRange): Promise<AsyncIterable<Buffer> | undefined> {
    return orUnavailable(openRange(filePlace(this.#root, key), range));
  }

  async size(key: StorageKey): Promise<number | undefined> {
    return (await orUnavailable(unlessMissing(stat(filePlace(this.#root, key)))))?.size;
  }

  async sizes(id: string): Promise<ReadonlyMap<StorageKey, number>> {
    const places = await orUnavailable(this.#placesOf(id));
    const sizes = places.map(
      async (place) => [basename(place), (await unlessMissing(stat(place)))?.size ?? 0] as const,
    );
    return new Map(await orUnavailable(Promise.all(sizes)));
  }

  async remove(id: string): Promise<void> {
    await Promise.all((await this.#placesOf(id)).map((place) => unlessMissing(unlink(place))));
  }

  async redirect(): Promise<undefined> {
    return undefined;
  }

  sweep(order: Sweep): Promise<number> {
    return sweepFolder(this.#root, order);
  }

  mark(): Promise<string | undefined> {
    return orUnavailable(unlessMissing(readFile(join(this.#root, MARK), 'utf8')));
  }

  async setMark(mark: string): Promise<void> {
    await storeBytes(await this.#incoming(MARK, join(this.#root, MARK)), Buffer.from(mark));
  }

  async #incoming(key: StorageKey, place = filePlace(this.#root, key)): Promise<LocalIncoming> {
    const folder = join(this.#root, INCOMING);
    await mkdir(folder, { recursive: true });
    const temporary = join(folder, `${key}.${randomBytes(6).toString('hex')}`);
    const file = await open(temporary, 'wx', 0o600);
    return new LocalIncoming(file, { root: this.#root, temporary, place }, this.#turns);
  }

  /** Lists the paths of a file and its variants. */
  async #placesOf(id: string): Promise<readonly string[]> {
    const folder = dirname(filePlace(this.#root, id));
    const names = await entriesOf(folder);
    return names.filter((name) => idOfKey(name) === id).map((name) => join(folder, name));
  }
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
  readonly #turns: StoringTurns;
  readonly #caller = currentCaller();
  readonly #spare: Buffer[] = [];
  #filling: Buffer | undefined;
  #filled = 0;
  #writing: Promise<void> = Promise.resolve();
  #open = true;
  #published = false;

  constructor(file: FileHandle, places: Places, turns: StoringTurns) {
    this.#file = file;
    this.#places = places;
    this.#turns = turns;
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

  /** Resolves when the earlier batches are written; the next is collected while this one is written. */
  #flush(): Promise<void> {
    const before = this.#writing;
    const batch = this.#filling;
    if (batch === undefined) return before;
    const bytes = batch.subarray(0, this.#filled);
    this.#filling = undefined;
    this.#filled = 0;
    this.#writing = before.then(async () => {
      await orUnavailable(this.#inTurn(() => writeAll(this.#file, bytes)));
      this.#spare.push(batch);
    });
    // The next wait reports it; an unhandled rejection would end the process.
    this.#writing.catch(() => undefined);
    return before;
  }

  publish(): Promise<void> {
    return orUnavailable(this.#publish());
  }

  async #publish(): Promise<void> {
    this.#flush();
    await this.#writing;
    await this.#inTurn(() => this.#settle());
  }

  #inTurn(work: () => Promise<void>): Promise<void> {
    return asCaller(this.#caller, () => this.#turns.run(work));
  }

  async #settle(): Promise<void> {
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

async function openRange(place: string, range: ByteRange | undefined): Promise<AsyncIterable<Buffer> | undefined> {
  const file = await unlessMissing(open(place));
  return file && chunksInRange(file, range);
}

/** Reads into one buffer while the caller uses the other. */
async function* chunksInRange(file: FileHandle, { start: at, end }: ByteRange = WHOLE_FILE): AsyncIterable<Buffer> {
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
