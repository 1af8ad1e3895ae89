/**
 * Passes an upload from the socket into storage; measures, hashes and sniffs it on the way, and
 * never holds it whole in memory.
 */
import { createHash } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { type ErrorDetail, Problem, pointerPart } from '../../problem.ts';
import type { Incoming } from '../storage/storage.ts';
import { safeName } from './file-names.ts';
import { contradiction, essenceOf, HEAD_LENGTH, isAllowedType } from './media-types.ts';
import { malformedMultipart, type Part, type PartHandler, readMultipart } from './multipart.ts';

/** Bytes of the part `data`. */
const MAX_DATA = 1024 * 1024;
/** Bytes that an announced length may have beyond the contents of the parts. */
const LENGTH_SLACK = 64 * 1024;

export interface UploadLimits {
  /** Bytes. */
  readonly maxSize: number;
  readonly types: readonly string[];
}
/** A received upload: all bytes are in storage, unpublished. */
export interface Received {
  readonly name: string;
  readonly contentType: string;
  readonly size: number;
  readonly sha256: string;
  /** The part `data`, as sent. */
  readonly data: Buffer | undefined;
}

/** Throws `too_large` if the announced length is too large already. */
export function checkLength(announced: string, { maxSize }: UploadLimits): void {
  if (/^\d+$/.test(announced) && Number(announced) > maxSize + MAX_DATA + LENGTH_SLACK) throw tooLarge(maxSize);
}

interface Reception {
  readonly boundary: string;
  readonly limits: UploadLimits;
  readonly incoming: Incoming;
}

/**
 * Throws `malformed_multipart`, `too_large`, `unsupported_media_type`, `validation_failed`. The
 * caller discards `incoming`, also after an error.
 */
export async function receive(request: IncomingMessage, { boundary, limits, incoming }: Reception): Promise<Received> {
  const receiver = new Receiver(incoming, limits);
  await readMultipart(request, boundary, receiver);
  return receiver.received();
}

class Receiver implements PartHandler {
  readonly #incoming: Incoming;
  readonly #limits: UploadLimits;
  readonly #hash = createHash('sha256');
  #current: 'file' | 'data' | undefined;
  #name: string | undefined;
  #contentType = '';
  #size = 0;
  #head: Buffer = Buffer.alloc(0);
  #checked = false;
  #data: Buffer[] | undefined;
  #dataLength = 0;

  constructor(incoming: Incoming, limits: UploadLimits) {
    this.#incoming = incoming;
    this.#limits = limits;
  }

  begin({ name, filename, contentType }: Part): void {
    if (name !== 'file' && name !== 'data')
      throw invalidPart(name, 'unknown_part', 'unknown part; the form has `file` and, optionally, `data`');
    if ((name === 'file' ? this.#name : this.#data) !== undefined)
      throw malformedMultipart(`the part \`${name}\` is sent twice`);
    this.#current = name;
    if (name === 'data') {
      this.#data = [];
      return;
    }
    this.#name = safeName(filename ?? '');
    const essence = essenceOf(contentType);
    if (essence === undefined)
      throw invalidPart(
        'file',
        'invalid_media_type',
        `\`${contentType}\` is not a media type; expected one such as \`image/png\``,
      );
    this.#contentType = essence;
    const { types } = this.#limits;
    if (!isAllowedType(essence, types)) {
      throw new Problem(
        'unsupported_media_type',
        `files of the type ${essence} are not accepted; expected ${types.join(', ')}`,
      );
    }
  }

  data(chunk: Buffer): Promise<void> | undefined {
    if (this.#current === 'data') return this.#takeData(chunk);
    this.#size += chunk.length;
    if (this.#size > this.#limits.maxSize) throw tooLarge(this.#limits.maxSize);
    if (!this.#checked) this.#look(chunk);
    this.#hash.update(chunk);
    return this.#incoming.write(chunk);
  }

  end(): void {
    if (this.#current === 'file' && !this.#checked) this.#check();
    this.#current = undefined;
  }

  #takeData(chunk: Buffer): undefined {
    this.#dataLength += chunk.length;
    if (this.#dataLength > MAX_DATA)
      throw new Problem('too_large', `the part \`data\` may have at most ${MAX_DATA} bytes`);
    this.#data?.push(Buffer.from(chunk));
  }

  #look(chunk: Buffer): void {
    this.#head = Buffer.concat([this.#head, chunk.subarray(0, HEAD_LENGTH - this.#head.length)]);
    if (this.#head.length >= HEAD_LENGTH) this.#check();
  }

  #check(): void {
    this.#checked = true;
    const detail = contradiction(this.#contentType, this.#head);
    if (detail !== undefined) throw invalidPart('file', 'content_type_mismatch', detail);
  }

  received(): Received {
    if (this.#name === undefined) throw invalidPart('file', 'required', 'the form needs the part `file`');
    return {
      name: this.#name,
      contentType: this.#contentType,
      size: this.#size,
      sha256: this.#hash.digest('hex'),
      data: this.#data && Buffer.concat(this.#data),
    };
  }
}

function tooLarge(maxSize: number): Problem {
  return new Problem('too_large', `a file may have at most ${maxSize} bytes`);
}

function invalidPart(part: string, code: string, detail: string): Problem {
  const error: ErrorDetail = { pointer: `/${pointerPart(part)}`, code, detail };
  return new Problem('validation_failed', detail, { errors: [error] });
}
