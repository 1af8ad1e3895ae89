/** The statements of a schema that is about to be served. */
import { DEFAULT_BUDGET } from '../../policy/analyse/solve/solve.ts';
import type { Schema } from '../../schema/model/model.ts';

/** A sentence for each refuted statement. Without statements, the solver is not loaded. */
export async function refutedStatements(schema: Schema): Promise<readonly string[]> {
  if (schema.statements.length === 0) return [];
  const { proveStatements } = await import('../../workbench/prove/decide-statements.ts');
  const { refutation } = await import('../../workbench/prove/prove-document.ts');
  const results = await proveStatements(schema, { budget: DEFAULT_BUDGET });
  return results.filter(({ verdict }) => verdict === 'refuted').map((result) => refutation(result, schema.file));
}
