// @module-tag long
// @module-tag partitions
/** Updates and deletes by filter: the records that the caller may list, each under its rule, all of them or none. */
import { beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { outcomeOf } from '../../support/records.ts';
import { describeRoutes, type TestService, type User } from '../../support/service.ts';

const SCHEMA = `
roles: { admin: { assigns: [member] }, member: {} }
register: { roles: [member] }
collections:
  lists:
    fields: { name: string }
    relations: { chief: { kind: has_one, collection: tasks, via: led } }
    access: { view: true, create: true, update: true, delete: true }
  tasks:
    changes: true
    fields:
      title: { type: string, required: true, max: 80 }
      code: { type: string, unique: true, max: 40 }
      round: { type: int, required: true }
      done: { type: bool, required: true, default: false }
      level: { type: int, required: true, default: 1, access: { write: '@next.level < 5' } }
      rank: { type: int, access: { write: '@next.rank < 5' } }
      shown: { type: bool, required: true, default: true }
      listed: { type: bool, required: true, default: true }
      secret: { type: string, access: { read: '@record.owner = @request.auth.id' } }
    relations:
      owner: { kind: belongs_to, collection: users, required: true, default: '@request.auth.id' }
      above: { kind: belongs_to, collection: tasks, on_delete: cascade }
      led: { kind: belongs_to, collection: lists }
      lists: { kind: many_to_many, collection: lists }
    access:
      list: '@record.listed = true or @record.owner = @request.auth.id'
      read: '@record.shown = true or @record.owner = @request.auth.id'
      create: true
      update: '@record.owner = @request.auth.id'
      delete: '@record.owner = @request.auth.id and @record.done = true'
  notes:
    fields: { text: string }
    relations: { task: { kind: belongs_to, collection: tasks, on_delete: restrict } }
    access: { view: true, create: true, update: false }
`;

describeRoutes('writes by filter', (service) => suite(service), { schema: SCHEMA });

function suite(service: TestService): void {
  let [ann, bob] = [] as unknown as [User, User];
  let round = 0;
  beforeAll(async () => {
    [ann, bob] = [await service.user(), await service.user()];
  });
  beforeEach(() => {
    round++;
  });
  const make = async ({ client }: User, data: object = {}): Promise<string> => {
    const { status, body, text } = await client.post('/api/tasks', { data: { title: 'a task', round, ...data } });
    if (status !== 201) throw new Error(text);
    return body.data.id;
  };
  const inRound = (filter = 'true') => ({ filter: `round = $round and (${filter})`, params: { round } });
  const update = (user: User, data: object, more: object = {}) =>
    user.client.post('/api/tasks/update', { ...inRound(), data, ...more });
  const remove = (user: User, more: object = {}, headers = {}) =>
    user.client.post('/api/tasks/delete', { ...inRound(), ...more }, headers);
  const titles = async (user = ann): Promise<readonly string[]> => {
    const { body } = await user.client.post('/api/tasks/query', { ...inRound(), sort: ['title'], limit: 100 });
    return body.data.map(({ title }: { title: string }) => title);
  };

  test('the records that match are changed, up to the limit', async () => {
    for (let i = 0; i < 4; i++) await make(ann, { level: i + 1 });
    expect((await update(ann, { title: 'new' }, inRound('level > 2'))).body).toEqual({
      data: { matched: 2, changed: 2 },
    });
    expect(await titles()).toEqual(['a task', 'a task', 'new', 'new']);
    expect((await update(ann, { title: 'first' }, { limit: 1 })).body).toEqual({ data: { matched: 1, changed: 1 } });
    expect((await update(ann, { title: 'none' }, inRound('false'))).body).toEqual({ data: { matched: 0, changed: 0 } });
    expect((await titles()).filter((title) => title === 'first')).toHaveLength(1);
  });

  test('a refused record refuses all, and is named where the caller may read it', async () => {
    await make(ann);
    const [seen, unread] = [await make(bob), await make(bob, { shown: false })];
    await make(bob, { listed: false });
    const answer = await update(ann, { title: 'new' });
    expect(outcomeOf(answer)).toEqual([403, 'forbidden', '/filter forbidden']);
    expect(answer.body.errors[0].record).toBe(seen);
    expect(answer.text).not.toContain(unread);
    expect(await titles(bob)).toEqual(['a task', 'a task', 'a task', 'a task']);
    // Her own record is not done.
    expect(outcomeOf(await remove(ann))).toEqual([403, 'forbidden', '/filter forbidden', '/filter forbidden']);
  });

  test('a field that may not be written is named, with the record that the caller may read', async () => {
    const own = [await make(ann), await make(ann)];
    const answer = await update(ann, { level: 9, rank: 9, title: 'new' });
    expect(outcomeOf(answer)).toEqual([
      403,
      'forbidden',
      ...own.flatMap(() => ['/data/level forbidden', '/data/rank forbidden']),
    ]);
    expect(answer.body.errors.map(({ record }: { record: string }) => record)).toEqual(own.flatMap((id) => [id, id]));
    const unread = [await make(bob), await make(bob, { shown: false })];
    const ofBoth = await update(ann, { level: 9, title: 'new' });
    expect(outcomeOf(ofBoth).slice(2)).toEqual(['/data/level forbidden', '/data/level forbidden', '/filter forbidden']);
    expect(ofBoth.text).not.toContain(unread[1]);
    expect(await titles(bob)).toEqual(['a task', 'a task', 'a task', 'a task']);
  });

  test('refused records are skipped where the request says so', async () => {
    const own = await make(ann);
    for (const data of [{}, { shown: false }, { listed: false }]) await make(bob, data);
    const answer = await update(ann, { title: 'new', done: true }, { skip_refused: true });
    expect(answer.body).toEqual({ data: { matched: 3, changed: 1 } });
    expect(await titles(bob)).toEqual(['a task', 'a task', 'a task', 'new']);
    expect((await remove(ann, { skip_refused: true })).body).toEqual({ data: { matched: 3, changed: 1 } });
    expect((await ann.client.get(`/api/tasks/${own}`)).status).toBe(404);
    expect(await titles(bob)).toHaveLength(3);
  });

  test('a filter sees no value that the caller may not read', async () => {
    await make(bob, { secret: 'hidden' });
    expect(
      (await update(ann, { title: 'new' }, { ...inRound('secret = "hidden"'), skip_refused: true })).body.data.matched,
    ).toBe(0);
    expect((await update(bob, { title: 'new' }, inRound('secret = "hidden"'))).body.data).toEqual({
      matched: 1,
      changed: 1,
    });
  });

  test('an error of one record undoes all', async () => {
    for (let i = 0; i < 2; i++) await make(ann);
    expect(outcomeOf(await update(ann, { code: `x${round}`, title: 'new' }))).toEqual([
      409,
      'unique_violation',
      '/data/code unique_violation',
    ]);
    const [first] = (await ann.client.post('/api/tasks/query', inRound())).body.data;
    await update(ann, { done: true });
    await ann.client.post('/api/notes', { data: { task: first.id } });
    expect(outcomeOf(await remove(ann))).toEqual([409, 'still_referenced']);
    expect(await titles()).toEqual(['a task', 'a task']);
  });

  test('a record that the deletion of another one takes along counts as deleted', async () => {
    const above = await make(ann, { done: true });
    const child = await make(ann, { done: true, above });
    await make(ann, { done: true, above: child });
    expect((await remove(ann)).body).toEqual({ data: { matched: 3, changed: 3 } });
    expect(await titles()).toEqual([]);
  });

  test('relations are written, and a refused record leaves nothing of them', async () => {
    const list = (await ann.client.post('/api/lists', { data: { name: 'a list' } })).body.data.id;
    for (const user of [ann, bob]) await make(user);
    const answer = await update(ann, { lists: { add: [list] } }, { skip_refused: true });
    expect(answer.body.data).toEqual({ matched: 2, changed: 1 });
    expect((await ann.client.get(`/api/tasks?lists_any=${list}`)).body.data).toHaveLength(1);
    const chief = await make(ann);
    const chiefs = await ann.client.post('/api/lists/update', {
      filter: 'id = $list',
      params: { list },
      data: { chief },
    });
    expect(chiefs.body.data).toEqual({ matched: 1, changed: 1 });
  });

  test('a key answers once', async () => {
    await make(ann, { done: true });
    const headers = { 'Idempotency-Key': `round-${round}` };
    const first = await remove(ann, {}, headers);
    await make(ann, { done: true });
    expect((await remove(ann, {}, headers)).body).toEqual(first.body);
    expect(await titles()).toHaveLength(1);
    expect(outcomeOf(await remove(ann, { limit: 5 }, headers))).toEqual([422, 'idempotency_mismatch']);
  });

  test('two at once count each record once', async () => {
    for (let i = 0; i < 6; i++) await make(ann, { done: true });
    const answers = await Promise.all([remove(ann), remove(ann), remove(ann)]);
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200]);
    expect(answers.reduce((sum, { body }) => sum + body.data.changed, 0)).toBe(6);
    await Promise.all(Array.from({ length: 4 }, (_, i) => make(ann, { level: i + 1 })));
    const raises = await Promise.all(
      [1, 2, 3].map(() => update(ann, { level: 1, title: 'low' }, inRound('level > 1'))),
    );
    expect(raises.reduce((sum, { body }) => sum + body.data.changed, 0)).toBe(3);
  });

  describe('bodies that are refused:', () => {
    test.each([
      ['no filter', 'update', { data: { done: true } }, [422, 'validation_failed', '/filter required']],
      ['no data', 'update', { filter: 'done = true' }, [422, 'validation_failed', '/data required']],
      ['nothing to change', 'update', { filter: 'done = true', data: {} }, [400, 'patch_empty']],
      [
        'data of a delete',
        'delete',
        { filter: 'done = true', data: {} },
        [422, 'validation_failed', '/data unknown_key'],
      ],
      [
        'a limit beyond 1,000',
        'delete',
        { filter: 'done = true', limit: 1001 },
        [422, 'validation_failed', '/limit invalid_value'],
      ],
      [
        'an unknown field of the filter',
        'delete',
        { filter: 'dune = true' },
        [400, 'filter_invalid', '/filter name_unknown'],
      ],
      [
        'a wrong value, of no record',
        'update',
        { filter: 'false', data: { done: 1 } },
        [422, 'validation_failed', '/data/done wrong_type'],
      ],
      ['no object', 'delete', [], [422, 'validation_failed', ' not_an_object']],
    ])('%s', async (_, verb, body, expected) => {
      expect(outcomeOf(await ann.client.post(`/api/tasks/${verb}`, body))).toEqual(expected);
    });

    test('a caller without a rule, and without a credential', async () => {
      const body = { filter: 'true', data: { text: 'x' } };
      expect(outcomeOf(await ann.client.post('/api/notes/update', body))).toEqual([403, 'forbidden']);
      expect(outcomeOf(await ann.client.post('/api/notes/delete', { filter: 'true' }))).toEqual([403, 'forbidden']);
      expect(outcomeOf(await service.anonymous.post('/api/tasks/update', body))).toEqual([401, 'unauthenticated']);
      expect(outcomeOf(await ann.client.post('/api/nothing/update', body))).toEqual([404, 'not_found']);
    });
  });
}
