/** The document of `bylaw test --json`. */
import { transport } from '../../data/api-service.ts';

export interface TestResult {
  readonly file: string;
  readonly line: number;
  readonly collection: string;
  readonly record: string | null;
  readonly action: string;
  readonly field?: string;
  readonly as: string;
  readonly expected: unknown;
  readonly actual: unknown;
  readonly ok: boolean;
}
export interface CoveredLeaf {
  readonly text: string;
  readonly line: number;
  /** Counts; null: no caller and record can give the value. */
  readonly true: number | null;
  readonly false: number | null;
  readonly unknown: number | null;
}
export interface CoveredPolicy {
  readonly collection: string;
  readonly action: string;
  readonly path: string;
  readonly leaves: readonly CoveredLeaf[];
}
/** A change of a rule in one place. */
export interface RuleMutant {
  readonly path: string;
  readonly line: number;
  readonly from: string;
  readonly to: string;
  readonly verdict: 'killed' | 'survived' | 'unknown';
  /** A whole file with a test that notices the change. */
  readonly test: string | null;
}
export interface TestAnswer {
  readonly passed: number;
  readonly failed: number;
  readonly tests: readonly TestResult[];
  readonly mutants?: readonly RuleMutant[];
  readonly coverage?: { readonly policies: readonly CoveredPolicy[] };
}

export async function runTests(files: Readonly<Record<string, string>>, mutate: boolean): Promise<TestAnswer> {
  const body = { files, ...(mutate && { mutate }) };
  return (await transport.json<{ readonly data: TestAnswer }>('/api/_test', { method: 'POST', body })).data;
}
