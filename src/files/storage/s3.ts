/**
 * Stores bytes in a bucket of a server that speaks S3: `<prefix><key>`. An object appears when its
 * last part is acknowledged, which publishes it. Until then the server keeps the parts, and the
 * sweep aborts unfinished uploads. Imported only when a bucket is used: its packages are optional,
 * and slow to load.
 */
import { once } from 'node:events';
import { PassThrough, type Readable } from 'node:stream';
import {
  AbortMultipartUploadCommand,
  CopyObjectCommand,
  DeleteObjectsCommand,
  GetObjectCommand,
  HeadObjectCommand,
  ListMultipartUploadsCommand,
  type ListMultipartUploadsCommandInput,
  type ListMultipartUploadsCommandOutput,
  type MultipartUpload,
  PutObjectCommand,
  paginateListObjectsV2,
  S3Client,
} from '@aws-sdk/client-s3';
import { Upload } from '@aws-sdk/lib-storage';
import { getSignedUrl } from '@aws-sdk/s3-request-presigner';
import { asCaller, currentCaller } from '../../queued-caller.ts';
import { codeOf } from '../../thrown.ts';
import type { S3Place } from './s3-place.ts';
import {
  aliveOf,
  type ByteRange,
  type Incoming,
  idOfKey,
  MARK,
  type RedirectHeaders,
  type Storage,
  type StorageKey,
  StorageUnavailable,
  type Sweep,
  TRASH_MS,
} from './storage.ts';
import { StoringTurns } from './storing-turns.ts';

/** An upload takes `ROOM`, the parts that are sent, and the next part of memory. */
const PART = 8 * 1024 * 1024;
const PARTS_AT_ONCE = 3;
const ROOM = 1024 * 1024;
/** Parts and whole files of all uploads that are sent at a time. */
const SENT_AT_ONCE = 16;
/** Seconds for which a redirect is valid. */
const REDIRECT_LIFETIME = 60;

function s3ClientOf({ region, endpoint }: Pick<S3Place, 'region' | 'endpoint'>): S3Client {
  const client = new S3Client({
    region,
    maxAttempts: 4,
    // A download holds a socket for as long as its client takes: with the default of 50, 50 slow
    // clients would stop everything else.
    requestHandler: { connectionTimeout: 5_000, httpAgent: { maxSockets: 1_000 }, httpsAgent: { maxSockets: 1_000 } },
    ...(endpoint !== undefined && { endpoint, forcePathStyle: true }),
  });
  client.middlewareStack.add(
    (next) => (args) =>
      next(args).catch((error: unknown) => {
        throw isUnreachable(error) ? new StorageUnavailable(error) : error;
      }),
    { step: 'initialize', name: 'storageUnavailable' },
  );
  return client;
}

const STORES = /^(?:UploadPart|CompleteMultipartUpload|PutObject)Command$/;

/** Sends what stores bytes in the turns of its caller. */
function storeInTurns(client: S3Client, turns: StoringTurns): void {
  client.middlewareStack.add(
    (next, { commandName = '' }) =>
      (args) =>
        STORES.test(commandName) ? turns.run(() => next(args)) : next(args),
    { step: 'initialize', name: 'storingTurns' },
  );
}

/** True after all attempts: no connection, or an error of the server itself. */
function isUnreachable(error: unknown): boolean {
  const name = error instanceof Error ? error.name : undefined;
  const status = httpStatus(error);
  if (status === undefined) return typeof codeOf(error) === 'string' || name === 'TimeoutError';
  return status >= 500 && status !== NOT_IMPLEMENTED;
}

const NOT_IMPLEMENTED = 501;
const httpStatus = (error: unknown): number | undefined =>
  (error as { $metadata?: { httpStatusCode?: number } }).$metadata?.httpStatusCode;

export class S3Storage implements Storage {
  readonly #place: S3Place;
  readonly #client: S3Client;

  constructor(place: S3Place, client: S3Client = s3ClientOf(place)) {
    this.#place = place;
    this.#client = client;
    storeInTurns(client, new StoringTurns(SENT_AT_ONCE));
  }

