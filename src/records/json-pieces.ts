/**
 * JSON text in pieces, which are joined when they are written: records that refer to one record share its text, so an
 * answer takes the memory of the records that were read, not that of their copies.
 */
export type JsonText = string | JsonPieces;

export class JsonPieces {
  readonly #pieces: readonly JsonText[];
  /** UTF-16 code units. */
  readonly length: number;
  #bytes: number | undefined;

  constructor(pieces: readonly JsonText[]) {
    this.#pieces = pieces;
    let length = 0;
    for (const piece of pieces) length += piece.length;
    this.length = length;
  }

  /** Bytes of UTF-8; a shared text is measured once. */
  get bytes(): number {
    this.#bytes ??= this.#pieces.reduce((sum, piece) => sum + utf8BytesOf(piece), 0);
    return this.#bytes;
  }

  *strings(): Generator<string> {
    for (const piece of this.#pieces) {
      if (typeof piece === 'string') yield piece;
      else yield* piece.strings();
    }
  }

  /** The text of an object, with more members. */
  with(members: string): JsonPieces {
    return new JsonPieces([...this.#pieces.slice(0, -1), withMembers(this.#pieces.at(-1)!, members)]);
  }

  /** V8 copies texts that are added once, when the sum is read; `join` copies each of them before. */
  toString(): string {
    let text = '';
    for (const piece of this.#pieces) text += typeof piece === 'string' ? piece : piece.toString();
    return text;
  }

  toJSON(): string {
    return this.toString();
  }
}

export const stringsOf = (json: JsonText): Iterable<string> => (typeof json === 'string' ? [json] : json.strings());

export const utf8BytesOf = (json: JsonText): number =>
  typeof json === 'string' ? Buffer.byteLength(json) : json.bytes;

/** `json`: the text of an object that has members; `members`: the text of more, without braces. */
export const withMembers = (json: JsonText, members: string): JsonText =>
  typeof json === 'string' ? `${json.slice(0, -1)},${members}}` : json.with(members);

/** Characters of short texts that are one piece: V8 copies a piece once more to read it. */
const MOST_IN_PIECE = 65_536;

export const between = (before: string, json: JsonText, after: string): JsonText =>
  typeof json === 'string' ? `${before}${json}${after}` : new JsonPieces([before, json, after]);

/** A JSON array of the texts, between two other texts. */
export function arrayOf(texts: readonly JsonText[], before = '', after = ''): JsonText {
  const pieces: JsonText[] = [];
  let together = `${before}[`;
  for (const [i, text] of texts.entries()) {
    if (i > 0) together += ',';
    if (typeof text === 'string' && together.length < MOST_IN_PIECE) together += text;
    else {
      pieces.push(together, text);
      together = '';
    }
  }
  together += `]${after}`;
  return pieces.length === 0 ? together : new JsonPieces([...pieces, together]);
}
