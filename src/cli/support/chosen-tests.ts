/** `bylaw test --only TEXT`: the expectations whose title or file contains the text. */
import { ConfigError } from '../../config.ts';
import { titleOf } from '../../workbench/test/expectation.ts';
import type { PolicyTests } from '../../workbench/test/read-tests.ts';

const NEAREST_TITLES = 3;

/** Throws ConfigError if no title contains the text, so that a mistyped text does not pass for a run without failures. */
export function chosenTests(files: readonly PolicyTests[], text: string): readonly PolicyTests[] {
  const chosen = files.map((tests) => ({
    ...tests,
    expectations: tests.expectations.filter((each) => `${tests.file}: ${titleOf(each)}`.includes(text)),
  }));
  if (chosen.some(({ expectations }) => expectations.length > 0)) return chosen;
  const titles = new Set(files.flatMap(({ expectations }) => expectations.map(titleOf)));
  const near = [...titles].toSorted((a, b) => editsWithin(text, a) - editsWithin(text, b)).slice(0, NEAREST_TITLES);
  const hint = near.length === 0 ? 'the files have no tests' : ['the nearest titles are', ...near].join('\n  ');
  throw new ConfigError([`--only: no title and no file contains \`${text}\`; ${hint}`]);
}

/**
 * The edits from the text to the part of the title that is nearest to it, whatever the case of letters.
 * Source: Sellers, "The theory and computation of evolutionary distances", 1980.
 */
function editsWithin(text: string, title: string): number {
  const [wanted, found] = [text.toLowerCase(), title.toLowerCase()];
  let above = Array.from({ length: found.length + 1 }, () => 0);
  for (let i = 1; i <= wanted.length; i++) {
    const row = [i];
    for (let j = 1; j <= found.length; j++) {
      const changed = above[j - 1]! + (wanted[i - 1] === found[j - 1] ? 0 : 1);
      row.push(Math.min(above[j]! + 1, row[j - 1]! + 1, changed));
    }
    above = row;
  }
  return Math.min(...above);
}
