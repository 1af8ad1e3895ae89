/** Pages in the order of strings that are longer than a cursor may be. */
import { beforeAll, describe, expect, test } from 'vitest';
import { outcomeOf } from '../../support/records.ts';
import { describeRoutes, type TestService, type User } from '../../support/service.ts';

const SCHEMA = `
roles: { admin: { assigns: [member] }, member: {} }
register: { roles: [member] }
collections:
  notes:
    fields:
      name: { type: string, search: true, access: { read: '@record.shown = true' } }
      kind: { type: string, required: true }
      open: { type: bool, required: true, default: true }
      shown: { type: bool, required: true, default: true }
    relations: { about: { kind: belongs_to, collection: notes } }
    access: { view: '@record.open = true', create: true, update: true, delete: true }
`;
const LONG = 'x'.repeat(12_000);
const MOST = 1_500;

describeRoutes('long cursors', (service) => suite(service), { schema: SCHEMA });

function suite(service: TestService): void {
  let ann: User;
  const made = new Map<string, string>();
  const make = async (kind: string, data: object): Promise<string> => {
    const { status, body, text } = await ann.client.post('/api/notes', { data: { kind, ...data } });
    if (status !== 201) throw new Error(text);
    made.set(kind, body.data.id);
    return body.data.id;
  };
  /** The page of one record after a cursor. */
  const pageAfter = async (sort: string, cursor = '') => {
    const query = new URLSearchParams({ sort, cursor, limit: '1', fields: 'kind' });
    return ann.client.get(`/api/notes?${query}`);
  };
  /** The kinds of all records, in the order of the pages. */
  async function kindsBy(sort: string): Promise<readonly string[]> {
    const kinds: string[] = [];
    for (let cursor: string | null = ''; cursor !== null; ) {
      const { status, body, text } = await pageAfter(sort, cursor);
      if (status !== 200) throw new Error(text);
      kinds.push(...body.data.map(({ kind }: { kind: string }) => kind));
      cursor = body.page.next_cursor;
      expect(cursor?.length ?? 0).toBeLessThan(MOST);
    }
    return kinds;
  }

  beforeAll(async () => {
    ann = await service.user();
    // The strings have a beginning in common, and differ far behind it.
    await make('c', { name: `${LONG}c` });
    await make('a', { name: `${LONG}A`, about: made.get('c') });
    await make('e', { name: 'y', about: made.get('a') });
    await make('b', { name: `${LONG}b${LONG}`, about: made.get('e') });
    await make('d', { name: `${LONG}c`, about: made.get('c') });
    await make('f', {});
  });

  test.each([
    ['name', 'abcdef'],
    ['-name', 'ecdbaf'],
    ['name:text', 'abcdef'],
    ['shown,-name,id', 'ecdbaf'],
    ['about.name,-kind', 'edabfc'],
  ])('pages by %s have every record once, with short cursors', async (sort, order) => {
    const { body } = await ann.client.get(`/api/notes?sort=${sort}&fields=kind&limit=100`);
    const whole = body.data.map(({ kind }: { kind: string }) => kind);
    expect(await kindsBy(sort)).toEqual(whole);
    expect(whole.join('')).toBe(order);
  });

  test('the body of a query takes such a cursor', async () => {
    const asked = { sort: ['name'], limit: 2, fields: ['kind'] };
    const first = await ann.client.post('/api/notes/query', asked);
    const next = await ann.client.post('/api/notes/query', { ...asked, cursor: first.body.page.next_cursor });
    expect(next.body.data.map(({ kind }: { kind: string }) => kind)).toEqual(['c', 'd']);
  });

  describe('the record that a page ends with', () => {
    const begin = async () => {
      const id = await make('0', { name: LONG });
      const cursor: string = (await pageAfter('name')).body.page.next_cursor;
      return { id, cursor, next: () => pageAfter('name', cursor) };
    };

    test('may change in other members', async () => {
      const { id, next } = await begin();
      await ann.client.patch(`/api/notes/${id}`, { data: { kind: '1' } });
      expect((await next()).body.data[0].kind).toBe('a');
      await ann.client.delete(`/api/notes/${id}`);
    });

    test('has another value, is hidden or gone: the same error, and no position of a new value', async () => {
      const answers = [];
      for (const data of [{ name: `${LONG}z` }, { name: 'short' }, { name: null }, { shown: false }, { open: false }]) {
        const { id, next } = await begin();
        expect((await ann.client.patch(`/api/notes/${id}`, { data })).status).toBe(200);
        const answer = await next();
        answers.push([outcomeOf(answer), answer.body.detail]);
        await ann.client.patch(`/api/notes/${id}`, { data: { name: 'zz' } });
        if (!('open' in data)) await ann.client.delete(`/api/notes/${id}`);
      }
      const { id, next } = await begin();
      await ann.client.delete(`/api/notes/${id}`);
      const gone = await next();
      const error = [[400, 'invalid_cursor'], gone.body.detail];
      expect(outcomeOf(gone)).toEqual(error[0]);
      expect(answers).toEqual([error, error, error, error, error]);
    });
  });
}
