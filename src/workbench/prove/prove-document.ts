/** The results of statements as JSON, and as lines for a terminal. */
import type { World } from '../../policy/analyse/solve/world.ts';
import type { Schema, Statement } from '../../schema/model/model.ts';
import { worldDocument } from '../world-document.ts';
import { worldLines } from '../world-lines.ts';
import { passingTestOfWorld } from '../world-test.ts';
import type { StatementResult } from './decide-statements.ts';

export const proofDocument = (results: readonly StatementResult[], file: string, schema: Schema): object => ({
  statements: results.map(({ statement, verdict, counterexample, action }) => ({
    file,
    line: statement.line,
    column: statement.column,
    kind: statement.kind,
    text: statement.text,
    ...(statement.why !== undefined && { why: statement.why }),
    verdict,
    ...(counterexample && { counterexample: counterexampleDocument({ ...statement, action }, counterexample, schema) }),
  })),
});

/** `test`: a file that holds the decision of the rules where one test can say it. */
function counterexampleDocument(refuted: RefutedStatement, world: World, schema: Schema): object {
  const { kind, member, implied, action } = refuted;
  const isOneDecision = member === undefined && implied === undefined;
  const asked = { expected: kind === 'never' ? 'yes' : 'no', isRestore: action === 'restore' } as const;
  const test = isOneDecision ? passingTestOfWorld(world, schema, asked) : undefined;
  return { action, ...worldDocument(world, schema), test: test ?? null };
}

type RefutedStatement = Statement & Pick<StatementResult, 'action'>;

const statementTitle = ({ statement: { kind, text } }: StatementResult): string => `${kind}: ${text}`;

/** A sentence for the log of a service. */
export const refutation = (result: StatementResult, file: string): string => {
  const { line, why } = result.statement;
  const reason = why === undefined ? '' : ` (${why})`;
  const statement = `${file}:${line}: the statement \`${statementTitle(result)}\``;
  return `${statement} does not hold${reason}; \`bylaw prove\` prints a counterexample`;
};

export function proofLines(results: readonly StatementResult[], schema: Schema): readonly string[] {
  const lines = results.flatMap((result) => {
    const { statement, verdict, counterexample, action, asking } = result;
    if (verdict === 'proven') return [`proven   ${statementTitle(result)}`];
    const place = `${schema.file}:${statement.line}:${statement.column}`;
    return [
      `${verdict.padEnd(8)} ${statementTitle(result)}`,
      `  at ${place}`,
      ...(statement.why === undefined ? [] : [`  why: ${statement.why}`]),
      ...(counterexample === undefined || asking === undefined
        ? [`  the time of --budget was not enough, or the rules read what the solver does not know`]
        : [`  ${action}:`, ...worldLines(counterexample, asking, schema).map((line) => `    ${line}`)]),
    ];
  });
  const count = (wanted: StatementResult['verdict']): number =>
    results.filter(({ verdict }) => verdict === wanted).length;
  return [...lines, `${count('proven')} proven, ${count('refuted')} refuted, ${count('unknown')} unknown`];
}
