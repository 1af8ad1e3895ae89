/** The records of the grid as data: their pages, events of the feed, marks of changed members, and the export. */
import { expect, test } from 'vitest';

/** Their types are those of a page. */
const importPage = (name: string) => import(new URL(`../../src/studio/pages/data/${name}.ts`, import.meta.url).href);
const { afterEvent, askedFor, exportedLines, marksOf, NOTHING_FOUND, withFirstPage, withNextPage, withProblem } =
  await importPage('found-records');
const { newIdsAfter } = await importPage('record-events');

test('a field may be called `changes`: marks of changed members are kept beside the records', () => {
  const before = { id: 1, changes: 'some', note: 'a', can: { update: true, delete: true } };
  const [after] = afterEvent([before], { kind: 'updated', collection: 'orders', record: { id: 1, note: 'b' } });
  expect([marksOf(before), marksOf(after)]).toEqual([undefined, { names: new Set(['note']), at: 1 }]);
  expect(after).toEqual({ ...before, note: 'b', expand: {} });
  expect(exportedLines([after])).toEqual(['{"id":1,"changes":"some","note":"b"}\n']);
  const [again] = afterEvent([after], { kind: 'updated', collection: 'orders', record: { id: 1, changes: 'more' } });
  expect(marksOf(again)).toEqual({ names: new Set(['changes']), at: 2 });
});

const found = withFirstPage({ question: 'a', records: [{ id: 1, note: 'a' }, { id: 2 }], cursor: 'next' });
const problem = { text: 'no', fields: {}, others: [], status: 401, requestId: undefined };

test('a next page is added to the records as they are when it comes', () => {
  const asked = askedFor(found, 'next');
  const written = { kind: 'updated', collection: 'notes', record: { id: 1, note: 'b' } };
  const records = afterEvent(afterEvent(asked.records, written), { kind: 'deleted', collection: 'notes', id: '2' });
  const next = withNextPage({ ...asked, records }, { question: 'a', records: [{ id: 3 }], cursor: null });
  expect(next.records).toEqual([{ id: 1, note: 'b', expand: {} }, { id: 3 }]);
  expect(next).toMatchObject({ cursor: null, isLoading: false });
});

test('records stay beside the problem of their own question alone', () => {
  expect(withProblem(askedFor(found, 'next'), 'a', problem)).toEqual({ ...found, problem });
  expect(withProblem(askedFor(found, null), 'a', problem)).toEqual({ ...found, problem });
  const other = { ...NOTHING_FOUND, question: 'b', isLoading: false, problem };
  expect(withProblem(askedFor(found, null), 'b', problem)).toEqual(other);
  expect(askedFor(other, null)).toMatchObject({ isLoading: true, problem: undefined });
});

test('a record that enters a feed is new until it leaves, and a changed one is not', () => {
  const events = [
    { type: 'change', record: { id: 1 } },
    { type: 'enter', record: { id: 2 } },
    { type: 'enter', record: { id: 3 } },
    { type: 'leave', id: 2 },
    { type: 'leave', id: 4 },
  ];
  expect(events.reduce(newIdsAfter, new Set<string>())).toEqual(new Set(['3']));
});
