/** A transaction that gives way on the embedded database begins again: its writes, hooks and kept answer count once. */
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import type { Database } from '../../src/database/contract.ts';
import type { Row } from '../../src/policy/types.ts';
import { asCaller } from '../../src/queued-caller.ts';
import { KeptAnswers } from '../../src/records/idempotency.ts';
import type { Batch } from '../../src/records/write/batch.ts';
import { raw } from '../../src/sql.ts';
import { openEmbeddedDatabase } from '../support/embedded/embedded.ts';
import { type Caller, World } from '../support/store-world.ts';
import { insertRecord } from '../support/system-records.ts';

const SCHEMA = `
collections:
  users: { access: { view: true, delete: true } }
  files: { access: { view: true, delete: true } }
  notes:
    fields: { text: { type: string, required: true } }
    relations: { file: { kind: belongs_to, collection: files, on_delete: set_null } }
    access: { view: true, create: true, delete: true }
`;
/** Longer than the first slice of a transaction. */
const LONGER_MS = 60;

const called: string[] = [];
let db: Database;
let world: World;
let ann: Caller;
let kept: KeptAnswers;
beforeAll(async () => {
  db = await openEmbeddedDatabase();
  world = await World.open(db, SCHEMA, {
    onUsersDeleted: async ({ ids }) => void called.push(`deletes ${ids.length} users`),
    afterUsersChanged: async (ids) => void called.push(`has changed ${ids.length} users`),
    onFilesRemoved: async (ids) => void called.push(`has removed ${ids.length} files`),
  });
  ann = await world.user('ann@example.org');
  kept = await KeptAnswers.open(db);
});
afterAll(() => db?.close());
beforeEach(() => {
  called.length = 0;
});

/** Gives way in its first turn, after all that the work does. */
async function givingWay<T>(work: (batch: Batch) => Promise<T>): Promise<{ result: T; turns: number }> {
  let turns = 0;
  const written = Promise.withResolvers<void>();
  const other = written.promise.then(() => asCaller({ id: 'bob', isKept: false }, () => db.run(raw('SELECT 1'))));
  const result = await asCaller({ id: 'ann', isKept: false }, () =>
    world.records.batch({ values: [], rows: [] }, async (batch) => {
      turns++;
      const done = await work(batch);
      written.resolve();
      if (turns === 1) await sleep(LONGER_MS);
      await batch.tx.run(raw('SELECT 1'));
      return done;
    }),
  );
  await other;
  return { result, turns };
}

const count = async (table: string): Promise<number> =>
  Number((await db.rows(raw(`SELECT count(*) FROM ${table}`)))[0]![0]);
const note = (batch: Batch, data: Row) => batch.create(ann.ask('notes', { data }), { data, relations: [] });

test('a batch that gives way writes its records once', async () => {
  const before = await count('notes');
  const { turns, result } = await givingWay((batch) => note(batch, { text: 'x' }));
  expect(turns).toBe(2);
  expect(await count('notes')).toBe(before + 1);
  expect((await ann.read('notes', result.id)).text).toBe('x');
});

test('a batch that gives way runs the hooks after its commit once, and those of its transaction in each turn', async () => {
  const bob = await world.user('bob@example.org');
  const bytes = { name: 'a', content_type: 'text/plain', size: 1, sha256: 'x' };
  const file = await insertRecord(world, 'files', { ...bytes, owner: ann.id });
  const { turns } = await givingWay(async (batch) => {
    await batch.remove(ann.ask('users'), { id: bob.id });
    await batch.remove(ann.ask('files'), { id: file });
  });
  expect(turns).toBe(2);
  expect(called).toEqual(['deletes 1 users', 'deletes 1 users', 'has removed 1 files', 'has changed 1 users']);
});

test('a batch that gives way after it has kept its answer keeps the answer of the turn that is committed', async () => {
  const key = { principal: ann.id, kind: 'user' as const, path: '/api/batch', key: 'gives way', bodyHash: 'h' };
  const { turns, result } = await givingWay(async (batch) => {
    const written = await note(batch, { text: 'kept' });
    const answer = { status: 200, headers: {}, body: written.id };
    const records = [{ collection: 'notes', id: written.id }];
    expect(await kept.keep(batch.tx, key, { schema: world.schema, answer, outline: answer, records })).toBeUndefined();
    return written.id;
  });
  expect(turns).toBe(2);
  expect((await kept.find(key))?.body).toBe(result);
  expect(await count('bylaw_kept_answers')).toBe(1);
  expect(await count('bylaw_kept_records')).toBe(1);
});

test('a batch that fails in a later turn leaves nothing of any turn', async () => {
  const before = await count('notes');
  let turns = 0;
  const failing = givingWay(async (batch) => {
    await note(batch, { text: 'x' });
    if (++turns === 2) throw new Error('refused');
  });
  await expect(failing).rejects.toThrow('refused');
  expect(await count('notes')).toBe(before);
  expect(called).toEqual([]);
});
