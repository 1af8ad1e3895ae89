/** The first data of the table of `create`, for fields of every type: the matrix takes it. */
import { expect, test } from 'vitest';
import { SCALARS } from '../../src/policy/scalar-types.ts';
import { describeOnOne } from '../support/service.ts';

/** Its types are those of a page. */
const { madeUpRecord } = await import(new URL('../../src/studio/pages/policies/made-up-data.ts', import.meta.url).href);

const BOUNDED = `
      short: { type: string, required: true, max: 2 }
      long: { type: string, required: true, min: 9 }
      late: { type: date, required: true, min: 2030-01-01 }
      early: { type: datetime, required: true, max: '2020-01-01T00:00:00Z' }
      low: { type: int, required: true, max: -3 }
      words: { type: list, of: string, required: true, min: 2 }`;
const declared = (type: string): string => {
  if (type.endsWith('[]')) return `type: list, of: ${type.slice(0, -'[]'.length)}`;
  return type === 'decimal' ? 'type: decimal, precision: 3, scale: 2' : `type: ${type}`;
};
const fieldsOf = (types: readonly string[]): string =>
  types.map((type, i) => `      f${i}: { ${declared(type)}, required: true }`).join('\n');

describeOnOne(
  'made-up data',
  (service) => {
    test('the matrix of a create takes them, whatever the types and bounds of the fields', async () => {
      const { client } = await service.user('admin');
      const collections: readonly { readonly name: string }[] = (await client.get('/api/_schema')).body.data
        .collections;
      const data = madeUpRecord(collections.find(({ name }) => name === 'things'));
      const question = { collection: 'things', action: 'create', callers: ['admin'], data: [data] };
      const { status, body } = await client.post('/api/_matrix', question);
      expect([status, body.errors]).toEqual([200, undefined]);
      expect(body.data.rows[0].outcomes).toEqual(['allowed']);
    });
  },
  {
    schema: `
roles: [admin]
collections:
  things:
    fields:
${fieldsOf(Object.keys(SCALARS))}${BOUNDED}
    access: { create: true }
`,
  },
);
