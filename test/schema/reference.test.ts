import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { schemaOfFormat } from '../../src/schema/file/shape.ts';
import { parseSchema } from '../../src/schema/load.ts';

const page = readFileSync(new URL('../../docs/schema.md', import.meta.url), 'utf8');
const examples = [...page.matchAll(/```yaml\n([\s\S]*?)```/g)].map(([, yaml]) => yaml!);

it.each(examples)('the reference of schema files has valid examples: %s', (yaml) => {
  const { issues } = parseSchema(yaml);
  // The line for editors is separate.
  expect(issues.filter(({ code }) => code !== 'no_collections')).toEqual([]);
});

/** Every key of every mapping, as `parent.key`. */
function keysIn(schema: unknown, parent = ''): readonly (readonly [key: string, description: unknown])[] {
  if (typeof schema !== 'object' || schema === null) return [];
  const { properties = {}, ...rest } = schema as { properties?: Record<string, { description?: unknown }> };
  return [
    ...Object.entries(properties).flatMap(([key, inner]) => [
      [`${parent}.${key}`, inner.description] as const,
      ...keysIn(inner, `${parent}.${key}`),
    ]),
    ...Object.entries(rest).flatMap(([key, inner]) =>
      key === 'examples' || key === 'default' ? [] : keysIn(inner, parent),
    ),
  ];
}

it('the reference describes every key of the format', () => {
  const keys = keysIn(schemaOfFormat());
  expect(keys.length).toBeGreaterThan(60);
  expect(keys.filter(([, description]) => typeof description !== 'string')).toEqual([]);
  expect(keys.filter(([key]) => !page.includes(`| \`${key.split('.').at(-1)}\` |`))).toEqual([]);
});
