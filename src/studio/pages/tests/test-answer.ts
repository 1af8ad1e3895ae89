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
export interface TestAnswer {
  readonly passed: number;
  readonly failed: number;
  readonly tests: readonly TestResult[];
  readonly coverage?: { readonly policies: readonly CoveredPolicy[] };
}

export const runTests = async (files: Readonly<Record<string, string>>): Promise<TestAnswer> =>
  (await transport.json<{ readonly data: TestAnswer }>('/api/_test', { method: 'POST', body: { files } })).data;
