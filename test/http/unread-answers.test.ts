// @module-tag long
/** A client that does not read its answers holds a bounded part of the service's memory, and other callers notice nothing. */
import { type ClientRequest, request } from 'node:http';
import { afterEach, beforeAll, expect, test } from 'vitest';
import { outcomeOf } from '../support/records.ts';
import { describeOnOne, type User } from '../support/service.ts';
import { until } from '../support/until.ts';

const SCHEMA = `
roles: [member]
register: { roles: [member] }
limits: { body: 16MiB }
collections:
  posts:
    fields: { title: { type: string } }
    relations: { thread: { kind: belongs_to, collection: threads } }
    access: { view: true, create: true, update: true }
  threads:
    fields: { body: { type: string }, title: { type: string } }
    access: { view: true, create: true, update: true }
`;
/** Bytes. Two such answers are within what a caller may leave unread, three are not; the kernel buffers a third of one. */
const LONG = 12 * 1_048_576;

describeOnOne(
  'a caller who leaves long answers unread',
  (service) => {
    let [ann, bob]: User[] = [];
    let thread: string;
    const unread: ClientRequest[] = [];
    const path = (): string => `/api/threads/${thread}`;
    const leaveUnread = async (user: User): Promise<number> => {
      const [sent, status] = await asked(service.url + path(), user);
      unread.push(sent);
      return status;
    };

    beforeAll(async () => {
      [ann, bob] = [await service.user(), await service.user()];
      const made = await ann!.client.post('/api/threads', { data: { body: 'x'.repeat(LONG) } });
      thread = made.body.data.id;
    });
    afterEach(async () => {
      for (const each of unread.splice(0)) each.destroy();
      await until('the answers are given up', async () => (await ann!.client.send('HEAD', path())).status === 200);
    });

    test('a caller gets 429 for another long read until one is read or given up', async () => {
      expect([await leaveUnread(ann!), await leaveUnread(ann!), await leaveUnread(ann!)]).toEqual([200, 200, 429]);
      expect(outcomeOf(await ann!.client.get(path()))).toEqual([429, 'rate_limited']);
      expect((await ann!.client.send('HEAD', path())).status).toBe(429);
      const short = await ann!.client.get('/api/posts');
      expect([short.status, await leaveUnread(bob!)]).toEqual([200, 200]);
      unread.shift()!.destroy();
      await until('a place is free', async () => (await leaveUnread(ann!)) === 200);
    });

    test('a caller whose writes would answer with more gets the answers without what is long', async () => {
      for (let i = 0; i < 2; i++) expect(await leaveUnread(ann!)).toBe(200);
      const post = await ann!.client.post('/api/posts?expand=thread', { data: { title: 'a', thread } });
      expect([post.status, post.body.data.expand, post.body.data.expand_more]).toEqual([201, {}, ['thread']]);
      const update = { op: 'update', collection: 'threads', id: thread, data: { title: 'b' } };
      const { status, body } = await ann!.client.post('/api/batch', { operations: [update] });
      expect([status, body.data]).toEqual([200, [{ status: 200, data: { id: thread } }]]);
    });
  },
  { schema: SCHEMA },
);

/** Resolves with the status once the head of the answer has arrived; nothing reads the rest. */
function asked(url: string, { token }: User): Promise<[ClientRequest, number]> {
  return new Promise((resolve, reject) => {
    const sent = request(url, { headers: { authorization: `Bearer ${token}` }, agent: false }, (answer) =>
      resolve([sent, answer.statusCode!]),
    );
    sent.on('error', reject);
    sent.end();
  });
}
