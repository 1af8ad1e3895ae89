// @module-tag long
/** `bylaw/events`: a worker takes each event at least once, and goes on where its last run ended. */
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Event, events } from '../../src/events/events.ts';
import { describeOnOne, type User } from '../support/service.ts';

const SCHEMA = `
roles: [member, mailer]
register: { roles: [member] }
collections:
  users: { access: { view: true } }
  applications:
    changes: true
    fields: { name: { type: string, required: true }, draft: { type: bool, default: false } }
    access:
      list: [{ roles: [mailer], when: '@record.draft = false' }]
      read: true
      create: true
      update: true
      delete: true
`;
interface Application {
  readonly id: string;
  readonly name: string;
}

describeOnOne(
  'events for workers',
  (service) => {
    let ann: User;
    let key: string;
    let folder: string;
    beforeAll(async () => {
      ann = await service.user();
      key = (await service.app.auth.apiKeys.create({ name: 'mailer', roles: ['mailer'] })).secret;
      folder = await mkdtemp(join(tmpdir(), 'bylaw-events-'));
    });
    afterAll(() => rm(folder, { recursive: true, force: true }));

    const apply = async (name: string, more: object = {}): Promise<string> =>
      (await ann.client.post('/api/applications', { data: { name, ...more } })).body.data.id;
    const worker = (file: string, more: object = {}) =>
      events<Application>({ url: service.url, key, collection: 'applications', position: join(folder, file), ...more });
    const nameOf = (event: Event<Application>): string => ('record' in event ? event.record.name : event.type);
    /** Takes events until one has the name; the loop ends within its body or behind it. */
    const run = async (file: string, last: string, more: object = {}): Promise<readonly string[]> => {
      const seen: string[] = [];
      for await (const event of worker(file, more)) {
        seen.push(nameOf(event));
        if (seen.at(-1) === last) break;
      }
      return seen;
    };
    const begun = async (file: string): Promise<void> => {
      const stop = new AbortController();
      const first = worker(file, { signal: stop.signal });
      expect((await first.next()).value).toEqual({ type: 'reset', reason: 'start' });
      const second = first.next();
      for (;;) {
        const text = await readFile(join(folder, file), 'utf8').catch(() => '');
        if (text !== '') break;
        await new Promise((resolve) => setTimeout(resolve, 10));
      }
      stop.abort();
      await second;
    };

    test('a worker receives the events that it missed, of records that its key may list', async () => {
      await begun('one');
      await apply('ann');
      await apply('a draft', { draft: true });
      await apply('bob');
      expect(await run('one', 'bob')).toEqual(['ann', 'bob']);
    });

    test('an event whose loop did not end comes again', async () => {
      await begun('two');
      await apply('first');
      await apply('second');
      const failing = async (): Promise<void> => {
        for await (const event of worker('two')) if (nameOf(event) === 'second') throw new Error('no mail server');
      };
      await expect(failing()).rejects.toThrow('no mail server');
      expect(await run('two', 'second')).toEqual(['second']);
    });

    test('a worker receives the events that it names', async () => {
      await begun('three');
      const id = await apply('named');
      await ann.client.patch(`/api/applications/${id}`, { data: { name: 'renamed' } });
      await ann.client.delete(`/api/applications/${id}`);
      await apply('the last');
      expect(await run('three', 'the last', { events: ['enter'] })).toEqual(['the last']);
      expect(await run('three', 'the last', { events: ['enter'], position: memory() }).catch(String)).toEqual([
        'reset',
        'the last',
      ]);
    });

    test('a refused feed ends the loop with the error of the service', async () => {
      const refused = events({
        url: service.url,
        key: 'bylaw_wrong',
        collection: 'applications',
        position: join(folder, 'no'),
      });
      await expect(refused.next()).rejects.toMatchObject({ status: 401 });
    });

    /** Begins now, and writes an application once the feed is open. */
    const memory = () => ({
      load: async () => undefined,
      save: async () => {
        if (!isSaved) void apply('the last');
        isSaved = true;
      },
    });
    let isSaved = false;
  },
  { schema: SCHEMA },
);
