/**
 * Reads multipart/form-data as a stream of parts (RFC 7578). formidable finds the boundaries; the
 * limits are enforced here.
 */
import type { IncomingMessage } from 'node:http';
import { MultipartParser } from 'formidable';
import { Problem } from '../../problem.ts';
import { freeBuffer } from './free-buffer.ts';
import { headerParameters } from './header-parameters.ts';

/** Bytes of all headers of a part together. */
const MAX_HEADERS = 8 * 1024;
/**
 * Bytes of one header: room for `filename` and `filename*` of 255 characters at 9 bytes each, and
 * little more.
 */
const MAX_HEADER = 4 * 1024;
/** RFC 2046, 5.1.1. */
const MAX_BOUNDARY = 70;

interface ParserEvent {
  readonly name:
    | 'partBegin'
    | 'headerField'
    | 'headerValue'
    | 'headerEnd'
    | 'headersEnd'
    | 'partData'
    | 'partEnd'
    | 'end';
  readonly buffer?: Buffer;
  readonly start?: number;
  readonly end?: number;
}

const IN_DATA = MultipartParser.STATES.PART_DATA;
const CR = 13;

/**
 * formidable's parser, fed directly: used as a stream, it would cost an object and a turn of the
 * event loop per event. It reads every byte of a part in JavaScript, so bytes that cannot hold a
 * boundary bypass it: a native search finds the boundary, and the parser gets the bytes from the
 * place where one begins, or may begin.
 */
class Parser extends MultipartParser {
  declare readonly boundary: Buffer;
  declare readonly state: number;
  declare readonly index: number | null;
  readonly #emit: (event: ParserEvent) => void;

  constructor(boundary: string, emit: (event: ParserEvent) => void) {
    super();
    this.initWithBoundary(boundary);
    this.#emit = emit;
  }

  override push(event: ParserEvent): boolean {
    this.#emit(event);
    return true;
  }

  /**
   * Emits all events of the chunk before it returns. Throws `malformed_multipart`, and what `emit`
   * throws.
   */
  feed(chunk: Buffer): void {
    const plain = this.state === IN_DATA && this.index === 0 ? this.#plainLength(chunk) : 0;
    if (plain > 0) this.#emit({ name: 'partData', buffer: chunk, start: 0, end: plain });
    if (plain < chunk.length) this._transform(chunk.subarray(plain), 'buffer', refuseRequest);
  }

  finish(): void {
    this._flush(refuseRequest);
  }

  /**
   * The number of bytes before the boundary, or before a possible start of one that the next chunk
   * continues.
   */
  #plainLength(chunk: Buffer): number {
    const found = chunk.indexOf(this.boundary);
    if (found !== -1) return found;
    const tail = Math.max(0, chunk.length - this.boundary.length);
    const maybe = chunk.indexOf(CR, tail);
    return maybe === -1 ? chunk.length : maybe;
  }
}

function refuseRequest(error?: unknown): void {
  if (error != null)
    throw malformedMultipart('the boundaries between the parts are malformed, or the last part is cut off');
}

export interface Part {
  /** The name of the form field. */
  readonly name: string;
  readonly filename: string | undefined;
  readonly contentType: string | undefined;
}
export interface PartHandler {
  /** An error thrown here, or by the other methods, ends the upload. */
  begin(part: Part): void;
  /** The buffer is reused after the call. If it returns a promise, no more data comes until that resolves. */
  data(chunk: Buffer): Promise<void> | undefined;
  end(): void;
  /** Default: `LEAST_PACE`. */
  readonly pace?: LeastPace;
}

