/** 500 typing errors in names, made from a seed: the first suggestion has to be the name that was meant. */
import { expect, it } from 'vitest';
import { examine } from '../../../src/policy/check/checker.ts';
import type { Catalog, CatalogField } from '../../../src/policy/types.ts';
import { random } from '../../fuzz/frontend/frontend.ts';

const NAMES = (
  'title name email status state score rating price amount total count quantity description summary body content author_name ' +
  'published_at expires_at due_at starts_at ends_at archived pinned visible locked locale country city street postal_code phone ' +
  'birthday language currency priority category department position salary weight height width color size slug version'
).split(' ');
const field = (name: string): CatalogField => ({
  name,
  type: 'string',
  required: true,
  column: name,
  unique: false,
  index: false,
});
const catalogOf = (names: readonly string[]): Catalog => ({
  collections: new Map([
    [
      'things',
      {
        name: 'things',
        table: 'things',
        fields: new Map(names.map((name) => [name, field(name)])),
        relations: new Map(),
      },
    ],
  ]),
  roles: new Map(),
});
const CATALOG = catalogOf(NAMES);

const LETTERS = 'abcdefghijklmnopqrstuvwxyz';
const camel = (name: string): string => name.replaceAll(/_(\w)/g, (_, letter: string) => letter.toUpperCase());

/** A slip as fingers make it: a letter left out, doubled, swapped, mistaken or added; or the underscore of another convention. */
function typo(name: string, next: () => number): string {
  const below = (bound: number) => Math.floor(next() * bound);
  const at = below(name.length);
  const letter = LETTERS[below(LETTERS.length)]!;
  switch (below(6)) {
    case 0:
      return name.slice(0, at) + name.slice(at + 1);
    case 1:
      return name.slice(0, at) + name[at] + name.slice(at);
    case 2:
      return name.slice(0, at) + (name[at + 1] ?? '') + name[at] + name.slice(at + 2);
    case 3:
      return name.slice(0, at) + letter + name.slice(at + 1);
    case 4:
      return name.slice(0, at) + letter + name.slice(at);
    default:
      return camel(name);
  }
}

it('the first suggestion is right for nine typing errors in ten', () => {
  const next = random(20260101);
  const missed: string[] = [];
  let tried = 0;
  while (tried < 500) {
    const meant = NAMES[Math.floor(next() * NAMES.length)]!;
    const typed = typo(meant, next);
    if (NAMES.includes(typed) || !/^[A-Za-z_]/.test(typed)) continue;
    tried++;
    const policy = `@record.${typed} = "x"`;
    const { issues } = examine(policy, { catalog: CATALOG, collection: 'things', action: 'list' });
    expect(issues.map(({ code, span }) => [code, policy.slice(span.start, span.end)])).toEqual([
      ['name_unknown', typed],
    ]);
    if (issues[0]!.suggestion !== meant) missed.push(`${typed}: ${issues[0]!.suggestion}, not ${meant}`);
    else expect(issues[0]!.fix?.replacement).toBe(meant);
  }
  expect(missed.length, missed.join('\n')).toBeLessThanOrEqual(50);
});

it('a name without near ones gets no suggestion', () => {
  const { issues } = examine('@record.zzzzqqqq = "x"', { catalog: CATALOG, collection: 'things', action: 'list' });
  expect(issues.map(({ suggestion, fix }) => [suggestion, fix])).toEqual([[undefined, undefined]]);
});

it.each(['x', 'm', 'no', 'ten'])('suggestions contain no name of one letter for %s', (typed) => {
  const place = { catalog: catalogOf(['n', 't']), collection: 'things', action: 'list' } as const;
  const { issues } = examine(`@record.${typed} = "x"`, place);
  expect(issues.map(({ code, suggestion, fix }) => [code, suggestion, fix])).toEqual([
    ['name_unknown', undefined, undefined],
  ]);
});
