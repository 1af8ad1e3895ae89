// @module-tag long
/** The work of the compiler on the types of a large schema: types that multiply the names of collections would show here. */
import { expect, test } from 'vitest';
import { parseSchema } from '../../src/schema/load.ts';
import { CLIENT, typeCheck } from './type-check.ts';

const COLLECTIONS = 100;
/** Twice as many as there are. Times would be uneven: `tsc --extendedDiagnostics` shows them. */
const MOST_INSTANTIATIONS = 60_000;
/** Each has eight fields, and refers to three others. */
function largeSchema(): string {
  const collections = Array.from({ length: COLLECTIONS }, (_, i) => {
    const fields = Object.fromEntries(
      ['title', 'kind', 'note', 'size', 'rank', 'open', 'due', 'day'].map((name, at) => [
        name,
        ['string', 'string', 'string', 'int', 'float', 'bool', 'datetime', 'date'][at],
      ]),
    );
    const to = (step: number): string => `c${(i + step) % COLLECTIONS}`;
    const relations = {
      owner: { kind: 'belongs_to', collection: 'users' },
      first: { kind: 'belongs_to', collection: to(1) },
      second: { kind: 'belongs_to', collection: to(7) },
      of_first: { kind: 'has_many', collection: to(COLLECTIONS - 1), via: 'first' },
    };
    return [`c${i}`, { fields, relations, access: { view: true, create: true } }] as const;
  });
  return JSON.stringify({ roles: { member: {} }, collections: Object.fromEntries(collections) });
}

const useOf = (name: string): string => `
  const of_${name} = await client.collection('${name}').query({
    sort: ['-first.title', 'second.first.size', 'due'],
    fields: ['title', 'size'],
    expand: { owner: { fields: ['email'] }, first: { fields: ['title'], expand: { of_first: { fields: ['note'], count: true } } } },
  });
  console.log(of_${name}.data[0]?.title, of_${name}.data[0]?.expand?.first?.expand?.of_first?.[0]?.note);
  await client.collection('${name}').aggregate({ group_by: ['first.kind', 'month(due)'], measures: { most: 'max(second.size)' } });
  // @ts-expect-error: no such field
  client.collection('${name}').query({ expand: { first: { fields: ['titel'] } } });`;

test('the compiler does little for each collection that is used, of a hundred', async () => {
  const { schema, issues } = parseSchema(largeSchema());
  expect(issues.filter(({ severity }) => severity === 'error')).toEqual([]);
  const uses = Array.from({ length: 20 }, (_, i) => useOf(`c${i * 5}`)).join('\n');
  const use = `import { createClient } from ${CLIENT};
import type { Collections } from './types.ts';
const client = createClient<Collections>('https://api.example.com');
export async function use(): Promise<void> {${uses}
}
`;
  const output = await typeCheck(schema!, use, ['--extendedDiagnostics']);
  expect(output).not.toContain('error TS');
  const instantiations = Number(/^Instantiations:\s+(\d+)/m.exec(output)?.[1]);
  expect(instantiations).toBeGreaterThan(0);
  expect(instantiations).toBeLessThan(MOST_INSTANTIATIONS);
});
