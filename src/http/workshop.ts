/** The work of `bylaw dev` for pages: it alone has the files of the author. */
import type { SchemaIssue } from '../schema/file/issue.ts';

/** A text that cannot be used, with the place of each error. */
export interface UnusableText {
  readonly file: string;
  readonly text: string;
  readonly issues: readonly SchemaIssue[];
}

export interface Workshop {
  /**
   * Writes the text into the schema file, and serves it as after a save of an editor. → `saved`; `changed`: the file has
   * another version; otherwise the reason why the last good schema stays.
   */
  saveSchema(text: string, version: string): Promise<'saved' | 'changed' | { readonly reason: string }>;
  /** The texts of the policy tests of the project, by name. */
  testFiles(): ReadonlyMap<string, string>;
  /** Runs policy tests by name, and the mutants of all rules if they are wanted. → the document of `bylaw test --json`, or the texts with errors. */
  runTests(
    files: ReadonlyMap<string, string>,
    withMutants: boolean,
  ): Promise<{ readonly results: object } | { readonly unusable: readonly UnusableText[] }>;
}
