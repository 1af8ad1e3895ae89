/** A parser takes answers of PostgreSQL in chunks of any size. */
import { describe, expect, it } from 'vitest';
import { CellParser } from '../../src/database/pg-internals.ts';

const message = (kind: string, body: Buffer): Buffer => {
  const head = Buffer.alloc(5);
  head.write(kind, 'latin1');
  head.writeUInt32BE(body.length + 4, 1);
  return Buffer.concat([head, body]);
};

function row(...cells: readonly (string | null)[]): Buffer {
  const count = Buffer.alloc(2);
  count.writeUInt16BE(cells.length);
  const parts = cells.flatMap((cell) => {
    const length = Buffer.alloc(4);
    length.writeInt32BE(cell === null ? -1 : Buffer.byteLength(cell));
    return cell === null ? [length] : [length, Buffer.from(cell)];
  });
  return message('D', Buffer.concat([count, ...parts]));
}

const BOUND = message('2', Buffer.alloc(0));
const DONE = message('C', Buffer.from('SELECT 3\0'));
const READY = message('Z', Buffer.from('I'));
const WIDE = 'x'.repeat(5_000);
const CELLS = [
  ['1', null, '', 'plain'],
  ['é', 'aé€😀', '\u00ff', 'é'.repeat(100), 'a'.repeat(49), 'a'.repeat(48), `${'a'.repeat(47)}é`],
  [WIDE, 'short', 'kurz und schön', null],
  [],
];
const ANSWER = Buffer.concat([
  BOUND,
  row(...CELLS[0]!),
  row(...CELLS[1]!),
  DONE,
  READY,
  BOUND,
  row(...CELLS[2]!),
  row(),
  DONE,
  READY,
]);

/** The rows that arrived, and the names of the other messages, in their order. */
function readIn(parts: readonly Buffer[]): readonly unknown[] {
  const found: unknown[] = [];
  const parser = new CellParser();
  // A parser takes over the memory of its chunks.
  for (const part of parts)
    parser.parse(Buffer.from(part), (message) => {
      found.push('fields' in message ? message.fields : message.name);
    });
  return found;
}

const END = ['commandComplete', 'readyForQuery'];
const EXPECTED = ['bindComplete', CELLS[0], CELLS[1], ...END, 'bindComplete', CELLS[2], CELLS[3], ...END];

describe('an answer', () => {
  it('a parser reads an answer as a whole', () => expect(readIn([ANSWER])).toEqual(EXPECTED));

  it('a parser reads an answer byte by byte', () => {
    expect(readIn([...ANSWER].map((byte) => Buffer.from([byte])))).toEqual(EXPECTED);
  });

  it('a parser reads an answer in two chunks, cut at any byte', () => {
    for (let at = 0; at <= ANSWER.length; at++) {
      const found = readIn([ANSWER.subarray(0, at), ANSWER.subarray(at)]);
      expect(found, `cut at ${at}`).toEqual(EXPECTED);
    }
  });

  it('a parser reads a long row that arrives in parts', () => {
    const long = row('y'.repeat(3_000_000));
    const parts = Array.from({ length: Math.ceil(long.length / 1_000) }, (_, i) =>
      long.subarray(i * 1_000, (i + 1) * 1_000),
    );
    expect(readIn(parts)).toEqual([['y'.repeat(3_000_000)]]);
  });
});
