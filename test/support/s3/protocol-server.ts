/**
 * A bucket on loopback for tests: `@20minutes/s3rver`, and in front of it what that leaves out of the protocol, written here from the documentation of AWS
 * (ListMultipartUploads, AbortMultipartUpload, signatures). It remembers every request, and can answer badly or not at all where a test asks for it.
 */
import { mkdtempSync } from 'node:fs';
import { rm, unlink } from 'node:fs/promises';
import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
// @ts-expect-error: it comes without types
import S3rver from '@20minutes/s3rver';
import { GetObjectCommand, PutObjectCommand, paginateListObjectsV2, S3Client } from '@aws-sdk/client-s3';
import { isSigned } from './signature.ts';

/** The ones that s3rver knows. */
export const CREDENTIALS = { AWS_ACCESS_KEY_ID: 'S3RVER', AWS_SECRET_ACCESS_KEY: 'S3RVER' };
const BUCKET = 'files';

export interface Seen {
  /** As AWS calls it: `PutObject`, `UploadPart`… */
  readonly operation: string;
  readonly key: string;
}
export interface Upload {
  readonly key: string;
  readonly uploadId: string;
  readonly initiated: Date;
}

interface StoredObject {
  readonly content: Readable;
}

interface Store {
  getResourcePath(bucket: string, key: string | undefined, resource: string): string;
  putObject(object: StoredObject): Promise<unknown>;
  initiateUpload(bucket: string, key: string, uploadId: string, metadata: unknown): Promise<void>;
  putObjectMultipart(bucket: string, uploadId: string, parts: unknown): Promise<unknown>;
  deleteObject(bucket: string, key: string): Promise<void>;
}

interface Rver {
  readonly store: Store;
  readonly logger: { readonly exceptions: { unhandle(): void } };
  callback(): RequestListener;
}

export class ProtocolServer {
  readonly requests: Seen[] = [];
  /** Uploads that were neither completed nor aborted. */
  readonly uploads = new Map<string, Upload>();
  /** False: ListMultipartUploads is answered with 501, as s3rver does. */
  listsUploads = true;
  /** Uploads on one page of ListMultipartUploads. */
  pageSize = 1000;
  /** The treatment of a request: `hold` executes it and never answers, `lose` does neither, a number is a status without any work. */
  treat: (seen: Seen) => 'hold' | 'lose' | number | undefined = () => undefined;
  readonly #s3rver: Rver;
  readonly #handle: RequestListener;
  readonly #server = createServer((request, response) => this.#answer(request, response));
  #client: S3Client | undefined;

  static async start(): Promise<ProtocolServer> {
    const s3rver = new S3rver({
      silent: true,
      // Checked here, and rightly.
      allowMismatchedSignatures: true,
      directory: mkdtempSync(join(tmpdir(), 'bylaw-s3-')),
      configureBuckets: [{ name: BUCKET, configs: [] }],
    });
    await s3rver.configureBuckets();
    const made = new ProtocolServer(s3rver);
    await new Promise<void>((resolve) => made.#server.listen({ host: '127.0.0.1', port: 0 }, resolve));
    return made;
  }

  private constructor(s3rver: Rver) {
    this.#s3rver = s3rver;
    // It would hear of errors that are not its own.
    s3rver.logger.exceptions.unhandle();
    this.#handle = s3rver.callback();
    this.#watch(s3rver.store);
  }

  /**
   * Follows the uploads in parts. An object is stored once all its bytes have arrived: s3rver would keep a part of it,
   * without its metadata. A deleted object leaves its folder, because another object may be on its way into it.
   */
  #watch(store: Store): void {
    const put = store.putObject.bind(store);
    store.putObject = async (object) =>
      put({ ...object, content: Readable.from([Buffer.concat(await object.content.toArray())]) });
    const initiate = store.initiateUpload.bind(store);
    store.initiateUpload = async (bucket, key, uploadId, metadata) => {
      await initiate(bucket, key, uploadId, metadata);
      this.uploads.set(uploadId, { key, uploadId, initiated: new Date() });
    };
    const complete = store.putObjectMultipart.bind(store);
    store.putObjectMultipart = async (bucket, uploadId, parts) => {
      const done = await complete(bucket, uploadId, parts);
      this.uploads.delete(uploadId);
      return done;
    };
    store.deleteObject = async (bucket, key) => {
      for (const resource of ['object', 'object.md5', 'metadata.json'])
        await unlink(store.getResourcePath(bucket, key, resource)).catch(() => undefined);
    };
  }