/** Throws `unsupported_media_type`, and `malformed_multipart` without a boundary of 1 to 70 characters. */
export function boundaryOf(contentType: string): string {
  const [type = ''] = contentType.split(';', 1);
  if (type.trim().toLowerCase() !== 'multipart/form-data') {
    throw new Problem('unsupported_media_type', 'send the file as multipart/form-data, in a part named `file`');
  }
  const boundary = headerParameters(contentType).get('boundary') ?? '';
  if (boundary === '' || boundary.length > MAX_BOUNDARY || /[\s"]/.test(boundary)) {
    throw malformedMultipart(`the Content-Type needs a boundary of 1 to ${MAX_BOUNDARY} characters`);
  }
  return boundary;
}

/** The minimum rate of a body. */
interface LeastPace {
  /** Milliseconds. */
  readonly window: number;
  /** The bytes that must arrive in each window. */
  readonly bytes: number;
}

/** 4 KiB a second. */
const LEAST_PACE: LeastPace = { window: 30_000, bytes: 120 * 1024 };

/**
 * Passes the parts to the handler in order, and applies its backpressure to the sender. Throws
 * `malformed_multipart`, and `request_timeout` for a sender slower than the handler's pace.
 */
export async function readMultipart(request: IncomingMessage, boundary: string, handler: PartHandler): Promise<void> {
  const headers = new PartHeaders();
  let waits: Promise<void>[] = [];
  let ended = false;
  const parser = new Parser(boundary, (event) => {
    if (event.name === 'partData') {
      const wait = handler.data(event.buffer!.subarray(event.start, event.end));
      if (wait !== undefined) waits.push(wait);
    } else if (event.name === 'headersEnd') handler.begin(headers.finish());
    else if (event.name === 'partEnd') handler.end();
    else if (event.name === 'end') ended = true;
    else headers.take(event);
  });
  await readChunks(
    request,
    (chunk) => {
      waits = [];
      parser.feed(chunk);
      return waits.length === 0 ? undefined : Promise.all(waits);
    },
    handler.pace ?? LEAST_PACE,
  );
  parser.finish();
  if (!ended) throw malformedMultipart('the body ends before its last boundary');
}

/**
 * Uses listeners instead of iteration, so that a chunk costs a call and no promise; the sender
 * waits only if `take` returns one. Throws what `take` throws, and `malformed_multipart` if the
 * body is cut off.
 */
function readChunks(
  request: IncomingMessage,
  take: (chunk: Buffer) => Promise<unknown> | undefined,
  pace: LeastPace,
): Promise<void> {
  return new Promise((resolve, reject) => {
    let arrived = 0;
    let waited = false;
    const watch = setInterval(() => {
      // A window in which the sender waited for the storage does not count.
      if (arrived < pace.bytes && !waited && !request.isPaused()) fail(tooSlow(pace));
      arrived = 0;
      waited = request.isPaused();
    }, pace.window);
    const stop = (): void => {
      clearInterval(watch);
      request.off('data', onData).off('end', onEnd).off('error', onClose).off('close', onClose).pause();
    };
    const fail = (error: unknown): void => {
      stop();
      reject(error);
    };
    const onData = (chunk: Buffer): void => {
      try {
        arrived += chunk.length;
        const wait = take(chunk);
        freeBuffer(chunk);
        if (wait === undefined) return;
        waited = true;
        request.pause();
        wait.then(() => request.resume(), fail);
      } catch (error) {
        fail(error);
      }
    };
    const onEnd = (): void => {
      stop();
      resolve();
    };
    // Not `complete`: if the socket fails after the last byte arrived, the bytes that were not yet
    // read are lost.
    const onClose = (): void => fail(malformedMultipart('the body is cut off'));
    // A request without a body.
    if (request.readableEnded) return onEnd();
    // It ended before the listeners were added, while its caller was authenticated.
    if (request.destroyed) return onClose();
    request.on('data', onData).once('end', onEnd).once('error', onClose).once('close', onClose);
  });
}

function tooSlow({ window, bytes }: LeastPace): Problem {
  const rate = Math.round(bytes / 1024 / (window / 1_000));
  return new Problem('request_timeout', `the body arrives slower than ${rate} KiB a second`, {
    headers: { Connection: 'close' },
  });
}

class PartHeaders {
  #headers = new Map<string, string>();
  #field: Buffer[] = [];
  #value: Buffer[] = [];
  #length = 0;
  #headerLength = 0;

  take({ name, buffer, start, end }: ParserEvent): void {
    if (name === 'partBegin') this.#reset();
    if (name === 'headerEnd') this.#keep();
    if (buffer === undefined) return;
    // A copy: the rest of the header may come with the next chunk.
    const bytes = Buffer.from(buffer.subarray(start, end));
    this.#length += bytes.length;
    this.#headerLength += bytes.length;
    if (this.#length > MAX_HEADERS || this.#headerLength > MAX_HEADER) {
      throw malformedMultipart(`the headers of a part may hold ${MAX_HEADERS} bytes, and one of them ${MAX_HEADER}`);
    }
    (name === 'headerField' ? this.#field : this.#value).push(bytes);
  }

  #reset(): void {
    this.#headers = new Map();
    this.#length = 0;
  }

  #keep(): void {
    const field = Buffer.concat(this.#field).toString('latin1').toLowerCase();
    if (this.#headers.has(field)) throw malformedMultipart(`a part has the header ${field} twice`);
    // Browsers send names in UTF-8 as they are (RFC 7578, 5.1.3).
    this.#headers.set(field, Buffer.concat(this.#value).toString('utf8').trim());
    this.#field = [];
    this.#value = [];
    this.#headerLength = 0;
  }

  finish(): Part {
    const disposition = this.#headers.get('content-disposition') ?? '';
    const [type = ''] = disposition.split(';', 1);
    const parameters = headerParameters(disposition);
    const name = decodedByBrowser(parameters.get('name'));
    if (type.trim().toLowerCase() !== 'form-data' || name === undefined || name === '')
      throw malformedMultipart('a part has no `Content-Disposition: form-data; name="…"`');
    return {
      name,
      filename: extendedFilename(parameters.get('filename*')) ?? decodedByBrowser(parameters.get('filename')),
      contentType: this.#headers.get('content-type'),
    };
  }
}

/** Browsers percent-encode `"`, CR and LF in a name, and nothing else. */
const decodedByBrowser = (value: string | undefined): string | undefined =>
  value?.replaceAll('%22', '"').replaceAll(/%0d|%0a/gi, ' ');

/** `UTF-8''…` (RFC 8187): not allowed in forms, but sent by some clients. */
function extendedFilename(value: string | undefined): string | undefined {
  const [charset, , encoded] = value?.split("'", 3) ?? [];
  if (charset?.toUpperCase() !== 'UTF-8' || encoded === undefined || encoded === '') return undefined;
  try {
    return decodeURIComponent(encoded);
  } catch {
    return undefined;
  }
}

export const malformedMultipart = (detail: string): Problem => new Problem('malformed_multipart', detail);
