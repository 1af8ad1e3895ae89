/** The document of `bylaw test --json`. */
import { transport } from '../../data/api-service.ts';

export interface ShownTestResult {
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
  readonly column: number;
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
  /** Given in the page: expectations that only a database decides. */
  readonly undecided?: number;
  readonly tests: readonly ShownTestResult[];
  readonly mutants?: readonly RuleMutant[];
  readonly coverage?: { readonly policies: readonly CoveredPolicy[] };
}

interface AskedTests {
  readonly files: Readonly<Record<string, string>>;
  readonly mutate: boolean;
}

/** The files of the project, which `bylaw dev` has. Throws BylawError. */
export async function fetchProjectTests(): Promise<AskedTests['files']> {
  return (await transport.json<{ readonly data: Pick<AskedTests, 'files'> }>('/api/_test')).data.files;
}

/** The service runs the tests by the predicate and by SQL. Throws BylawError. */
export async function runOnService({ files, mutate }: AskedTests): Promise<TestAnswer> {
  const body = { files, ...(mutate && { mutate }) };
  return (await transport.json<{ readonly data: TestAnswer }>('/api/_test', { method: 'POST', body })).data;
}

/** The page runs the tests by the predicate alone. Throws TestTextErrors. @param text of the schema */
export async function testsHere(text: string, asked: AskedTests): Promise<TestAnswer> {
  const { runInPage } = await import('bylaw:page-tests');
  const run = await runInPage({ text, ...asked });
  if ('issues' in run)
    throw new TestTextErrors(run.issues.map(({ file, line, message }) => `${file}:${line}: ${message}`));
  return run.results;
}

/** The schema or the tests have errors. */
export class TestTextErrors extends Error {
  readonly errors: readonly string[];

  constructor(errors: readonly string[]) {
    super('the texts have errors');
    this.errors = errors;
  }
}
