/** Runs a file of policy tests over a schema, on a database in memory. */
import { testToolsOf } from '../../src/cli/test.ts';
import type { Database } from '../../src/database/contract.ts';
import { parseSchema } from '../../src/schema/load.ts';
import { printResults } from '../../src/workbench/test/print-results.ts';
import { readTests } from '../../src/workbench/test/read-tests.ts';
import { runTests } from '../../src/workbench/test/run-tests.ts';

interface AskedTests {
  /** The text of the schema file. */
  readonly schema: string;
  readonly tests: string;
}

/** → what `bylaw test` prints; the issues of a file that cannot be used */
export async function runPolicyTests(db: Database, { schema: text, tests: given }: AskedTests): Promise<string> {
  const { schema, issues } = parseSchema(text);
  if (schema === undefined) return issues.map(({ message }) => message).join('\n');
  const tools = await testToolsOf(db, schema);
  const file = 'adopted.policy.yaml';
  const { tests, issues: faults } = readTests(given, file, tools.store.schema);
  if (tests === undefined) return faults.map(({ line, message }) => `${line}: ${message}`).join('\n');
  const { results } = await runTests(tests, tools);
  return printResults([{ file, names: tests.names, results }]);
}
