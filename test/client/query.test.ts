/** The requests of `query` and its pages, against responses in the form of the contract. */
import { expect, test } from 'vitest';
import { createClient } from '../../src/client/client.ts';
import { describeOnOne } from '../support/service.ts';

/** Answers each request with the next of `pages`, and keeps the bodies. */
function answering(pages: readonly object[]) {
  const bodies: unknown[] = [];
  const urls: string[] = [];
  const answer: typeof fetch = async (input, init) => {
    urls.push(`${init?.method} ${new URL(String(input)).pathname}`);
    bodies.push(JSON.parse(String(init?.body)));
    const page = pages[bodies.length - 1];
    return page === undefined
      ? new Response('', { status: 503, headers: { 'retry-after': '0' } })
      : Response.json(page);
  };
  const tasks = createClient('http://127.0.0.1:1', { fetch: answer, retries: 1 }).collection('tasks');
  return { tasks, bodies, urls };
}
const page = (ids: readonly string[], next: string | null) => ({
  data: ids.map((id) => ({ id })),
  page: { limit: 2, has_more: next !== null, next_cursor: next },
});

test('a query continues by cursor from the start of the first page', async () => {
  const { tasks, bodies, urls } = answering([page(['a', 'b'], 'c1'), page(['c', 'd'], 'c2'), page(['e'], null)]);
  const query = { filter: 'title contains $q', params: { q: 'x' }, sort: ['-due_at'], limit: 2, offset: 4 };
  const met: string[] = [];
  for await (const { id } of tasks.query(query).records()) met.push(id);
  const { offset, ...rest } = query;
  expect(met).toEqual(['a', 'b', 'c', 'd', 'e']);
  expect(bodies).toEqual([
    { ...rest, offset },
    { ...rest, cursor: 'c1' },
    { ...rest, cursor: 'c2' },
  ]);
  expect(new Set(urls)).toEqual(new Set(['POST /api/tasks/query']));
});

test('an awaited query gives the first page, and is retried like every read', async () => {
  const first = answering([page(['a'], 'c1')]);
  expect((await first.tasks.query()).page.next_cursor).toBe('c1');
  const { tasks, bodies } = answering([]);
  await expect(tasks.query()).rejects.toMatchObject({ status: 503 });
  expect(bodies).toEqual([{}, {}]);
});

describeOnOne('a query of the running service', (service) => {
  test('a query reads its pages in order, and reports the error of a filter', async () => {
    const { email, password } = await service.user();
    const client = createClient(service.url);
    await client.login({ email, password });
    const documents = client.collection('documents');
    for (const title of ['b1', 'a1', 'b3', 'b2', 'c']) await documents.create({ title });
    const titles: unknown[] = [];
    const query = { filter: 'title starts with $start', params: { start: 'b' }, sort: ['-title'], limit: 2 };
    for await (const { title } of documents.query(query).records()) titles.push(title);
    expect(titles).toEqual(['b3', 'b2', 'b1']);
    expect((await documents.query(query)).page).toMatchObject({ limit: 2, has_more: true });
    await expect(documents.query({ filter: 'titel = "x"' })).rejects.toMatchObject({ code: 'filter_invalid' });
  });
});
