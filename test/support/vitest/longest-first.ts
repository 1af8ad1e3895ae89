/**
 * Starts the files tagged `long` before the others: a long file that starts last runs alone, while the
 * other worker idles. The order of vitest itself needs the durations of an earlier run, which a fresh clone does not have.
 */
import { readFileSync } from 'node:fs';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

const isLong = (file: string): boolean => /^\/\/ @module-tag long$/m.test(readFileSync(file, 'utf8'));

export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    const rank = new Map(sorted.map(({ moduleId }) => [moduleId, isLong(moduleId) ? 0 : 1]));
    return sorted.toSorted((a, b) => rank.get(a.moduleId)! - rank.get(b.moduleId)!);
  }
}
