// @module-tag partitions
/** `sort: ["name:text"]`: the order of people, by the folded copy of a field with `search: true`. */
import { beforeAll, expect, test } from 'vitest';
import { outcomeOf } from '../../support/records.ts';
import { describeRoutes, type User } from '../../support/service.ts';

const SCHEMA = `
roles: [member]
register: { roles: [member] }
collections:
  people:
    fields:
      name: { type: string, search: true, access: { read: '@record.shown' } }
      nick: string
      shown: { type: bool, required: true, default: true }
    relations: { friend: { kind: belongs_to, collection: people } }
    access: { view: true, create: true, update: true }
`;
const NAMES = ['Zoë', 'apple', 'Äpfel', 'Émile', 'zebra', 'Öl', 'emile', 'Emile', 'APPLE', null];
const IN_ORDER = ['Äpfel', 'APPLE', 'apple', 'Emile', 'emile', 'Émile', 'Öl', 'zebra', 'Zoë', null];

describeRoutes(
  'the order of people',
  (service) => {
    let ann: User;
    beforeAll(async () => {
      ann = await service.user();
      let friend: string | null = null;
      for (const name of NAMES) {
        const { status, body, text } = await ann.client.post('/api/people', { data: { name, nick: name, friend } });
        expect(status, text).toBe(201);
        friend = body.data.id;
      }
      await ann.client.post('/api/people', { data: { name: 'aaa', nick: 'hidden', shown: false, friend } });
    });
    const query = (body: object) => ann.client.post('/api/people/query', body);
    const names = async (sort: string[], more: object = {}): Promise<unknown> => {
      const { body, text } = await query({ sort, filter: 'shown', ...more });
      return body.data?.map(({ name }: { name: string }) => name) ?? text;
    };

    test('letters come before accents and cases, in both directions, with null last', async () => {
      expect(await names(['name:text'])).toEqual(IN_ORDER);
      expect(await names(['-name:text'])).toEqual([...IN_ORDER.slice(0, -1).toReversed(), null]);
      const { body } = await ann.client.get('/api/people?sort=name:text&filter=shown&fields=name');
      expect(body.data.map(({ name }: { name: string }) => name)).toEqual(IN_ORDER);
    });

    test('pages follow it, also through a relation', async () => {
      const walked: unknown[] = [];
      for (let cursor: string | null = null, pages = 0; pages === 0 || cursor !== null; pages++) {
        const { body } = await query({ sort: ['-name:text'], filter: 'shown', limit: 3, cursor });
        walked.push(...body.data.map(({ name }: { name: string }) => name));
        cursor = body.page.next_cursor;
      }
      expect(walked).toEqual([...IN_ORDER.slice(0, -1).toReversed(), null]);
      const friends = await names(['friend.name:text', 'id'], { limit: 4 });
      expect(friends).toEqual(['Émile', null, 'Äpfel', 'APPLE']);
    });

    test('a hidden name gives no order', async () => {
      const { body } = await query({ sort: ['name:text', 'nick'] });
      expect(body.data.slice(-2).map(({ nick }: { nick: string }) => nick)).toEqual(['hidden', null]);
    });

    test.each<[string[], string]>([
      [['nick:text'], '/sort/0 invalid_sort'],
      [['id:text'], '/sort/0 invalid_sort'],
      [['friend:text'], '/sort/0 invalid_sort'],
      [['name:fold'], '/sort/0 invalid_sort'],
      [['name:text', 'name'], '/sort/1 repeated'],
      [['-name:text', 'name:text'], '/sort/1 repeated'],
    ])('%j is refused', async (sort, found) => {
      expect(outcomeOf(await query({ sort }))).toEqual([422, 'validation_failed', found]);
    });
  },
  { schema: SCHEMA },
);
