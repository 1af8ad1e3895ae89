/** `bylaw prove`: decides the statements of the schema about all rules together, each refutation with a counterexample. */
import { schemaFileOf } from '../config.ts';
import type { Schema } from '../schema/model/model.ts';
import { ReplayDisagreement } from '../workbench/decided-by-sql.ts';
import { GUEST_NOTE } from '../workbench/guest-note.ts';
import { withReplays } from '../workbench/memory-database.ts';
import { proveStatements, type StatementResult } from '../workbench/prove/decide-statements.ts';
import { proofDocument, proofLines } from '../workbench/prove/prove-document.ts';
import { budgetOf } from './support/budget.ts';
import type { Arguments, Command, Io } from './support/command.ts';
import { reportDisagreement } from './support/disagreement.ts';
import { requireSchema } from './support/workspace.ts';

export const command: Command = {
  name: 'prove',
  summary: 'decides the statements of `prove:` in the schema: what no caller may ever do, and what callers always may',
  settings: ['schema'],
  flags: {
    json: { about: 'prints one JSON document' },
    'allow-unknown': { about: 'exits with 0 if no statement is refuted, though some may be unknown' },
    budget: { value: 'MS', about: 'the time for a question; what it does not decide is unknown', default: '50' },
  },
  run,
};

async function run(args: Arguments, io: Io): Promise<number> {
  const budget = budgetOf(args);
  const file = schemaFileOf(args.flags, io.env);
  const schema = requireSchema(file, io, () => false);
  try {
    const results = await withReplays((ask) => proveStatements(schema, { budget, ask }));
    if (args.has('json')) io.stdout.write(`${JSON.stringify(proofDocument(results, file, schema), undefined, 2)}\n`);
    else io.stdout.write(`${resultLines(results, schema).join('\n')}\n`);
    const failing = args.has('allow-unknown') ? ['refuted'] : ['refuted', 'unknown'];
    return results.some(({ verdict }) => failing.includes(verdict)) ? 1 : 0;
  } catch (error) {
    if (!(error instanceof ReplayDisagreement)) throw error;
    return reportDisagreement('prove', error, io);
  }
}

function resultLines(results: readonly StatementResult[], schema: Schema): readonly string[] {
  if (results.length === 0)
    return ['the schema has no statements; docs/testing-policies.md shows how to write them under `prove:`'];
  const isOfGuest = results.some(({ counterexample }) => counterexample?.isGuest === true);
  return [...proofLines(results, schema), ...(isOfGuest && !schema.guests ? [GUEST_NOTE] : [])];
}
