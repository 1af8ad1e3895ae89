/** A row reader takes answers of PostgreSQL in chunks of any size. */
import { describe, expect, it, vi } from 'vitest';
import { RowReader } from '../../../src/database/lanes/row-reader.ts';

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

/** Returns the messages in their order; neighbours that are not rows are one text. */
function readIn(parts: readonly Buffer[]): readonly unknown[] {
  const found: unknown[] = [];
  const reader = new RowReader(
    (bytes) => {
      const before = typeof found.at(-1) === 'string' ? found.pop() : '';
      found.push(`${before}${bytes.toString('latin1')}`);
    },
    (cells) => found.push(cells),
  );
  for (const part of parts) reader.read(part);
  return found;
}

const EXPECTED = [
  BOUND.toString('latin1'),
  CELLS[0],
  CELLS[1],
  Buffer.concat([DONE, READY, BOUND]).toString('latin1'),
  CELLS[2],
  CELLS[3],
  Buffer.concat([DONE, READY]).toString('latin1'),
];

describe('an answer', () => {
  it('a row reader reads an answer as a whole', () => expect(readIn([ANSWER])).toEqual(EXPECTED));

  it('a row reader reads an answer byte by byte', () => {
    expect(readIn([...ANSWER].map((byte) => Buffer.from([byte])))).toEqual(EXPECTED);
  });

  it('a row reader reads an answer in two chunks, cut at any byte', () => {
    for (let at = 0; at <= ANSWER.length; at++) {
      const found = readIn([ANSWER.subarray(0, at), ANSWER.subarray(at)]);
      expect(found, `cut at ${at}`).toEqual(EXPECTED);
    }
  });

  it('a row reader gives the driver whole messages only', () => {
    const given: string[] = [];
    const reader = new RowReader(
      (bytes) => given.push(bytes.toString('latin1')),
      () => undefined,
    );
    for (const byte of Buffer.concat([BOUND, DONE, READY])) reader.read(Buffer.from([byte]));
    expect(given).toEqual([BOUND, DONE, READY].map((bytes) => bytes.toString('latin1')));
  });

  it('a row reader keeps the chunks of a long row until it is complete', () => {
    const long = row('y'.repeat(3_000_000));
    const parts = Array.from({ length: Math.ceil(long.length / 1_000) }, (_, i) =>
      long.subarray(i * 1_000, (i + 1) * 1_000),
    );
    const concat = vi.spyOn(Buffer, 'concat');
    expect(readIn(parts)).toEqual([['y'.repeat(3_000_000)]]);
    const copied = concat.mock.results.reduce((sum, { value }) => sum + (value as Buffer).length, 0);
    concat.mockRestore();
    // Joined anew with each part, it would be 4.5 GB.
    expect(copied).toBeGreaterThanOrEqual(long.length);
    expect(copied).toBeLessThan(2 * long.length);
  });
});