  get endpoint(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** For `BYLAW_FILES`. */
  place(more = ''): string {
    return `s3://${BUCKET}/some/folder?endpoint=${encodeURIComponent(this.endpoint)}${more}`;
  }

  /** The keys of all files, without the trash and the mark of their database. */
  async keys(): Promise<readonly string[]> {
    return (await this.allKeys()).filter((key) => !key.includes('/trash/') && !key.endsWith('/mark'));
  }

  async allKeys(): Promise<readonly string[]> {
    const keys: string[] = [];
    for await (const page of paginateListObjectsV2({ client: this.#s3 }, { Bucket: BUCKET }))
      for (const { Key } of page.Contents ?? []) keys.push(Key!);
    return keys.toSorted();
  }

  async bytes(key: string): Promise<Buffer> {
    const { Body } = await this.#s3.send(new GetObjectCommand({ Bucket: BUCKET, Key: key }));
    return Buffer.from(await Body!.transformToByteArray());
  }

  async put(key: string, bytes: string): Promise<void> {
    await this.#s3.send(new PutObjectCommand({ Bucket: BUCKET, Key: key, Body: bytes }));
  }

  get #s3(): S3Client {
    this.#client ??= new S3Client({
      region: 'us-east-1',
      endpoint: this.endpoint,
      forcePathStyle: true,
      credentials: { accessKeyId: 'S3RVER', secretAccessKey: 'S3RVER' },
    });
    return this.#client;
  }

  async close(): Promise<void> {
    this.#client?.destroy();
    const closed = new Promise((resolve) => this.#server.close(resolve));
    this.#server.closeAllConnections();
    await closed;
  }

  #answer(request: IncomingMessage, response: ServerResponse): void {
    const { pathname, searchParams } = new URL(request.url!, 'http://s3');
    const key = decodeURIComponent(pathname.slice(`/${BUCKET}/`.length));
    const seen = { operation: operationOf(request.method!, key, searchParams), key };
    this.requests.push(seen);
    const treatment = isSigned(request, CREDENTIALS.AWS_SECRET_ACCESS_KEY) ? this.treat(seen) : 403;
    if (treatment === 'lose' || typeof treatment === 'number') {
      request.resume();
      if (typeof treatment === 'number') refuse(response, treatment);
      return;
    }
    if (treatment === 'hold') muffle(response);
    if (seen.operation === 'ListMultipartUploads' && this.listsUploads) this.#list(response, searchParams);
    else if (seen.operation === 'AbortMultipartUpload') void this.#abort(response, searchParams.get('uploadId')!);
    else void this.#handle(request, response);
  }

  /** https://docs.aws.amazon.com/AmazonS3/latest/API/API_ListMultipartUploads.html: in the order of the keys, what comes after the markers. */
  #list(response: ServerResponse, query: URLSearchParams): void {
    const [keyMarker, idMarker] = [query.get('key-marker') ?? '', query.get('upload-id-marker') ?? ''];
    const isAfter = ({ key, uploadId }: Upload): boolean =>
      key > keyMarker || (idMarker !== '' && key === keyMarker && uploadId > idMarker);
    const after = [...this.uploads.values()]
      .filter((upload) => upload.key.startsWith(query.get('prefix') ?? '') && isAfter(upload))
      .sort((a, b) => (`${a.key}\0${a.uploadId}` < `${b.key}\0${b.uploadId}` ? -1 : 1));
    const page = after.slice(0, this.pageSize);
    const last = page.length < after.length ? page.at(-1) : undefined;
    const next =
      last && `<NextKeyMarker>${last.key}</NextKeyMarker><NextUploadIdMarker>${last.uploadId}</NextUploadIdMarker>`;
    const uploads = page.map(
      ({ key, uploadId, initiated }) =>
        `<Upload><Key>${key}</Key><UploadId>${uploadId}</UploadId><StorageClass>STANDARD</StorageClass>` +
        `<Initiated>${initiated.toISOString()}</Initiated></Upload>`,
    );
    response
      .writeHead(200, { 'Content-Type': 'application/xml' })
      .end(
        `<?xml version="1.0" encoding="UTF-8"?>\n<ListMultipartUploadsResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">` +
          `<Bucket>${BUCKET}</Bucket><KeyMarker>${keyMarker}</KeyMarker><UploadIdMarker>${idMarker}</UploadIdMarker>${next ?? ''}` +
          `<MaxUploads>1000</MaxUploads><IsTruncated>${last !== undefined}</IsTruncated>${uploads.join('')}` +
          `</ListMultipartUploadsResult>`,
      );
  }

  /** https://docs.aws.amazon.com/AmazonS3/latest/API/API_AbortMultipartUpload.html */
  async #abort(response: ServerResponse, uploadId: string): Promise<void> {
    if (!this.uploads.delete(uploadId)) {
      refuse(response, 404, 'NoSuchUpload');
      return;
    }
    const { store } = this.#s3rver;
    const folder = join(store.getResourcePath(BUCKET, undefined, 'uploads'), uploadId);
    // A part may still arrive.
    await rm(folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 10 });
    response.writeHead(204).end();
  }
}

/** Everything sent from here on is dropped. */
function muffle(response: ServerResponse): void {
  response.write = () => true;
  response.end = () => response;
}

function refuse(response: ServerResponse, status: number, code = 'Refused'): void {
  response
    .writeHead(status, { 'Content-Type': 'application/xml' })
    .end(`<?xml version="1.0" encoding="UTF-8"?>\n<Error><Code>${code}</Code><Message>by the test</Message></Error>`);
}

function operationOf(method: string, key: string, query: URLSearchParams): string {
  const isPart = query.has('uploadId');
  if (key === '') {
    if (query.has('uploads')) return 'ListMultipartUploads';
    return method === 'POST' ? 'DeleteObjects' : 'ListObjectsV2';
  }
  switch (method) {
    case 'PUT':
      return isPart ? 'UploadPart' : 'PutObject';
    case 'POST':
      return isPart ? 'CompleteMultipartUpload' : 'CreateMultipartUpload';
    case 'DELETE':
      return isPart ? 'AbortMultipartUpload' : 'DeleteObject';
    case 'HEAD':
      return 'HeadObject';
    default:
      return 'GetObject';
  }
}
