/** The strict reader of bodies takes what JSON.parse takes, less what can be read in two ways. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { readJsonBody } from '../../src/http/body.ts';
import { processorTimeOf } from '../support/processor-time.ts';

test('the reader reads any value as JSON.parse does', () => {
  fc.assert(
    fc.property(fc.json({ maxDepth: 6 }), (text) => {
      expect(readJsonBody(Buffer.from(text))).toEqual(JSON.parse(text));
    }),
    { numRuns: 2_000 },
  );
});

test('the reader finds a duplicate key at any depth and with any escapes', () => {
  const escaped = (key: string): string =>
    [...key].map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`).join('');
  const key = fc.string({ unit: 'grapheme-ascii', minLength: 1, maxLength: 5 });
  fc.assert(
    fc.property(key, fc.json({ maxDepth: 3 }), fc.json({ maxDepth: 3 }), (name, before, inside) => {
      const twice = `{${JSON.stringify(name)}:${inside},"${escaped(name)}":${before}}`;
      const text = `[${before},{"x":[${twice}]}]`;
      expect(() => readJsonBody(Buffer.from(text))).toThrow('given twice');
    }),
    { numRuns: 1_000 },
  );
});

test('the reader takes time that grows with the length of the body alone', () => {
  const megabyte = 1 << 20;
  for (const text of [
    `"${'\\"'.repeat(megabyte / 2)}"`,
    '"\\'.repeat(megabyte / 2),
    `${'['.repeat(megabyte / 2)}${']'.repeat(megabyte / 2)}`,
    `[${'"",'.repeat(megabyte / 3)}""]`,
  ]) {
    const took = processorTimeOf(() => {
      try {
        readJsonBody(Buffer.from(text));
      } catch {
        // Some of them are refused; how fast is the question.
      }
    });
    expect(took).toBeLessThan(2_000);
  }
});
