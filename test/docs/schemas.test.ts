/** The schemas that users copy: those of the documentation, the sample, and the project of `bylaw init`. */
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { growthNotes } from '../../src/schema/advice/growth-notes.ts';
import { parseSchema } from '../../src/schema/load.ts';
import { RESERVED_COLLECTIONS, RESERVED_NAMES } from '../../src/schema/model/model.ts';
import { SYSTEM_COLUMNS } from '../../src/schema/model/names.ts';

const ROOT = join(import.meta.dirname, '../..');
const FILES = [
  'bylaw.yaml',
  'src/cli/project/bylaw.yaml',
  'docs/distributed.yaml',
  ...globSync('docs/recipes/*/bylaw.yaml', { cwd: ROOT }),
];
const PAGES = ['README.md', ...globSync(['docs/**/*.md', 'grammar/*.md'], { cwd: ROOT })];
const HOOK_SECRET = `whsec_${'A'.repeat(43)}=`;
const ENVIRONMENT = {
  COMPANY_SECRET: 'x',
  GOOGLE_SECRET: 'x',
  APPLE_KEY: 'x',
  OFFICE_SECRET: 'x',
  ORDERS_HOOK_SECRET: HOOK_SECRET,
  SUBMISSIONS_HOOK_SECRET: HOOK_SECRET,
};
/** Not a schema: a single field. */
const FRAGMENT = /^note: string$/;

const read = (file: string): string => readFileSync(join(ROOT, file), 'utf8');
const blocksOf = (page: string): readonly (readonly [string, string])[] =>
  [...read(page).matchAll(/```yaml(?! (?:edits|tests|ci)\n)[^\n]*\n([\s\S]*?)```/g)]
    .map(([, block], i) => [`${page} ${i + 1}`, block!] as const)
    .filter(([, block]) => !FRAGMENT.test(block.trim()));
const schemas = [...FILES.map((file) => [file, read(file)] as const), ...PAGES.flatMap(blocksOf)];

test('the documentation has schemas', () => {
  expect(schemas.length).toBeGreaterThan(25);
});

test.each(schemas)('the checker reports nothing for the schema of %s', (name, text) => {
  // A page about fields shows no roles.
  const whole = /^roles:/m.test(text) ? text : `roles: [hr]\n${text}`;
  const { issues } = parseSchema(whole, name, ENVIRONMENT);
  expect(issues.filter(({ code }) => code !== 'no_collections')).toEqual([]);
});

test('the sample and the project have no unbounded strings', () => {
  for (const file of FILES.slice(0, 2)) {
    const text = read(file);
    const notes = growthNotes(parseSchema(text, file).schema!, text);
    expect(notes.filter(({ code }) => code === 'no_max')).toEqual([]);
  }
});

test.each([
  ['A field or relation cannot be called ', [...RESERVED_NAMES, ...SYSTEM_COLUMNS]],
  ['The names ', RESERVED_COLLECTIONS],
])('the reference names what is reserved: %s', (beginning, names) => {
  const text = read('docs/schema.md').split(beginning)[1]!.split(/\.\s/)[0]!;
  const named = [...text.matchAll(/`(\w+)`/g)].map(([, name]) => name).filter((name) => name !== 'bylaw_');
  expect(named.toSorted()).toEqual([...names].toSorted());
});
