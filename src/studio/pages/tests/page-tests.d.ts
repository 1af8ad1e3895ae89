/** `src/workbench/page/page-tests.ts`, whose types need Node. The bundle resolves the name. */
declare module 'bylaw:page-tests' {
  type TestAnswer = import('./test-answer.ts').TestAnswer;
  type TextIssue = { readonly file: string; readonly line: number; readonly message: string };
  interface PageTests {
    readonly text: string;
    readonly files: Readonly<Record<string, string>>;
    readonly mutate: boolean;
  }
  export function runInPage(
    tests: PageTests,
  ): Promise<{ readonly results: TestAnswer } | { readonly issues: readonly TextIssue[] }>;
}
