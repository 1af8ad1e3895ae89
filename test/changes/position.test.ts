/** Positions are short, and only for the feed that they were made for. */
import { expect, test } from 'vitest';
import { Positions } from '../../src/changes/position.ts';
import { Snapshot } from '../../src/changes/snapshot.ts';

const positions = new Positions(Buffer.from('a secret of tests'));
const part = { life: '00000001-0000-4000-8000-000000000000', at: 1_795_839_558_803, seq: 2 ** 52, nth: 3 };
const digests = { caller: 'abcdefghijkl', rules: '0123456789abcdef' };
/** 200 transactions in flight, one of them for long. */
const busy = (last: number) =>
  new Snapshot(last, [2 ** 40, ...Array.from({ length: 199 }, (_, i) => last - 100 * (199 - i))]);

test('a position resumes with what it was made of, and has 1 KiB at most', () => {
  const [from, to] = [busy(2 ** 50), busy(2 ** 50 + 60_000)];
  const text = positions.write({ ...part, ...digests, from, to }, 'notes');
  expect(text.length).toBeLessThanOrEqual(1024);
  const read = positions.read(text, 'notes')!;
  expect([read.from.text, read.to.text]).toEqual([from.text, to.text]);
  expect({ ...read, from: 0, to: 0 }).toEqual({ ...part, ...digests, from: 0, to: 0 });
  expect([positions.read(text, 'others'), positions.read(`${text.slice(0, -4)}AAAA`, 'notes')]).toEqual([
    undefined,
    undefined,
  ]);
});

test('a snapshot covers those that see no other transaction', () => {
  const early = Snapshot.of('5:9:5,7');
  const covers = (text: string) => Snapshot.of(text).covers(early);
  expect(['5:9:5,7', '5:12:5,10', '12:12:', '5:9:5,6,7', '5:8:5,7', '6:12:8'].map(covers)).toEqual([
    true,
    true,
    true,
    false,
    false,
    false,
  ]);
});
