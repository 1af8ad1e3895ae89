// @module-tag partitions
/** A denied write takes no lock: its caller cannot hold up permitted writers, nor wait for them. */
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import type { Transaction } from '../../../src/database/contract.ts';
import { raw, sql, uuid } from '../../../src/sql.ts';
import type { Client } from '../../support/client.ts';
import { makePeople, ROUTES_SCHEMA, TestService } from '../../support/service.ts';
import { until } from '../../support/until.ts';

type People = Awaited<ReturnType<typeof makePeople>>;

describe.skipIf(inject('postgresUrl') === '')('a row that another transaction holds', () => {
  const service = new TestService('postgres');
  let people: People;
  let draft: string;
  let published: string;
  beforeAll(async () => {
    await service.start({ schema: ROUTES_SCHEMA });
    people = await makePeople(service);
    const make = async (data: object): Promise<string> =>
      (await people.ann.client.post('/api/posts', { data })).body.data.id;
    draft = await make({ title: 'Draft' });
    published = await make({ title: 'Published', status: 'published' });
  });
  afterAll(() => service.stop());

  /** Runs it while both posts are locked, until it is answered or waits for one of them. */
  async function whileLocked(work: () => Promise<{ readonly status: number }>): Promise<number | 'waits'> {
    const [isLocked, isOver] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    let locker = '';
    const lock = service.app.db.transaction(async (tx) => {
      await tx.rows(sql`SELECT 1 FROM posts WHERE id IN (${uuid(draft)}, ${uuid(published)}) FOR UPDATE`);
      locker = await pidOf(tx);
      isLocked.resolve();
      await isOver.promise;
    });
    await isLocked.promise;
    let status: number | undefined;
    const answer = work().then((answered) => {
      status = answered.status;
    });
    await until('it is answered or waits', async () => status !== undefined || (await isWaitedFor(locker)));
    const found = status ?? 'waits';
    isOver.resolve();
    await Promise.all([lock, answer]);
    return found;
  }
  const pidOf = async (tx: Transaction): Promise<string> => (await tx.rows(raw('SELECT pg_backend_pid()')))[0]![0]!;
  const isWaitedFor = async (pid: string): Promise<boolean> => {
    const waiting = raw(`SELECT 1 FROM pg_stat_activity WHERE ${pid} = ANY(pg_blocking_pids(pid))`);
    return (await service.app.db.rows(waiting, { lane: 'urgent' })).length > 0;
  };
  const change = { data: { title: 'Changed' } };

  test('a write of an invisible record gets 404 at once', async () => {
    const { client } = people.bob;
    expect(await whileLocked(() => client.patch(`/api/posts/${draft}`, change))).toBe(404);
    expect(await whileLocked(() => client.delete(`/api/posts/${draft}`))).toBe(404);
  });

  test('a write of a record that the caller may only read gets 403 at once', async () => {
    const { client } = people.bob;
    expect(await whileLocked(() => client.patch(`/api/posts/${published}`, change))).toBe(403);
    expect(await whileLocked(() => client.delete(`/api/posts/${published}`))).toBe(403);
    const cover = { data: { cover: null } };
    expect(await whileLocked(() => client.patch(`/api/posts/${published}`, cover))).toBe(403);
  });

  test('a batch locks no record that the caller may not write', async () => {
    const make = async (client: Client): Promise<string> =>
      (await client.post('/api/posts', { data: { title: 'Open', status: 'published' } })).body.data.id;
    const { client } = people.bob;
    const updates = (...ids: readonly string[]) => ({
      operations: ids.map((id) => ({ op: 'update', collection: 'posts', id, ...change })),
    });
    // Rows are locked in the order of their ids, and later records have greater ids.
    const [foreign, own] = [await make(people.ann.client), await make(client)];
    expect(await whileLocked(() => client.post('/api/batch', updates(published, own)))).toBe(403);
    const [isLocked, isOver] = [Promise.withResolvers<string>(), Promise.withResolvers<void>()];
    const lock = service.app.db.transaction(async (tx) => {
      await tx.rows(sql`SELECT 1 FROM posts WHERE id = ${uuid(own)} FOR UPDATE`);
      isLocked.resolve(await pidOf(tx));
      await isOver.promise;
    });
    const locker = await isLocked.promise;
    const answer = client.post('/api/batch', updates(own, foreign));
    await until('the batch waits for its own record', () => isWaitedFor(locker));
    expect((await people.ann.client.patch(`/api/posts/${foreign}`, change)).status).toBe(200);
    isOver.resolve();
    await lock;
    expect((await answer).status).toBe(403);
  });

  test('a permitted writer waits, and the rules judge the record after the wait', async () => {
    expect(await whileLocked(() => people.ann.client.patch(`/api/posts/${draft}`, change))).toBe('waits');
    expect((await people.ann.client.get(`/api/posts/${draft}`)).body.data.title).toBe('Changed');
    const [isLocked, isOver] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    let publisher = '';
    const publishes = service.app.db.transaction(async (tx) => {
      await tx.run(sql`UPDATE posts SET status = 'published' WHERE id = ${uuid(draft)}`);
      publisher = await pidOf(tx);
      isLocked.resolve();
      await isOver.promise;
    });
    await isLocked.promise;
    // Only drafts may be deleted: the row that the delete waits for is one no longer.
    const answer = people.ann.client.delete(`/api/posts/${draft}`);
    await until('it waits', () => isWaitedFor(publisher));
    isOver.resolve();
    await publishes;
    expect((await answer).status).toBe(403);
  });

  test('a write that waits for a second gets 503 with Retry-After, and stores nothing', async () => {
    const { client } = people.ann;
    const make = async (): Promise<string> =>
      (await client.post('/api/posts', { data: { title: 'Held' } })).body.data.id;
    const [held, other] = [await make(), await make()];
    const [isLocked, isOver] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const lock = service.app.db.transaction(async (tx) => {
      await tx.rows(sql`SELECT 1 FROM posts WHERE id = ${uuid(held)} FOR UPDATE`);
      isLocked.resolve();
      await isOver.promise;
    });
    await isLocked.promise;
    const answers = await Promise.all([
      client.patch(`/api/posts/${held}`, change),
      client.delete(`/api/posts/${held}`),
      client.patch(`/api/posts/${held}`, { data: { ...change.data, tags: { set: [] } } }),
      client.post('/api/comments', { data: { text: 'x', post: held } }),
      client.post('/api/batch', {
        operations: [other, held].map((id) => ({ op: 'update', collection: 'posts', id, ...change })),
      }),
    ]);
    isOver.resolve();
    await lock;
    expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 503));
    expect(answers.map(({ body }) => body.code)).toEqual(answers.map(() => 'unavailable'));
    expect(answers.every(({ headers }) => headers.get('retry-after') !== null)).toBe(true);
    const titles = [held, other].map(async (id) => (await client.get(`/api/posts/${id}`)).body.data.title);
    expect(await Promise.all(titles)).toEqual(['Held', 'Held']);
  });
});
