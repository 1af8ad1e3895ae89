/** Mutants as lines of text: those that survive with a test to paste, those that are open apart. */
import type { Mutant } from './mutate.ts';

export function printMutants(mutants: readonly Mutant[]): string {
  const of = (verdict: Mutant['verdict']): readonly Mutant[] => mutants.filter((each) => each.verdict === verdict);
  const [survived, open] = [of('survived'), of('unknown')];
  return [
    ...survived.map((mutant) => `${mutantLine('survived', mutant)}\n${testLines(mutant)}`),
    ...open.map((mutant) => mutantLine('unknown ', mutant)),
    `${of('killed').length} mutants killed, ${survived.length} survived, ${open.length} unknown\n`,
  ].join('\n');
}

const inOneLine = (text: string): string => text.replaceAll(/\s+/g, ' ');

const mutantLine = (word: string, { file, line, column, from, to }: Mutant): string =>
  `${word} ${file}:${line}:${column}  ${inOneLine(from)}\n                     became  ${inOneLine(to)}`;

/** The test alone: its rows are in the file already. */
function testLines({ test }: Mutant): string {
  const text = test ?? '';
  const at = text.lastIndexOf('\ntests:\n');
  return `  this test shows the difference:\n${text.slice(at + '\ntests:\n'.length).trimEnd()}`;
}
