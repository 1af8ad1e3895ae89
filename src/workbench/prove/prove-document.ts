/** The results of statements as JSON, and as lines for a terminal. */
import { worldDocument, worldLines } from '../world-document.ts';
import type { StatementResult } from './decide-statements.ts';

export const proofDocument = (results: readonly StatementResult[], file: string): object => ({
  statements: results.map(({ statement, verdict, counterexample }) => ({
    file,
    line: statement.line,
    column: statement.column,
    kind: statement.kind,
    text: statement.text,
    ...(statement.why !== undefined && { why: statement.why }),
    verdict,
    ...(counterexample && { counterexample: { action: counterexample.action, ...worldDocument(counterexample) } }),
  })),
});

const statementTitle = ({ statement: { kind, text } }: StatementResult): string => `${kind}: ${text}`;

/** A sentence for the log of a service. */
export const refutation = (result: StatementResult, file: string): string => {
  const { line, why } = result.statement;
  const reason = why === undefined ? '' : ` (${why})`;
  const statement = `${file}:${line}: the statement \`${statementTitle(result)}\``;
  return `${statement} does not hold${reason}; \`bylaw prove\` prints a counterexample`;
};

export function proofLines(results: readonly StatementResult[], file: string): readonly string[] {
  const lines = results.flatMap((result) => {
    const { statement, verdict, counterexample } = result;
    if (verdict === 'proven') return [`proven   ${statementTitle(result)}`];
    const place = `${file}:${statement.line}:${statement.column}`;
    return [
      `${verdict.padEnd(8)} ${statementTitle(result)}`,
      `  at ${place}`,
      ...(statement.why === undefined ? [] : [`  why: ${statement.why}`]),
      ...(counterexample === undefined
        ? [`  the time of --budget was not enough, or the rules read what the solver does not know`]
        : [`  ${counterexample.action}:`, ...worldLines(counterexample).map((line) => `    ${line}`)]),
    ];
  });
  const count = (wanted: StatementResult['verdict']): number =>
    results.filter(({ verdict }) => verdict === wanted).length;
  return [...lines, `${count('proven')} proven, ${count('refuted')} refuted, ${count('unknown')} unknown`];
}
