/** `bylaw test`: a thousand expectations, the price of coverage, and the mutations of the sample. */
import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { testToolsOf } from '../src/cli/test.ts';
import { openDatabase } from '../src/database/open-database.ts';
import { parseSchema } from '../src/schema/load.ts';
import type { Schema } from '../src/schema/model/model.ts';
import { CoverageCounter } from '../src/workbench/coverage/coverage.ts';
import { mutantsOf } from '../src/workbench/mutate/mutate.ts';
import { placedRules } from '../src/workbench/rule-places.ts';
import type { TestTools } from '../src/workbench/test/database-outcome.ts';
import { readTests } from '../src/workbench/test/read-tests.ts';
import { type RunOptions, runTests } from '../src/workbench/test/run-tests.ts';
import type { Bench, BenchOptions } from './support/bench.ts';
import { verdict } from './support/measure.ts';

const sampleFile = (name: string): string => readFileSync(resolve(import.meta.dirname, '..', name), 'utf8');

/** A document has 16 expectations. */
const DOCUMENTS = 63;
const EXPECTATIONS = 16 * DOCUMENTS;

function manyTests(): string {
  const names = Array.from({ length: DOCUMENTS }, (_, i) => `d${i}`);
  return [
    'as: { ada: { roles: [member] }, eve: { roles: [member] }, root: { roles: [admin] } }',
    'rows:\n  documents:',
    ...names.map((name) => `    ${name}: { owner: ada }`),
    'tests:',
    ...names.map(
      (name) => `  - documents: ${name}
    ada: { list: yes, read: yes, update: yes, delete: yes }
    root: { list: no, read: no, update: no, delete: yes }
    eve: none
    guest: none`,
    ),
  ].join('\n');
}

async function run({ rounds }: BenchOptions): Promise<void> {
  const begin = performance.now();
  const text = sampleFile('bylaw.yaml');
  const schema = parseSchema(text).schema!;
  const db = await openDatabase({});
  try {
    const tools = await testToolsOf(db, schema);
    await timed(tools, { only: 'list as eve' });
    verdict('start, up to the first expectation', (performance.now() - begin) / 1000, { limit: 2.5, unit: 's' });
    const pairs: { readonly plain: number; readonly covered: number }[] = [];
    for (let i = 0; i < rounds; i++) {
      const counter = new CoverageCounter();
      const plain = await timed(tools, {});
      const covered = await timed(tools, {
        onValue: (node, value) => counter.count(node, value),
        onRules: (rules) => counter.countRules(rules),
      });
      pairs.push({ plain, covered });
    }
    const least = (of: readonly number[]): number => Math.min(...of);
    const plain = least(pairs.map((pair) => pair.plain));
    verdict('1,000 expectations', (plain / EXPECTATIONS) * 1000, { limit: 1, unit: 's' });
    verdict('with coverage', least(pairs.map((pair) => pair.covered)) / plain, { limit: 1.3, unit: '×' });
    await mutateSample(tools, schema, text);
  } finally {
    await db.close();
  }
}

/** → seconds. */
async function timed(tools: TestTools, options: RunOptions): Promise<number> {
  const { tests } = readTests(manyTests(), 'many.policy.yaml', tools.store.schema);
  const begin = performance.now();
  const { results } = await runTests(tests!, tools, options);
  if (!results.every(({ isOk }) => isOk)) throw new Error('an expectation of the bench fails');
  return (performance.now() - begin) / 1000;
}

async function mutateSample(tools: TestTools, schema: Schema, text: string): Promise<void> {
  const file = sampleFile('bylaw.policy.yaml');
  const { tests } = readTests(file, 'bylaw.policy.yaml', schema);
  const { world } = await runTests(tests!, tools);
  const begin = performance.now();
  const rules = placedRules(schema, text);
  const mutants = await mutantsOf({
    store: tools.store,
    schema,
    rules,
    worlds: [{ tests: tests!, world, text: file }],
  });
  const seconds = (performance.now() - begin) / 1000;
  console.log(`${mutants.length} mutants, ${Math.round((mutants.length / seconds) * 60)} a minute`);
  verdict('mutate the sample', seconds, { limit: 30, unit: 's' });
}

const bench: Bench = {
  name: 'workbench',
  question: 'how long do tests of policies take, with coverage and with mutations?',
  run,
};
export default bench;
