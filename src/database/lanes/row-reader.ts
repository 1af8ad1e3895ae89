/**
 * Reads the rows of answers in place of the driver, which makes an object for each row and decodes each cell by a
 * separate call. Every other message goes on to the driver unchanged.
 */
import type { Cells } from '../contract.ts';

/** The head of a message: its type in one byte, and the length of all that follows that byte. */
const HEAD_BYTES = 5;
/** `D` of a DataRow. */
const ROW = 0x44;
/** For longer cells, a decoding call costs less than a look at all bytes. */
const SHORT_CELL = 256;
/** A substring keeps the whole string in memory, so only small rows are cut into cells. */
const SMALL_ROW = 4_096;
/** The high bits of four bytes: set in multi-byte UTF-8. */
const NOT_ASCII = 0x80808080;

export type TakeBytes = (bytes: Buffer) => void;
type TakeRow = (cells: Cells) => void;

export class RowReader {
  readonly #onOthers: TakeBytes;
  readonly #onRow: TakeRow;
  /** The beginning of a message, as received chunks. */
  #held: Buffer[] = [];
  /** Bytes until it can be read further. */
  #missing = 0;

  constructor(onOthers: TakeBytes, onRow: TakeRow) {
    this.#onOthers = onOthers;
    this.#onRow = onRow;
  }

  /** Delivers messages in their order, each when it is complete. */
  read(chunk: Buffer): void {
    if (chunk.length < this.#missing) {
      this.#held.push(chunk);
      this.#missing -= chunk.length;
      return;
    }
    const bytes = this.#held.length === 0 ? chunk : Buffer.concat([...this.#held, chunk]);
    const end = this.#readWhole(bytes);
    this.#held = end < bytes.length ? [bytes.subarray(end)] : [];
  }

  /** Returns where the last whole message ends. */
  #readWhole(bytes: Buffer): number {
    let at = 0;
    /** The start of the messages that the driver has not been given yet. */
    let others = 0;
    this.#missing = 0;
    while (at < bytes.length) {
      const end = messageEnd(bytes, at);
      if (end > bytes.length) {
        this.#missing = end - bytes.length;
        break;
      }
      if (bytes[at] === ROW) {
        if (others < at) this.#onOthers(bytes.subarray(others, at));
        others = end;
        this.#onRow(cellsOf(bytes, at + HEAD_BYTES, end));
      }
      at = end;
    }
    if (others < at) this.#onOthers(bytes.subarray(others, at));
    return at;
  }
}

/** The end of the message that begins there, or of its head if that is incomplete. */
const messageEnd = (bytes: Buffer, at: number): number =>
  bytes.length - at < HEAD_BYTES ? at + HEAD_BYTES : at + 1 + bytes.readUInt32BE(at + 1);

/** The text of each cell; -1 bytes are NULL. */
function cellsOf(bytes: Buffer, from: number, end: number): Cells {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  const count = view.getUint16(from);
  const cells: (string | null)[] = new Array(count);
  // Most cells are ASCII, for which Latin-1 equals UTF-8.
  const latin1 = end - from > SMALL_ROW ? undefined : bytes.toString('latin1', from, end);
  let at = from + 2;
  for (let i = 0; i < count; i++) {
    const start = at + 4;
    const length = view.getInt32(at);
    at = start + Math.max(0, length);
    if (length < 0) cells[i] = null;
    else if (latin1 !== undefined && length <= SHORT_CELL && isAscii(view, start, at))
      cells[i] = latin1.substring(start - from, at - from);
    else cells[i] = bytes.toString('utf8', start, at);
  }
  return cells;
}

function isAscii(view: DataView, from: number, end: number): boolean {
  let at = from;
  for (; at + 4 <= end; at += 4) if ((view.getInt32(at) & NOT_ASCII) !== 0) return false;
  for (; at < end; at++) if (view.getInt8(at) < 0) return false;
  return true;
}
