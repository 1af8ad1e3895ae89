import { describe, expect, test } from 'vitest';
import { entityTagOf, isUnchanged, versionsOf } from '../../src/http/answer/send.ts';

const TAG = entityTagOf('7.ab', '{"a":1}');

test('a tag names the version and the representation', () => {
  expect(TAG).toMatch(/^"7\.ab\.[\w-]{16}"$/);
  expect(
    [entityTagOf('7.ab', '{"a":1}'), entityTagOf('7.ab', '{"a":2}'), entityTagOf('8.ab', '{"a":1}')].map(
      (tag) => tag === TAG,
    ),
  ).toEqual([true, false, false]);
});

describe('If-Match', () => {
  test.each([
    [undefined, undefined],
    ['*', undefined],
    [' * ', undefined],
    [TAG, ['7.ab']],
    [`"other", ${TAG}`, ['7.ab']],
    [`W/${TAG}`, []],
    ['7.ab', []],
    ['', []],
  ] as const)('the header %j allows the versions %j', (header, versions) => {
    expect(versionsOf(header)).toEqual(versions);
  });
});

describe('If-None-Match', () => {
  test.each([
    [undefined, false],
    ['*', true],
    [TAG, true],
    [`W/${TAG}`, true],
    [`"x", ${TAG}`, true],
    ['"7.ab.0000000000000000"', false],
  ] as const)('the header %j gives unchanged %j', (header, unchanged) =>
    expect(isUnchanged(header, TAG)).toBe(unchanged),
  );
});
