/** Code lenses: how many tests are about a rule, and which of its mutants no test notices, after a run of the tests. */
import { counted } from '../../counted.ts';
import { type PlacedRule, placedRules } from '../rule-places.ts';
import type { ResultsDocument } from '../test/results-document.ts';
import type { SchemaText } from './schema-text.ts';
import type { TextRange } from './text-positions.ts';

/** The command of the server that runs the tests beside a schema. */
export const TEST_COMMAND = 'bylaw.test';

interface CodeLens {
  readonly range: TextRange;
  readonly command: { readonly title: string; readonly command: string; readonly arguments: readonly string[] };
}

/** @param results of the latest run; undefined: the tests have not run */
export function codeLenses(file: SchemaText, uri: string, results: ResultsDocument | undefined): readonly CodeLens[] {
  // While the text has errors, the places of rules are those of a former text.
  if (file.schema === undefined || file.schema.text !== file.text) return [];
  return placedRules(file.schema, file.text).map((placed) => {
    const { line, column } = placed.placeOf(placed.rule.checked);
    const start = { line: line - 1, character: column - 1 };
    const title = results === undefined ? 'run the tests' : lensTitle(placed, results);
    return { range: { start, end: start }, command: { title, command: TEST_COMMAND, arguments: [uri] } };
  });
}

function lensTitle(placed: PlacedRule, { tests, mutants = [] }: ResultsDocument): string {
  const own = tests.filter((test) => testsRule(test, placed));
  const failed = own.filter(({ ok }) => !ok).length;
  const alive = mutants.filter(({ path, verdict }) => path === placed.path && verdict === 'survived').length;
  const parts = [counted(own.length, 'test'), ...(failed > 0 ? [`${failed} failed`] : [])];
  return [...parts, `${counted(alive, 'mutant')} alive`].join(', ');
}

/** Lists and reads share the rules of a `view`. */
function testsRule({ collection, action, field }: ResultsDocument['tests'][number], placed: PlacedRule): boolean {
  if (collection !== placed.collection) return false;
  if (placed.check !== undefined) return action === 'create' || action === 'update';
  if (placed.member !== undefined && placed.action === 'read') return field === placed.member;
  return action === placed.action || (placed.path.includes('.access.view') && action === 'read');
}
