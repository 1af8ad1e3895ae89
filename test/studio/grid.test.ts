/** The records of the grid as data: events, marks of changed members, and the export. */
import { expect, test } from 'vitest';

/** Their types are those of a page. */
const importPage = (name: string) => import(new URL(`../../src/studio/pages/data/${name}.ts`, import.meta.url).href);
const { afterEvent, changesOf, exportedLines } = await importPage('found-records');

test('a field may be called `changes`: marks of changed members are kept beside the records', () => {
  const before = { id: 1, changes: 'some', note: 'a', can: { update: true, delete: true } };
  const [after] = afterEvent([before], { kind: 'updated', collection: 'orders', record: { id: 1, note: 'b' } });
  expect([changesOf(before), changesOf(after)]).toEqual([undefined, { names: new Set(['note']), at: 1 }]);
  expect(after).toEqual({ ...before, note: 'b', expand: {} });
  expect(exportedLines([after])).toEqual(['{"id":1,"changes":"some","note":"b"}\n']);
  const [again] = afterEvent([after], { kind: 'updated', collection: 'orders', record: { id: 1, changes: 'more' } });
  expect(changesOf(again)).toEqual({ names: new Set(['changes']), at: 2 });
});
