/** Where bytes are kept. Two implementations: a local folder, and whatever speaks S3. Bytes never change under a key: other content is another key. */
/** A file's identifier, or one with the name of a variant behind a dot. */
export type Key = string;

/** Inclusive, as in a Range header. */
export interface ByteRange {
  readonly start: number;
  readonly end: number;
}

/** Bytes on their way in. Nobody can read them before `publish`. */
export interface Incoming {
  /** Takes the whole chunk; its bytes are the caller's again on return. A promise: the storage is slower than the sender, wait before the next. Throws, or rejects with, what failed before. */
  write(chunk: Buffer): Promise<void> | undefined;
  /** When it resolves, the bytes survive a crash, and can be read under the key. */
  publish(): Promise<void>;
  /** As if they had never come, published or not. Never throws: what is left over is an orphan, and swept. */
  discard(): Promise<void>;
}

export interface Storage {
  incoming(key: Key): Promise<Incoming>;
  /** Undefined: there are none. A chunk is good until the next is asked for: its memory is used again. To be iterated, once, or it stays open. */
  open(key: Key, range?: ByteRange): Promise<AsyncIterable<Buffer> | undefined>;
  /** Bytes under the key; undefined where there are none. */
  size(key: Key): Promise<number | undefined>;
  /** Bytes of a file and of each of its variants, by key. */
  sizes(id: string): Promise<ReadonlyMap<Key, number>>;
  /** With all variants. */
  remove(id: string): Promise<void>;
  /** An address where the client itself may get the bytes for a short while; undefined where they come through this service. */
  redirect(key: Key, headers: RedirectHeaders): Promise<string | undefined>;
  /** Removes what has no record. Returns how many were removed. */
  sweep(order: Sweep): Promise<number>;
}

interface RedirectHeaders {
  readonly contentType: string;
  readonly disposition: string;
}

export interface Sweep {
  /** Of these identifiers, those that have a record. */
  readonly alive: (ids: readonly string[]) => Promise<ReadonlySet<string>>;
  /** Younger bytes stay: their record may be on its way, in another process too. Milliseconds. */
  readonly grace: number;
}

/** Whatever keeps the bytes cannot be reached, or says that it cannot answer now. */
export class StorageUnavailable extends Error {
  constructor(cause: unknown) {
    super(`the storage of files cannot be reached: ${String(cause)}`, { cause });
    this.name = 'StorageUnavailable';
  }
}

/** The identifier that a key belongs to. */
export const idOfKey = (key: Key): string => key.split('.', 1)[0]!;
