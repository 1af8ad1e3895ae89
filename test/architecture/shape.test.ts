/** Holds the figures of `npm run figures` that need no running service. A value above its limit is a ceiling: lower it with the code. */
import { resolve } from 'node:path';
import { describe, expect, test } from 'vitest';
import {
  exactDuplicates,
  fileNamesUsedTwice,
  LIMITS_OF_SHAPE,
  longFunctions,
  namesDeclaredTwice,
  type Repeated,
  shapeOf,
} from '../../scripts/figures/shape.ts';
import { readSource } from '../../scripts/figures/source.ts';

/** Above their limits. */
const NAMES_TODAY = 255;
const FILE_NAMES_TODAY = 25;

const source = readSource(resolve(import.meta.dirname, '../..'), 'src/**/*.{ts,tsx}', 'grammar/**/*.ts');
const listOf = (repeated: Repeated): string =>
  [...repeated].map(([name, paths]) => `${name}: ${paths.join(', ')}`).join('\n');

describe('the shape of the source', () => {
  test('keeps functions short', () => {
    const found = longFunctions(shapeOf(source)).map(({ place, lines }) => `${place}: ${lines} lines`);
    expect(found).toHaveLength(LIMITS_OF_SHAPE.longFunctions);
  });

  test('repeats no six lines', () => {
    expect(exactDuplicates(source)).toHaveLength(LIMITS_OF_SHAPE.duplicates);
  });

  test(`declares few names in several files: at most ${NAMES_TODAY}, the limit is ${LIMITS_OF_SHAPE.names}`, () => {
    const found = namesDeclaredTwice(source);
    expect(found.size, listOf(found)).toBeLessThanOrEqual(NAMES_TODAY);
  });

  test(`names few files alike: at most ${FILE_NAMES_TODAY}, the limit is ${LIMITS_OF_SHAPE.fileNames}`, () => {
    const found = fileNamesUsedTwice(source);
    expect(found.size, listOf(found)).toBeLessThanOrEqual(FILE_NAMES_TODAY);
  });
});