  async incoming(key: StorageKey): Promise<Incoming> {
    return new S3Incoming(this.#client, { target: this.#at(key), undo: () => this.#removeAll([key]) });
  }

  open(key: StorageKey, range?: ByteRange): Promise<Readable | undefined> {
    const Range = range && `bytes=${range.start}-${range.end}`;
    return unlessNoObject(async () => {
      const { Body } = await this.#client.send(new GetObjectCommand({ ...this.#at(key), Range }));
      return Body as Readable;
    });
  }

  size(key: StorageKey): Promise<number | undefined> {
    return unlessNoObject(async () => (await this.#client.send(new HeadObjectCommand(this.#at(key)))).ContentLength);
  }

  async sizes(id: string): Promise<ReadonlyMap<StorageKey, number>> {
    const sizes = new Map<StorageKey, number>();
    for await (const page of this.#objectsOf(id)) for (const { key, size } of page) sizes.set(key, size);
    return sizes;
  }

  async remove(id: string): Promise<void> {
    for await (const page of this.#objectsOf(id)) await this.#removeAll(page.map(({ key }) => key));
  }

  async redirect(key: StorageKey, { contentType, disposition }: RedirectHeaders): Promise<string | undefined> {
    if (!this.#place.redirects) return undefined;
    const command = new GetObjectCommand({
      ...this.#at(key),
      ResponseContentType: contentType,
      ResponseContentDisposition: disposition,
      ResponseCacheControl: 'private, no-store',
    });
    return getSignedUrl(this.#client, command, { expiresIn: REDIRECT_LIFETIME });
  }

  async sweep(sweep: Sweep): Promise<number> {
    await this.#tendTrash(sweep);
    return (await this.#removeOrphans(sweep)) + (await this.#abortUploads(sweep));
  }

  mark(): Promise<string | undefined> {
    return unlessNoObject(async () => {
      const { Body } = await this.#client.send(new GetObjectCommand(this.#at(MARK)));
      return Body?.transformToString();
    });
  }

  async setMark(mark: string): Promise<void> {
    await this.#client.send(new PutObjectCommand({ ...this.#at(MARK), Body: mark }));
  }

  async #tendTrash(sweep: Sweep): Promise<void> {
    for await (const page of this.#keysUnder(TRASH_PREFIX)) {
      const files = page.map(({ key, modified }) => ({ key: key.slice(TRASH_PREFIX.length), modified }));
      const living = await aliveOf(files, sweep);
      const back = files.filter(({ key }) => living.has(idOfKey(key)));
      for (const { key } of back) await this.#copy(`${TRASH_PREFIX}${key}`, key);
      const over = files.filter(({ modified }) => Date.now() - modified.getTime() >= TRASH_MS);
      await this.#removeAll([...new Set([...back, ...over])].map(({ key }) => `${TRASH_PREFIX}${key}`));
    }
  }

  async #copy(from: StorageKey, to: StorageKey): Promise<void> {
    const { bucket, prefix } = this.#place;
    const CopySource = `${bucket}/${`${prefix}${from}`.split('/').map(encodeURIComponent).join('/')}`;
    // Another node's sweep may have moved it.
    await unlessNoObject(() => this.#client.send(new CopyObjectCommand({ ...this.#at(to), CopySource })));
  }

  async #removeOrphans(sweep: Sweep): Promise<number> {
    const isOld = (time: Date): boolean => Date.now() - time.getTime() >= sweep.grace;
    let removed = 0;
    for await (const all of this.#keysUnder('')) {
      const page = all.filter(({ key }) => key !== MARK && !key.startsWith(TRASH_PREFIX));
      // INVARIANT: the records are read after the objects were listed.
      const living = await aliveOf(page, sweep);
      const orphans = page
        .filter(({ key, modified }) => !living.has(idOfKey(key)) && isOld(modified))
        .map(({ key }) => key);
      for (const key of orphans) await this.#copy(key, `${TRASH_PREFIX}${key}`);
      await this.#removeAll(orphans);
      removed += orphans.length;
    }
    return removed;
  }

  async #abortUploads({ grace }: Sweep): Promise<number> {
    let aborted = 0;
    for await (const { Key: key, UploadId, Initiated } of unfinishedUploads(this.#client, this.#place)) {
      // An upload may take long: the parts of an unfinished one are kept for a day.
      if (Initiated === undefined || Date.now() - Initiated.getTime() < (grace === 0 ? 0 : DAY_MS)) continue;
      const abort = new AbortMultipartUploadCommand({ Bucket: this.#place.bucket, Key: key, UploadId });
      // The upload may have ended since it was listed.
      await unlessNoObject(() => this.#client.send(abort));
      aborted++;
    }
    return aborted;
  }

  #at(key: StorageKey): ObjectTarget['target'] {
    return { Bucket: this.#place.bucket, Key: `${this.#place.prefix}${key}` };
  }

  async *#keysUnder(start: string): AsyncIterable<readonly StoredObject[]> {
    const { bucket, prefix } = this.#place;
    const pages = paginateListObjectsV2({ client: this.#client }, { Bucket: bucket, Prefix: `${prefix}${start}` });
    for await (const page of pages) {
      yield (page.Contents ?? []).map(({ Key: key, LastModified, Size }) => ({
        key: key!.slice(prefix.length),
        modified: LastModified!,
        size: Size ?? 0,
      }));
    }
  }

  async *#objectsOf(id: string): AsyncIterable<readonly StoredObject[]> {
    for await (const page of this.#keysUnder(id)) yield page.filter(({ key }) => idOfKey(key) === id);
  }

  async #removeAll(keys: readonly StorageKey[]): Promise<void> {
    if (keys.length === 0) return;
    const { bucket, prefix } = this.#place;
    const Objects = keys.map((key) => ({ Key: `${prefix}${key}` }));
    const { Errors = [] } = await this.#client.send(
      new DeleteObjectsCommand({ Bucket: bucket, Delete: { Objects, Quiet: true } }),
    );
    const [first] = Errors;
    if (first !== undefined) throw new Error(`the bucket kept ${Errors.length} objects: ${first.Code}`);
  }
}
const DAY_MS = 86_400_000;
/** The trash has the same prefix as the files. */
const TRASH_PREFIX = 'trash/';

interface StoredObject {
  readonly key: StorageKey;
  readonly modified: Date;
  readonly size: number;
}

interface ObjectTarget {
  readonly target: { readonly Bucket: string; readonly Key: string };
  readonly undo: () => Promise<void>;
}

class S3Incoming implements Incoming {
  readonly #body = new PassThrough({ highWaterMark: ROOM });
  readonly #upload: Upload;
  readonly #caller = currentCaller();
  readonly #undo: () => Promise<void>;
  readonly #failing = new AbortController();
  #done: Promise<unknown> | undefined;
  /** The last part was sent: the object may exist even if the response is lost. */
  #ended = false;

  constructor(client: S3Client, { target, undo }: ObjectTarget) {
    this.#undo = undo;
    this.#upload = new Upload({
      client,
      params: { ...target, Body: this.#body },
      partSize: PART,
      queueSize: PARTS_AT_ONCE,
    });
    // `write` and `publish` report a failure; an unhandled event would end the process.
    this.#body.on('error', () => undefined);
  }

  write(chunk: Buffer): Promise<void> | undefined {
    this.#start();
    const { signal } = this.#failing;
    signal.throwIfAborted();
    if (this.#body.write(Buffer.from(chunk))) return undefined;
    const room = this.#room();
    // The next write reports a failure that no caller waits for.
    room.catch(() => undefined);
    return room;
  }

  async #room(): Promise<void> {
    const { signal } = this.#failing;
    // A failure ends the wait too.
    await once(this.#body, 'drain', { signal }).catch(() => undefined);
    signal.throwIfAborted();
  }

  #start(): Promise<unknown> {
    // Chunks arrive in events of a socket, which know no caller.
    this.#done ??= asCaller(this.#caller, () => this.#upload.done()).catch((error: unknown) => {
      this.#failing.abort(error);
      throw error;
    });
    this.#done.catch(() => undefined);
    return this.#done;
  }

  async publish(): Promise<void> {
    const done = this.#start();
    this.#ended = true;
    this.#body.end();
    await done;
  }

  async discard(): Promise<void> {
    if (this.#ended) return this.#undo().catch(() => undefined);
    await this.#upload.abort().catch(() => undefined);
    this.#body.destroy();
  }
}

/** Page by page: a page has at most a thousand. */
async function* unfinishedUploads(
  client: S3Client,
  { bucket, prefix }: Pick<S3Place, 'bucket' | 'prefix'>,
): AsyncIterable<MultipartUpload> {
  let from: Pick<ListMultipartUploadsCommandInput, 'KeyMarker' | 'UploadIdMarker'> | undefined = {};
  while (from !== undefined) {
    const page = await listUploads(client, { Bucket: bucket, Prefix: prefix, ...from });
    yield* page.Uploads ?? [];
    from =
      page.IsTruncated === true
        ? { KeyMarker: page.NextKeyMarker, UploadIdMarker: page.NextUploadIdMarker }
        : undefined;
  }
}

/** Some servers cannot list uploads; they delete parts by rules of their own. */
async function listUploads(
  client: S3Client,
  input: ListMultipartUploadsCommandInput,
): Promise<Partial<ListMultipartUploadsCommandOutput>> {
  try {
    return await client.send(new ListMultipartUploadsCommand(input));
  } catch (error) {
    if (httpStatus(error) === NOT_IMPLEMENTED) return {};
    throw error;
  }
}

async function unlessNoObject<T>(work: () => Promise<T>): Promise<T | undefined> {
  try {
    return await work();
  } catch (error) {
    if (httpStatus(error) === 404) return undefined;
    throw error;
  }
}
