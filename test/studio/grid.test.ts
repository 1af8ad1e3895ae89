/** The records of the grid as data: pages, events of the feed, marks of changed members, the focus, an edit, the export. */
import { expect, test } from 'vitest';

/** Their types are those of a page. */
const importPage = (name: string) => import(new URL(`../../src/studio/pages/data/${name}.ts`, import.meta.url).href);
const { afterEvent, askedFor, exportedLines, marksOf, NOTHING_FOUND, withFirstPage, withNextPage, withProblem } =
  await importPage('found-records');
const { followedEdit, placeAt, rowOfPlace, rowsWithEdit } = await importPage('grid-place');
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

const [one, two, three] = [{ id: 1 }, { id: 2, note: 'a' }, { id: 3 }];

test('the focus stays at its record, and in its row once the record has gone', () => {
  const place = placeAt([one, two, three], 1, 0);
  expect(place).toEqual({ id: 2, row: 1, column: 0 });
  expect([[one, two, three], [two, three], [one, three], [one], []].map((each) => rowOfPlace(place, each))).toEqual([
    1, 0, 1, 0, 0,
  ]);
  expect(placeAt([one, two], 9, -1)).toEqual({ id: 2, row: 1, column: 0 });
});

test('an edit follows its record, and keeps the row of a record that has gone', () => {
  const columns = [{ name: 'note' }];
  const edit = { record: two, row: 1, column: 'note' };
  expect(followedEdit(edit, [one, two], columns)).toBe(edit);
  const moved = followedEdit(edit, [{ id: 2, note: 'b' }, three], columns);
  expect(moved).toEqual({ record: { id: 2, note: 'b' }, row: 0, column: 'note' });
  expect(followedEdit(moved, [three], columns)).toBe(moved);
  expect(rowsWithEdit(moved, [three])).toEqual([{ id: 2, note: 'b' }, three]);
  expect(rowsWithEdit(edit, [])).toEqual([two]);
  const all = [one, two];
  expect([rowsWithEdit(edit, all), rowsWithEdit(undefined, all)]).toEqual([all, all]);
  expect(rowsWithEdit(edit, all)).toBe(all);
  expect(followedEdit(edit, all, [])).toBeUndefined();
});
