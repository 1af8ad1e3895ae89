/** multipart/form-data as a stream of parts (RFC 7578). formidable finds the boundaries; what it finds is held to limits here. */
import type { IncomingMessage } from 'node:http';
import { MultipartParser } from 'formidable';
import { Problem } from '../problem.ts';

const MAX_HEADERS = 8 * 1024;
const CUT = 'the body ended in the middle';

interface Event {
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

/**
 * formidable's parser looks at every byte of a part in JavaScript. Whatever cannot hold a boundary goes around it: the boundary is searched for natively,
 * and the parser gets the bytes from where one begins, or may begin.
 */
class Parser extends MultipartParser {
  declare readonly lookbehind: Buffer;
  declare readonly boundary: Buffer;
  declare readonly state: number;
  declare readonly index: number | null;

  /** The parser's buffer for what looked like a boundary is used again, and an event may be read later than that. */
  override push(event: Event | null): boolean {
    return super.push(event?.buffer === this.lookbehind ? { ...event, buffer: Buffer.from(event.buffer) } : event);
  }

  override _transform(chunk: Buffer, encoding: BufferEncoding, done: () => void): number {
    if (this.state !== IN_DATA || this.index !== 0) return super._transform(chunk, encoding, done);
    const end = this.#plainLength(chunk);
    if (end > 0) this.push({ name: 'partData', buffer: chunk, start: 0, end });
    if (end < chunk.length) return super._transform(chunk.subarray(end), encoding, done);
    done();
    return chunk.length;
  }

  /** Up to the boundary, or to what may be the beginning of one that the next chunk goes on with. */
  #plainLength(chunk: Buffer): number {
    const found = chunk.indexOf(this.boundary);
    if (found !== -1) return found;
    const tail = Math.max(0, chunk.length - this.boundary.length);
    const maybe = chunk.indexOf(CR, tail);
    return maybe === -1 ? chunk.length : maybe;
  }
}
const CR = 13;

export interface Part {
  /** Of the form field. */
  readonly name: string;
  readonly filename: string | undefined;
  readonly contentType: string | undefined;
}
export interface PartHandler {
  /** Throws what must end the upload. */
  begin(part: Part): Promise<void>;
  data(chunk: Buffer): Promise<void>;
  end(): Promise<void>;
}

/** Throws `unsupported_media_type`. */
export function boundaryOf(contentType: string): string {
  const [type = '', ...parameters] = contentType.split(';');
  if (type.trim().toLowerCase() !== 'multipart/form-data') {
    throw new Problem('unsupported_media_type', 'send the file as multipart/form-data, in a part named `file`');
  }
  const found = parameters
    .map((parameter) => /^\s*boundary=(?:"([^"]{1,70})"|([^\s"]{1,70}))\s*$/i.exec(parameter))
    .find((match) => match !== null);
  const boundary = found?.[1] ?? found?.[2];
  if (boundary === undefined) throw malformed('the Content-Type names no boundary');
  return boundary;
}

/** Hands over the parts in their order. The sender is slowed down to the pace of the handler. Throws `malformed_multipart`. */
export async function readMultipart(request: IncomingMessage, boundary: string, handler: PartHandler): Promise<void> {
  // Its end was told already, while its sender was looked up.
  if (request.destroyed && !request.readableEnded) throw malformed(CUT);
  const parser = new Parser();
  parser.initWithBoundary(boundary);
  // Not `complete`: a socket that fails after the last byte came takes with it what was not read yet.
  const cutOff = (): unknown => request.readableEnded || parser.destroy(malformed(CUT));
  request.once('error', cutOff).once('close', cutOff);
  request.pipe(parser);
  const headers = new PartHeaders();
  let ended = false;
  try {
    for await (const event of parser as AsyncIterable<Event>) {
      if (event.name === 'partData') await handler.data(event.buffer!.subarray(event.start, event.end));
      else if (event.name === 'headersEnd') await handler.begin(headers.finish());
      else if (event.name === 'partEnd') await handler.end();
      else if (event.name === 'end') ended = true;
      else headers.take(event);
    }
  } catch (error) {
    throw isOfParser(error) ? malformed('the parts of the body cannot be told apart, or the last is cut off') : error;
  } finally {
    request.unpipe(parser).off('error', cutOff).off('close', cutOff);
    parser.destroy();
  }
  if (!ended) throw malformed('the body ends before its last boundary');
}

const isOfParser = (error: unknown): boolean => error instanceof Error && 'httpCode' in error;

class PartHeaders {
  #headers = new Map<string, string>();
  #field: Buffer[] = [];
  #value: Buffer[] = [];
  #length = 0;

  take({ name, buffer, start, end }: Event): void {
    if (name === 'partBegin') this.#reset();
    if (name === 'headerEnd') this.#keep();
    if (buffer === undefined) return;
    const bytes = buffer.subarray(start, end);
    this.#length += bytes.length;
    if (this.#length > MAX_HEADERS) throw malformed('the headers of a part are too long');
    (name === 'headerField' ? this.#field : this.#value).push(bytes);
  }

  #reset(): void {
    this.#headers = new Map();
    this.#length = 0;
  }

  #keep(): void {
    const field = Buffer.concat(this.#field).toString('latin1').toLowerCase();
    if (this.#headers.has(field)) throw malformed(`a part has the header ${field} twice`);
    // Browsers send names in UTF-8 as they are (RFC 7578, 5.1.3).
    this.#headers.set(field, Buffer.concat(this.#value).toString('utf8').trim());
    this.#field = [];
    this.#value = [];
  }

  finish(): Part {
    const disposition = this.#headers.get('content-disposition') ?? '';
    const name = parameterOf(disposition, 'name');
    if (!/^form-data\s*;/i.test(disposition) || name === undefined)
      throw malformed('a part has no `Content-Disposition: form-data; name="…"`');
    return {
      name,
      filename: extendedFilename(disposition) ?? parameterOf(disposition, 'filename'),
      contentType: this.#headers.get('content-type'),
    };
  }
}

/** As browsers write it: `"`, CR and LF percent-encoded; others escape with a backslash. */
function parameterOf(header: string, name: string): string | undefined {
  const match = new RegExp(`;\\s*${name}=(?:"((?:\\\\.|[^"\\\\])*(?:\\\\[^"]*)*)"|([^\\s;"]+))`, 'i').exec(header);
  const value = match?.[1] ?? match?.[2];
  return value
    ?.replaceAll(/\\(["\\])/g, '$1')
    .replaceAll(/%22/g, '"')
    .replaceAll(/%0d|%0a/gi, ' ');
}

/** `filename*=UTF-8''…`: not allowed in forms, but sent by some clients. */
function extendedFilename(header: string): string | undefined {
  const encoded = /;\s*filename\*=UTF-8'[^']*'([^\s;]+)/i.exec(header)?.[1];
  if (encoded === undefined) return undefined;
  try {
    return decodeURIComponent(encoded);
  } catch {
    return undefined;
  }
}

export const malformed = (detail: string): Problem => new Problem('malformed_multipart', detail);
