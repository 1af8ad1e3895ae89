import { expect, test } from 'vitest';
import { type Answered, mustBeAlike } from '../../bench/support/race/alike.ts';

const page = (record: object): Answered => ({ status: 200, body: { data: [record], page: { has_more: false } } });

test.each<[name: string, one: Answered, other: Answered]>([
  ['members in another order', page({ id: 'a', score: 1 }), page({ score: 1, id: 'a' })],
  [
    'instants of microseconds and of milliseconds',
    page({ due_at: '2026-01-01T00:00:00.123456Z' }),
    page({ due_at: '2026-01-01T00:00:00.123Z' }),
  ],
  ['nothing', { status: 204, body: undefined }, { status: 204, body: undefined }],
])('answers are alike with %s', (_name, one, other) => {
  expect(() => mustBeAlike([one, other])).not.toThrow();
});

test.each<[name: string, one: Answered, other: Answered]>([
  ['a status', page({ id: 'a' }), { ...page({ id: 'a' }), status: 201 }],
  ['a value', page({ score: 1 }), page({ score: 2 })],
  ['the type of a value', page({ score: 1 }), page({ score: '1' })],
  ['null and no member', page({ score: null }), page({})],
  ['a millisecond', page({ due_at: '2026-01-01T00:00:00.123Z' }), page({ due_at: '2026-01-01T00:00:00.124Z' })],
  ['no body', page({ id: 'a' }), { status: 200, body: undefined }],
])('answers that differ in %s are an error', (_name, one, other) => {
  expect(() => mustBeAlike([one, one, other])).toThrow('the servers answer differently');
});

test('answers may differ in the named members only', () => {
  const [one, other] = [page({ id: 'a', title: 'x' }), page({ id: 'b', title: 'x' })];
  expect(() => mustBeAlike([one, other])).toThrow('the servers answer differently');
  expect(() => mustBeAlike([one, other], ['id'])).not.toThrow();
  expect(() => mustBeAlike([one, other], ['title'])).toThrow('the servers answer differently');
});
