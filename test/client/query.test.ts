/** What `query` sends and how it walks, against answers in the form of the contract. */
import { expect, test } from 'vitest';
import { createClient } from '../../src/client/client.ts';

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

test('walks by cursor, from where the first page began', async () => {
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

test('gives the first page when awaited, and is repeated like every read', async () => {
  const first = answering([page(['a'], 'c1')]);
  expect((await first.tasks.query()).page.next_cursor).toBe('c1');
  const { tasks, bodies } = answering([]);
  await expect(tasks.query()).rejects.toMatchObject({ status: 503 });
  expect(bodies).toEqual([{}, {}]);
});
