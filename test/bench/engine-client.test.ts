import type { PGlite } from '@electric-sql/pglite';
import { beforeAll, beforeEach, expect, test, vi } from 'vitest';
import { EngineClient } from '../../bench/servers/engine-client.ts';
import { emptySnapshot, openEngine } from '../support/embedded/embedded.ts';

let engine: PGlite;
let ask: EngineClient['ask'];
beforeAll(async () => {
  engine = await openEngine({ loadDataDir: await emptySnapshot() });
  ask = new EngineClient(engine).ask;
});
beforeEach(async () => {
  await engine.exec('DROP TABLE IF EXISTS notes; CREATE TABLE notes (id int PRIMARY KEY, text text)');
});

const insert = (id: unknown, text: unknown = null) =>
  ask('insert', 'INSERT INTO notes VALUES ($1, $2) RETURNING id, text', [id, text]);
const ids = async () => (await ask('ids', 'SELECT id FROM notes ORDER BY id', [])).rows.map(([id]) => id);

test('cells are the text of the values', async () => {
  const { rows, count } = await ask(
    'cells',
    `SELECT $1::int, $2::text, $3::bool, $4::text, NULL, '', repeat('é', 100), timestamptz '2026-01-02 03:04:05.678+00' AT TIME ZONE 'UTC'`,
    [7, 'naïve “quotes” \\ 😀', true, null],
  );
  const cells = ['7', 'naïve “quotes” \\ 😀', 't', null, null, '', 'é'.repeat(100), '2026-01-02 03:04:05.678'];
  expect(rows).toEqual([cells]);
  expect(count).toBe(1);
});

test('each statement has its own rows and its count', async () => {
  // Prepared first, so that they are sent in the order of the calls.
  await Promise.all([ids(), insert(0)]);
  await engine.exec('DELETE FROM notes');
  const all = await Promise.all([insert(1, 'a'), insert(2, 'b'), ids(), insert(3)]);
  expect(all).toEqual([
    { rows: [['1', 'a']], count: 1 },
    { rows: [['2', 'b']], count: 1 },
    ['1', '2'],
    { rows: [['3', null]], count: 1 },
  ]);
  const changed = await ask('change', 'UPDATE notes SET text = $1 WHERE id < $2', ['c', 3]);
  expect(changed).toEqual({ rows: [], count: 2 });
  expect(await ask('delete', 'DELETE FROM notes WHERE id = $1', [9])).toEqual({ rows: [], count: 0 });
});

test('the statements of a turn go in one call of the engine', async () => {
  await insert(0);
  const calls = vi.spyOn(engine, 'execProtocolRawStream');
  try {
    await Promise.all(Array.from({ length: 20 }, (_, i) => insert(i + 1)));
    expect(calls).toHaveBeenCalledTimes(1);
  } finally {
    calls.mockRestore();
  }
  expect(await ids()).toHaveLength(21);
});

test('an error rejects the statement that caused it and undoes no other', async () => {
  await insert(2);
  const outcomes = await Promise.allSettled([insert(1), insert(2), insert('three'), insert(4)]);
  expect(outcomes.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'rejected', 'fulfilled']);
  await expect(insert(2)).rejects.toThrow('duplicate key');
  expect(await ids()).toEqual(['1', '2', '4']);
});

test('a statement that could not be prepared is prepared again', async () => {
  const select = () => ask('later', 'SELECT * FROM later', []);
  await expect(select()).rejects.toThrow('relation "later" does not exist');
  await engine.exec('CREATE TABLE later (id int)');
  expect(await select()).toEqual({ rows: [], count: 0 });
});

test('concurrent first calls of a statement prepare it', async () => {
  const same = () => ask('same', 'SELECT $1::text', ['x']);
  expect(await Promise.all([same(), same(), same()])).toEqual(Array(3).fill({ rows: [['x']], count: 1 }));
});
