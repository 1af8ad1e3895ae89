import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { isScalar, parseDocument, Scalar, stringify } from 'yaml';
import { offsetsOf } from '../../src/schema/file/scalar.ts';

const STYLES = [
  Scalar.PLAIN,
  Scalar.QUOTE_SINGLE,
  Scalar.QUOTE_DOUBLE,
  Scalar.BLOCK_LITERAL,
  Scalar.BLOCK_FOLDED,
] as const;

function written(value: string, style: Scalar.Type, lineWidth: number): string {
  const scalar = new Scalar(value);
  scalar.type = style;
  return stringify({ before: 1, policy: scalar }, { lineWidth });
}

describe('the offsets of a scalar', () => {
  it('offsets find every letter of the value in the file, in every style and at every width', () => {
    const words = fc.array(
      fc.constantFrom('@record.title', '=', '"it\'s"', 'and', '(x', 'or', 'y)', '"a  b"', '😀', '\\n'),
      { minLength: 1, maxLength: 30 },
    );
    fc.assert(
      fc.property(words, fc.constantFrom(...STYLES), fc.integer({ min: 20, max: 90 }), (parts, style, lineWidth) => {
        const value = parts.join(' ');
        const text = written(value, style, lineWidth);
        const node = parseDocument(text).get('policy', true);
        if (!isScalar(node)) throw new Error('no scalar');
        const offsets = offsetsOf(text, node);
        const read = String(node.value);
        expect(offsets).toHaveLength(read.length + 1);
        for (let i = 0; i < read.length; i++) {
          expect(offsets[i]!).toBeLessThanOrEqual(offsets[i + 1]!);
          // Escapes represent letters that the file does not have.
          if (/[\s"'\\]/.test(read[i]!) || /[\ud800-\udfff]/.test(read[i]!)) continue;
          expect(text[offsets[i]!]).toBe(read[i]);
        }
      }),
      { numRuns: 500 },
    );
  });

  it('offsets count doubled quotes once', () => {
    const text = "'a''''b'";
    const node = parseDocument(text).contents;
    if (!isScalar(node)) throw new Error('no scalar');
    expect([node.value, offsetsOf(text, node)]).toEqual(["a''b", [1, 2, 4, 6, 7]]);
  });

  it('offsets skip escapes', () => {
    const text = '"\\u0041\\x42\\U0001F600\\"c\\td\\\n  e"';
    const node = parseDocument(text).contents;
    if (!isScalar(node)) throw new Error('no scalar');
    expect(node.value).toBe('AB😀"c\tde');
    expect(offsetsOf(text, node)).toEqual([1, 7, 11, 11, 21, 23, 24, 26, 31, 32]);
  });
});
