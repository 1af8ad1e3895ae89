/** The text of a file: in UTF-8, in the encoding that its first bytes mark, or in another one by its name. */

/** The first bytes of a file in this encoding; they win over a given encoding. */
const BYTE_ORDER_MARKS: readonly (readonly [encoding: string, bytes: readonly number[]])[] = [
  ['utf-8', [0xef, 0xbb, 0xbf]],
  ['utf-16le', [0xff, 0xfe]],
  ['utf-16be', [0xfe, 0xff]],
];
const LINE_FEED = 0x0a;

/** Some bytes are not of the encoding of the file. */
export class UndecodableText extends Error {
  /** From 1. */
  readonly line: number;
  constructor(encoding: string, line: number) {
    const named = encoding.toUpperCase();
    super(`expected text in ${named}, found other bytes; \`--encoding\` names another encoding of the file`);
    this.name = 'UndecodableText';
    this.line = line;
  }
}

/** The names are those of the Encoding Standard of WHATWG. */
export function isEncoding(name: string): boolean {
  try {
    return new TextDecoder(name) !== undefined;
  } catch {
    return false;
  }
}

/**
 * Texts without the mark of their encoding. Throws UndecodableText.
 * @param encoding one that `isEncoding` knows
 */
export async function* decodedText(chunks: AsyncIterable<Uint8Array>, encoding = 'utf-8'): AsyncGenerator<string> {
  let decoder: LineDecoder | undefined;
  for await (const chunk of chunks) {
    decoder ??= new LineDecoder(
      BYTE_ORDER_MARKS.find(([, bytes]) => bytes.every((byte, i) => chunk[i] === byte))?.[0] ?? encoding,
    );
    yield decoder.push(chunk);
  }
  if (decoder !== undefined) yield decoder.end();
}

/** Decodes line by line, to know the line of an error. */
class LineDecoder {
  readonly #encoding: string;
  readonly #decoder: InstanceType<typeof TextDecoder>;
  /** Bytes of a line feed from the one that is 0x0A. */
  readonly #lineFeed: number;
  #line = 1;

  constructor(encoding: string) {
    this.#encoding = encoding;
    this.#lineFeed = encoding === 'utf-16le' ? 2 : 1;
    this.#decoder = new TextDecoder(encoding, { fatal: true });
  }

  push(chunk: Uint8Array): string {
    let text = '';
    for (let from = 0; from < chunk.length; ) {
      const at = chunk.indexOf(LINE_FEED, from);
      const end = at < 0 ? chunk.length : at + this.#lineFeed;
      text += this.#decode(chunk.subarray(from, end));
      from = end;
    }
    return text;
  }

  end(): string {
    return this.#decode();
  }

  #decode(bytes?: Uint8Array): string {
    let text: string;
    try {
      text = bytes === undefined ? this.#decoder.decode() : this.#decoder.decode(bytes, { stream: true });
    } catch {
      throw new UndecodableText(this.#encoding, this.#line);
    }
    // In UTF-16 the byte of a line feed may be a part of another character.
    if (text.includes('\n')) this.#line++;
    return text;
  }
}
