/**
 * A storage of bytes, with two implementations: a local folder, and a server that speaks S3. The
 * bytes of a key never change: other content has another key.
 */

/** The id of a file; for a variant, followed by a dot and the variant's name. */
export type StorageKey = string;

/** Inclusive, as in a Range header. */
export interface ByteRange {
  readonly start: number;
  readonly end: number;
}

/** An upload into the storage. Its bytes are not readable before `publish`. */
export interface Incoming {
  /**
   * Copies the chunk; the caller may reuse the buffer immediately. If it returns a promise, the
   * storage is slower than the sender: wait for it before the next chunk. Throws, or rejects with,
   * an earlier failure.
   */
  write(chunk: Buffer): Promise<void> | undefined;
  /** Resolves when the bytes survive a crash and can be read under the key. */
  publish(): Promise<void>;
  /** Deletes the bytes, published or not. Never throws: the sweep deletes the rest. */
  discard(): Promise<void>;
}

/** Stores all bytes, or none. */
export async function storeBytes(incoming: Incoming, bytes: Buffer): Promise<void> {
  try {
    await incoming.write(bytes);
    await incoming.publish();
  } catch (error) {
    await incoming.discard();
    throw error;
  }
}

export interface Storage {
  incoming(key: StorageKey): Promise<Incoming>;
  /**
   * Undefined: no such bytes. A chunk is valid until the next is requested, which reuses its
   * memory. Iterate it exactly once, or the file stays open.
   */
  open(key: StorageKey, range?: ByteRange): Promise<AsyncIterable<Buffer> | undefined>;
  /** The number of bytes under the key; undefined if there are none. */
  size(key: StorageKey): Promise<number | undefined>;
  /** The number of bytes of a file and of each of its variants, by key. */
  sizes(id: string): Promise<ReadonlyMap<StorageKey, number>>;
  /** Deletes a file and its variants. */
  remove(id: string): Promise<void>;
  /**
   * Returns an address at which the client itself gets the bytes for a short time; undefined if they
   * come through this service.
   */
  redirect(key: StorageKey, headers: RedirectHeaders): Promise<string | undefined>;
  /**
   * Moves bytes without a record to the trash, and back if a record has come for them; deletes them
   * after a week there. Returns the number of keys that left their places.
   */
  sweep(order: Sweep): Promise<number>;
  /** The last argument of `setMark`, by any process: it names the database that these bytes belong to. */
  mark(): Promise<string | undefined>;
  setMark(mark: string): Promise<void>;
}

/** Milliseconds for which swept bytes can be restored. */
export const TRASH_MS = 7 * 86_400_000;

export interface RedirectHeaders {
  readonly contentType: string;
  readonly disposition: string;
}

export interface Sweep {
  /** Returns the ids that have a record. */
  readonly alive: (ids: readonly string[]) => Promise<ReadonlySet<string>>;
  /** Newer bytes stay: their record may be about to be created, also by another process. Milliseconds. */
  readonly grace: number;
}

/** The storage cannot be reached, or reports that it is unavailable. */
export class StorageUnavailable extends Error {
  constructor(cause: unknown) {
    super(`the storage of files cannot be reached: ${String(cause)}`, { cause });
    this.name = 'StorageUnavailable';
  }
}

/** The place of the mark, next to the files. */
export const MARK: StorageKey = 'mark';

/** Returns the ids of these keys that have a record. */
export const aliveOf = (
  files: readonly { readonly key: StorageKey }[],
  { alive }: Sweep,
): Promise<ReadonlySet<string>> => alive([...new Set(files.map(({ key }) => idOfKey(key)))]);

/** The id of the file that a key belongs to. */
export const idOfKey = (key: StorageKey): string => key.split('.', 1)[0]!;
