/** Reads the cells of rows in place of the driver, which decodes each cell by a separate call. */
import type { Cells } from '../contract.ts';

/** For longer cells, a decoding call costs less than a look at all bytes. */
const SHORT_CELL = 256;
/** A substring keeps the whole string in memory, so only small rows are cut into cells. */
const SMALL_ROW = 4_096;
/** The high bits of four bytes: set in multi-byte UTF-8. */
const NOT_ASCII = 0x80808080;

/** The text of each cell of a DataRow; -1 bytes are NULL. */
export function cellsOf(bytes: Buffer, from: number, end: number): Cells {
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
