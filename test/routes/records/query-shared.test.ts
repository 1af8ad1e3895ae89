/** Related records that several records of a page share: each has its own related records once. */
import { expect, test } from 'vitest';
import { describeRoutes } from '../../support/service.ts';

const SCHEMA = `
roles: [member]
register: { roles: [member] }
collections:
  books:
    fields: { name: { type: string, required: true } }
    relations: { authors: { kind: many_to_many, collection: authors } }
    access: { view: true, create: true }
  authors:
    fields: { name: { type: string, required: true } }
    relations: { awards: { kind: many_to_many, collection: awards } }
    access: { view: true, create: true }
  awards:
    fields: { name: { type: string, required: true } }
    access: { view: true, create: true }
`;

type Named = { readonly name: string; readonly expand?: Readonly<Record<string, readonly Named[]>> };
/** `name(related, …)` */
const said = ({ name, expand = {} }: Named): string => {
  const within = Object.values(expand).flat();
  return within.length === 0 ? name : `${name}(${within.map(said).join(', ')})`;
};

describeRoutes(
  'shared related records',
  (service) => {
    test('show their own related records once, and are cut by their own number', async () => {
      const { client } = await service.user();
      const make = async (collection: string, data: object): Promise<string> =>
        (await client.post(`/api/${collection}`, { data })).body.data.id;
      const awards = [];
      for (const name of ['bronze', 'gold']) awards.push(await make('awards', { name }));
      const author = await make('authors', { name: 'Ada', awards: { set: awards } });
      for (const name of ['one', 'two', 'three']) await make('books', { name, authors: { set: [author] } });
      const ask = async (awardsOfEach: unknown) => {
        const body = { sort: ['name'], expand: { authors: { expand: { awards: awardsOfEach } } } };
        const { body: answer } = await client.post('/api/books/query', body);
        expect(JSON.stringify(answer)).not.toContain('expand_more');
        return answer.data.map(said);
      };
      const whole = ['one', 'three', 'two'].map((name) => `${name}(Ada(bronze, gold))`);
      expect(await ask({ sort: ['name'] })).toEqual(whole);
      expect(await ask({ sort: ['name'], limit: 2 })).toEqual(whole);
    });
  },
  { schema: SCHEMA },
);
