import { globSync, readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { singularOf } from '../../src/describe/singular.ts';
import { typeNames } from '../../src/describe/writable.ts';

const WORDS = `
  tasks task, memberships membership, statuses status, people person, children child, categories category, boxes box, classes class,
  addresses address, address address, status status, news news, series series, media media, data data, movies movie, cookies cookie,
  companies company, keys key, branches branch, caches cache, wishes wish, houses house, causes cause, uses use, viruses virus, bonuses bonus,
  databases database, purchases purchase, courses course, licenses license, heroes hero, shoes shoe, photos photo, indices index, axes axis,
  analyses analysis, analysis analysis, leaves leaf, archives archive, quizzes quiz, sizes size, buses bus, pages page, tags tag, sheep sheep,
  aliases alias, expenses expense, invoices invoice, messages message, men man, women woman, properties property, ties tie, pies pie, s s
`;

test.each(
  WORDS.trim()
    .split(/,\s*/)
    .map((pair) => pair.split(' ') as [string, string]),
)('%s → %s', (plural, singular) => expect(singularOf(plural)).toBe(singular));

describe('names of types', () => {
  const cases: readonly (readonly [string, string])[] = [
    ['tasks team_members people', 'Task TeamMember Person'],
    // Both claim `Post`: each keeps its own name, in any order.
    ['post posts', 'Post Posts'],
    ['posts post', 'Posts Post'],
    // Names of the file itself.
    ['roles pages sessions ids', 'Roles Pages Sessions Ids'],
    ['role', 'RoleRecord'],
    // Names that every program has.
    ['files documents file', 'DocumentRecord Files FileRecord'],
    ['collections', 'Collection'],
    // The types of a create.
    ['posts post_creates', 'Posts PostCreates'],
    // They differ in spelling only.
    ['team_members teamMembers', 'Record_team_members Record_teamMembers'],
    ['team_member teamMembers', 'TeamMember TeamMembers'],
  ];
  test('a type never has a name of one word that TypeScript’s own libraries declare', () => {
    const libraries = globSync('node_modules/@typescript/*/lib/lib.{dom,es5,es20*,esnext*}.d.ts');
    const declared = libraries.flatMap((file) =>
      [...readFileSync(file, 'utf8').matchAll(/^(?:declare )?(?:interface|type|var|const) ([A-Z][a-z]+)\b/gm)].map(
        ([, name]) => name!,
      ),
    );
    expect(declared.length).toBeGreaterThan(90);
    const shadowing = [...new Set(declared)].filter(
      (name) =>
        typeNames([`${name.toLowerCase()}s`])
          .values()
          .next().value === name,
    );
    expect(shadowing).toEqual([]);
  });
  test.each(cases)('%s → %s', (collections, names) => {
    expect([...typeNames(collections.split(' ')).values()].join(' ')).toBe(names);
  });
});
