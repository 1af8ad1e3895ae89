/** Positions are short, and only for the feed that they were made for. */
import { expect, test } from 'vitest';
import type { Moment } from '../../src/changes/change-log.ts';
import { Positions } from '../../src/changes/position.ts';
import { Snapshot } from '../../src/changes/snapshot.ts';

const positions = new Positions(Buffer.from('a secret of tests'));
const LIFE = '00000001-0000-4000-8000-00000000abcd';
const digests = { caller: 'abcdefghijkl', rules: '0123456789abcdef' };
const AT = 1_795_839_558_803;
/** 200 transactions in flight, one of them for long. */
const busy = (last: number) =>
  new Snapshot(last, [2 ** 40, ...Array.from({ length: 199 }, (_, i) => last - 100 * (199 - i))]);
const moment = (text: string, at = AT) => ({ snapshot: Snapshot.of(text), at });
const markSince = (since: Moment, { life = LIFE, scope = 'notes' } = {}) =>
  positions.markOf({ life, since, ...digests }, scope);
const placeIn = (from: Moment, to: Moment, life = LIFE) =>
  positions.placesIn({ life, from, to }).at({ seq: 2 ** 52, nth: 3 });

test('a position resumes with what it was made of, and has 1 KiB at most', () => {
  const [from, to] = [busy(2 ** 50), busy(2 ** 50 + 60_000)].map((snapshot) => ({ snapshot, at: AT + 0.4 }));
  const mark = markSince(from!);
  const text = `${mark}${placeIn(from!, to!)}`;
  expect(text.length).toBeLessThanOrEqual(1024);
  const read = positions.read(text, 'notes')!;
  expect([read.from.text, read.to.text]).toEqual([from!.snapshot.text, to!.snapshot.text]);
  expect({ ...read, from: 0, to: 0 }).toEqual({
    ...digests,
    ...{ mark, life: LIFE, at: AT, seq: 2 ** 52, nth: 3, from: 0, to: 0 },
  });
});

test('a position is void for another feed, in another spelling, and with any other character', () => {
  const text = `${markSince(moment('5:9:5,7'))}${placeIn(moment('5:9:5,7'), moment('9:12:9'))}`;
  expect(positions.read(text, 'notes')).toMatchObject({ life: LIFE });
  const changed = Array.from(text, (each, i) => `${text.slice(0, i)}${each === 'A' ? 'B' : 'A'}${text.slice(i + 1)}`);
  const others = [...changed, `${text}=`, `${text} `, `${text}AA`, text.slice(0, -1), text.slice(0, 104), 'A', ''];
  expect(others.filter((each) => positions.read(each, 'notes') !== undefined)).toEqual([]);
  expect([positions.read(text, 'notes2'), new Positions(Buffer.from('others')).read(text, 'notes')]).toEqual([
    undefined,
    undefined,
  ]);
});

test('a place of another stream counts from the beginning of the own one on, in one life of the log', () => {
  const mark = markSince(moment('9:9:'));
  const isRead = (place: string) => positions.read(`${mark}${place}`, 'notes') !== undefined;
  const at = (from: Moment, life = LIFE) => isRead(placeIn(from, moment('20:20:'), life));
  expect({
    same: at(moment('9:9:')),
    later: at(moment('9:12:9,10', AT + 5)),
    'with fewer transactions': at(moment('5:8:5', AT + 5)),
    'of an earlier time': at(moment('9:9:', AT - 1)),
    'of another life': at(moment('9:9:'), LIFE.replace('abcd', 'abce')),
    'under another mark': isRead(markSince(moment('9:9:'))),
  }).toEqual({
    same: true,
    later: true,
    'with fewer transactions': false,
    'of an earlier time': false,
    'of another life': false,
    'under another mark': false,
  });
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
