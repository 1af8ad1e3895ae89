// @module-tag long
/** `changes` and `live` of the client: one stream, resumption, and lists that stay current. */
import { beforeAll, expect, test } from 'vitest';
import { type Client, createClient, type LiveRecords } from '../../src/client/client.ts';
import { describeOnOne, type User } from '../support/service.ts';
import { until } from '../support/until.ts';

const SCHEMA = `
roles: [member]
register: { roles: [member] }
collections:
  users: { access: { view: true } }
  notes:
    changes: true
    fields: { title: { type: string, required: true }, n: int }
    relations: { owner: { kind: belongs_to, collection: users, default: '@request.auth.id' } }
    access: { view: '@record.owner = @request.auth.id', create: true, update: true, delete: true }
  drafts:
    changes: true
    fields: { name: string }
    access: { list: [{ roles: [admin] }] }
`;

describeOnOne(
  'live records',
  (service) => {
    let user: User;
    let streams = 0;
    const open = async (): Promise<Client> => {
      const client = createClient(service.url, {
        fetch: (input, init) => {
          if (String(input).endsWith('/api/changes')) streams++;
          return fetch(input, init);
        },
      });
      await client.login({ email: user.email, password: user.password });
      return client;
    };
    const titles = (live: LiveRecords<object>): unknown =>
      live.records.map((record) => (record as { title: string }).title).toSorted();
    const shows = (live: unknown, wanted: readonly string[]) =>
      until('the records', () => JSON.stringify(titles(live as LiveRecords<object>)) === JSON.stringify(wanted));

    beforeAll(async () => {
      user = await service.user();
    });

    test('a list stays current, a filtered one and a page beside it, on one stream', async () => {
      const client = await open();
      const notes = client.collection('notes');
      const first = await notes.create({ title: 'a', n: 1 });
      streams = 0;
      const [all, few, page] = [
        notes.live(),
        notes.live({ filter: 'n > $least', params: { least: 2 } }),
        notes.live({ sort: ['-n'], limit: 1 }),
      ];
      await Promise.all([all.ready, few.ready, page.ready]);
      expect([titles(all as LiveRecords<object>), titles(few as LiveRecords<object>), streams]).toEqual([['a'], [], 1]);
      let calls = 0;
      const end = all.subscribe(() => calls++);
      const second = await notes.create({ title: 'b', n: 3 });
      await Promise.all([shows(all, ['a', 'b']), shows(few, ['b']), shows(page, ['b'])]);
      await notes.update(second.id, { n: 0 });
      await Promise.all([shows(few, []), shows(page, ['a'])]);
      expect(calls).toBeGreaterThan(1);
      end();
      service.app.feeds!.endStreams();
      await notes.delete(first.id);
      await Promise.all([shows(all, ['b']), shows(page, ['b'])]);
      // A stream that its reader ends makes `fetch` open another connection.
      service.app.feeds!.endStreams();
      for (const each of [all, few, page]) each.close();
      await notes.delete(second.id);
    });

    test('the iterator gives each event once, over the end of streams', async () => {
      const client = await open();
      const notes = client.collection('notes');
      const control = new AbortController();
      const seen: string[] = [];
      const reading = (async () => {
        for await (const change of notes.changes({ signal: control.signal }))
          seen.push(change.type === 'enter' ? `enter ${change.record.title}` : change.type);
      })();
      await until('an event', () => seen.length === 1);
      const { id } = await notes.create({ title: '1' });
      await until('an event', () => seen.length === 2);
      service.app.feeds!.endStreams();
      await notes.create({ title: '2' });
      await until('an event', () => seen.includes('enter 2'));
      await notes.delete(id);
      await until('an event', () => seen.includes('leave'));
      service.app.feeds!.endStreams();
      control.abort();
      await reading;
      expect(seen.filter((each) => each !== 'ready')).toEqual(['enter 1', 'enter 2', 'leave']);
    });

    test('a list that is refused is asked for once', async () => {
      const { email, password } = user;
      let lists = 0;
      const client = createClient(service.url, {
        fetch: (input, init) => {
          if (String(input).endsWith('/query')) lists++;
          return fetch(input, init);
        },
      });
      await client.login({ email, password });
      const live = client.collection('notes').live({ sort: ['nope'] });
      await expect(live.ready).rejects.toMatchObject({ status: 422 });
      // Three times the first pause before another attempt.
      await new Promise((done) => setTimeout(done, 1_500));
      expect(lists).toBe(1);
    });

    test('a refused feed leaves the others', async () => {
      const client = await open();
      const [drafts, notes] = [client.collection('drafts').live(), client.collection('notes').live()];
      await expect(drafts.ready).rejects.toMatchObject({ status: 403 });
      await notes.ready;
      service.app.feeds!.endStreams();
      notes.close();
      await expect(client.collection('nothing').changes().next()).rejects.toMatchObject({ status: 404 });
    });
  },
  { schema: SCHEMA },
);
