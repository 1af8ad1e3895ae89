/** A filter looks for short strings only: a search takes a time of the product of the lengths of both sides. */
import { describe, expect, it } from 'vitest';
import { compileFilter } from '../../../src/policy/filters/filter.ts';
import { NEEDLE_LIMITS } from '../../../src/policy/filters/needles.ts';
import { NOTES as catalog } from './notes.ts';

const compiled = (filter: string, params: object) =>
  compileFilter(filter, { catalog, collection: 'notes', params: { ...params } });
const found = (filter: string, params: object = {}): readonly string[] => {
  const { filter: made, issues } = compiled(filter, params);
  return [...issues.map(({ code }) => code), ...(made?.issues ?? []).map(({ name, message }) => `${name}: ${message}`)];
};

const { each: most, together } = NEEDLE_LIMITS;
const textOf = (length: number) => 'a'.repeat(length);
const TOO_LONG = `expected a string of at most ${most} characters to look for`;
const TOO_MUCH = `expected strings of at most ${together} characters together to look for`;

describe('a param', () => {
  it.each([
    ['body contains $q', textOf(most), []],
    ['body contains $q', textOf(most + 1), [`q: ${TOO_LONG}`]],
    ['body matches $q', textOf(most), []],
    ['body matches $q', textOf(most + 1), [`q: ${TOO_LONG}`]],
    // Folding makes 18 characters of one.
    ['body matches $q', '\ufdfa'.repeat(14), [`q: ${TOO_LONG}`]],
    ['body contains $q', '\ufdfa'.repeat(14), []],
    ['any(children as c, none(c.children as d, d.meta.color contains $q))', textOf(most + 1), [`q: ${TOO_LONG}`]],
    ['count(children as c, c.body contains $q) > 0', textOf(most + 1), [`q: ${TOO_LONG}`]],
    // These look at one place of the string.
    ['body starts with $q or body ends with $q or body = $q or body < $q', textOf(100_000), []],
    // An element of a list, or the string that is looked into.
    ['labels contains $q', textOf(100_000), []],
    ['$q contains title', textOf(100_000), []],
    ['$q contains title', [textOf(100_000)], []],
  ])('of %s', (filter, q, expected) => {
    expect(found(filter, { q })).toEqual(expected);
  });

  it('counts once for each place', () => {
    const filter = (places: number) => Array.from({ length: places }, () => 'body contains $q').join(' or ');
    expect(found(filter(together / most), { q: textOf(most) })).toEqual([]);
    expect(found(filter(together / most + 1), { q: textOf(most) })).toEqual([`q: ${TOO_MUCH}`]);
    expect(found(`${filter(4)} or body contains "a"`, { q: textOf(most) })).toEqual([`q: ${TOO_MUCH}`]);
    expect(found(filter(50), { q: textOf(20) })).toEqual([]);
  });

  it('of another type has the error of its type alone', () => {
    expect(found('body contains $q and title = $t', { q: textOf(most + 1), t: 5 })).toEqual(['t: expected string']);
  });
});

describe('a stated needle', () => {
  it.each([
    [`body contains "${textOf(most)}"`, []],
    [`body contains "${textOf(most + 1)}"`, ['needle_too_long']],
    [`body ends with "${textOf(most + 1)}"`, []],
    [`labels contains "${textOf(most + 1)}"`, []],
    ['title contains body', []],
    [Array.from({ length: 4 }, () => `body contains "${textOf(most)}"`).join(' or '), []],
    [Array.from({ length: 5 }, () => `body contains "${textOf(most - 1)}"`).join(' or '), ['needle_too_long']],
  ])('%.30s', (filter, expected) => {
    expect(found(filter)).toEqual(expected);
  });
});
