/** Holds the figures of `npm run figures` that need no running service. */
import { resolve } from 'node:path';
import { describe, expect, test } from 'vitest';
import {
  exactDuplicates,
  fileNamesUsedTwice,
  inDatabase,
  LIMITS_OF_SHAPE,
  longFunctions,
  namesDeclaredTwice,
  type Repeated,
  shapeOf,
  totalLines,
} from '../../scripts/figures/shape.ts';
import { readSource } from '../../scripts/figures/source.ts';

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

  test(`declares few names in several files: at most ${LIMITS_OF_SHAPE.names}`, () => {
    const found = namesDeclaredTwice(source);
    expect(found.size, listOf(found)).toBeLessThanOrEqual(LIMITS_OF_SHAPE.names);
  });

  test(`names few files alike: at most ${LIMITS_OF_SHAPE.fileNames}`, () => {
    const found = fileNamesUsedTwice(source);
    expect(found.size, listOf(found)).toBeLessThanOrEqual(LIMITS_OF_SHAPE.fileNames);
  });

  test(`holds the database room small: at most ${LIMITS_OF_SHAPE.databaseLines} lines`, () => {
    expect(totalLines(source.filter(inDatabase))).toBeLessThanOrEqual(LIMITS_OF_SHAPE.databaseLines);
  });
});
