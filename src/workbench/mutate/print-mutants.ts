/** Mutants as lines of text: those that survive with a test to paste, those that are open apart. */
import type { Mutant } from './mutate.ts';

/** `texts`: the files of tests that were run. */
export function printMutants(mutants: readonly Mutant[], texts: readonly string[]): string {
  const of = (verdict: Mutant['verdict']): readonly Mutant[] => mutants.filter((each) => each.verdict === verdict);
  const [survived, open] = [of('survived'), of('unknown')];
  return [
    ...survived.map((mutant) => `${mutantLine('survived', mutant)}\n${testLines(mutant, texts)}`),
    ...open.map((mutant) => mutantLine('unknown ', mutant)),
    `${of('killed').length} mutants killed, ${survived.length} survived, ${open.length} unknown\n`,
  ].join('\n');
}

const inOneLine = (text: string): string => text.replaceAll(/\s+/g, ' ');

const mutantLine = (word: string, { file, line, column, from, to }: Mutant): string =>
  `${word} ${file}:${line}:${column}  ${inOneLine(from)}\n                     became  ${inOneLine(to)}`;

/** The test alone if its rows are in a file already, else a file of its own. */
function testLines({ test }: Mutant, texts: readonly string[]): string {
  const text = test ?? '';
  const at = text.lastIndexOf('\ntests:\n');
  const rows = text.slice(0, at).trimEnd();
  const isOfFile = rows !== '' && texts.some((each) => each.startsWith(rows));
  if (isOfFile) return `  this test shows the difference:\n${text.slice(at + '\ntests:\n'.length).trimEnd()}`;
  return `  this file of tests shows the difference:\n${text.trimEnd().replaceAll(/^/gm, '    ')}`;
}
