/** `bylaw test` with coverage and mutations, `bylaw prove`, `bylaw diff`, and the answer of `bylaw lsp` to a change. */
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { testToolsOf } from '../src/cli/test.ts';
import type { Database } from '../src/database/contract.ts';
import { openDatabase } from '../src/database/open-database.ts';
import { compareRules } from '../src/policy/analyse/solve/solve.ts';
import { compilePolicy } from '../src/policy/compile.ts';
import { parseSchema } from '../src/schema/load.ts';
import type { Schema } from '../src/schema/model/model.ts';
import { CoverageCounter } from '../src/workbench/coverage/coverage.ts';
import { compareSchemas } from '../src/workbench/diff/compare-schemas.ts';
import { LanguageServer } from '../src/workbench/lsp/language-server.ts';
import { mutantsOf } from '../src/workbench/mutate/mutate.ts';
import { proveStatements } from '../src/workbench/prove/decide-statements.ts';
import { placedRules } from '../src/workbench/rule-places.ts';
import type { TestTools } from '../src/workbench/test/database-outcome.ts';
import { fillWorld } from '../src/workbench/test/fill-world.ts';
import { readTests } from '../src/workbench/test/read-tests.ts';
import { type RunOptions, runTests } from '../src/workbench/test/run-tests.ts';
import type { Bench, BenchOptions } from './support/bench.ts';
import { builtMain } from './support/built.ts';
import { verdict } from './support/measure.ts';

const ROOT = resolve(import.meta.dirname, '..');
const STARTS = 5;
const sampleFile = (name: string): string => readFileSync(join(ROOT, name), 'utf8');

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
  const starts = await leastOf(Math.min(rounds, STARTS), testSample);
  verdict('`bylaw test` of one expectation, as a process', starts, { limit: 2.5, unit: 's' });
  const text = sampleFile('bylaw.yaml');
  const schema = parseSchema(text).schema!;
  const db = await openDatabase({});
  try {
    const tools = await testToolsOf(db, schema);
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
    await proveStatementsOfSample(text, rounds);
    await diffSample(db, schema, text);
    changesInEditor(text, rounds);
  } finally {
    await db.close();
  }
}

const runFile = promisify(execFile);

/** Runs one expectation of the sample as the package does. */
const testSample = () => runFile(process.execPath, [builtMain(), 'test', '--only', 'ben'], { cwd: ROOT });

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
    fill: (tests) => fillWorld(tools.store, tests),
    schema,
    rules,
    worlds: [{ tests: tests!, world, text: file }],
  });
  const seconds = (performance.now() - begin) / 1000;
  console.log(`${mutants.length} mutants`);
  verdict('mutate the sample', seconds, { limit: 30, unit: 's' });
  verdict('2,000 mutants', (seconds / mutants.length) * 2000, { limit: 60, unit: 's' });
}

const STATEMENTS = [
  "never: 'guest can read documents'",
  "never: 'member without admin can read users where @record.id != @request.auth.id and @record.email is null'",
  "always: 'who can update documents can read them'",
  "always: 'admin can delete documents'",
  "never: 'anyone can update documents where @next.owner != @record.owner'",
];

async function proveStatementsOfSample(text: string, rounds: number): Promise<void> {
  const all = Array.from({ length: 50 }, (_, i) => `  - ${STATEMENTS[i % STATEMENTS.length]}`);
  const { schema } = parseSchema(`${text}\nprove:\n${all.join('\n')}\n`);
  const seconds = await leastOf(rounds, () => proveStatements(schema!, { budget: 1_000 }));
  verdict('prove 50 statements', seconds, { limit: 1, unit: 's' });
}

async function diffSample(db: Database, schema: Schema, text: string): Promise<void> {
  const { schema: changed } = parseSchema(text.replaceAll('roles: [admin]', 'roles: [member]'));
  const seconds = await leastOf(3, () =>
    compareSchemas(schema, changed!, { budget: 50, ask: async (statement) => (await db.rows(statement)) as never }),
  );
  console.log(`diff of the sample, with replays: ${Math.round(seconds * 1000)} ms`);
  comparePairs(schema);
}

const LEAVES = [
  '@record.status = "published"',
  '@record.owner = @request.auth.id',
  'any(@record.team.memberships as m, m.user = @request.auth.id and m.role != "reader")',
  '@record.score > 40',
  '@record.score <= 80',
  '@record.pinned',
  '@record.due_at > @now',
  '@record.title starts with "a"',
  '@record.tags contains @request.query.tag',
  '@request.auth.roles contains "admin"',
];
const LEAVES_A_SIDE = 16;
const PAIRS = 1_000;

/** A policy of so many leaves, chosen by a number. */
function policyOf(leaves: number, seed: number): string {
  if (leaves === 1) {
    const leaf = LEAVES[seed % LEAVES.length]!;
    return seed % 3 === 0 ? `not ${leaf}` : leaf;
  }
  const left = Math.max(1, Math.floor(leaves / 2) - (seed % 2));
  const word = seed % 5 < 3 ? ' and ' : ' or ';
  return `(${policyOf(left, seed * 31 + 7)}${word}${policyOf(leaves - left, seed * 17 + 3)})`;
}

/** Two policies of 16 leaves, which differ in half of them, or in the order alone. */
function comparePairs(schema: Schema): void {
  const place = { catalog: schema, collection: 'documents', action: 'read' } as const;
  const times: number[] = [];
  let unknown = 0;
  for (let i = 0; i < PAIRS; i++) {
    const [first, second] = [i, i + PAIRS].map((seed) => policyOf(LEAVES_A_SIDE / 2, seed));
    const other = i % 4 === 0 ? first! : policyOf(LEAVES_A_SIDE / 2, i + 2 * PAIRS);
    const sides = [`${first} or ${second}`, `${second} or ${other}`].map((text) => [compilePolicy(text, place)]);
    const begin = performance.now();
    if (compareRules(place, [sides[0]!, sides[1]!]).verdict === 'unknown') unknown++;
    times.push(performance.now() - begin);
  }
  verdict('a pair of 16 leaves a side, median', shareOf(times, 0.5), { limit: 2, unit: 'ms' });
  verdict('a pair of 16 leaves a side, p95', shareOf(times, 0.95), { limit: 20, unit: 'ms' });
  console.log(`${unknown} of ${PAIRS} pairs unknown`);
}

/** The value below which a share of the values lies. */
const shareOf = (values: readonly number[], share: number): number =>
  values.toSorted((a, b) => a - b)[Math.floor(values.length * share)]!;

/** A collection with four policies of some parts. */
const paperCollection = (i: number): string => `
  papers${i}:
    fields: { title: { type: string, max: 80 }, status: { type: string, enum: [draft, published], index: true } }
    relations: { owner: { kind: belongs_to, collection: users }, team: { kind: belongs_to, collection: teams } }
    access:
      view:
        - when: '@record.status = "published" or @record.owner = @request.auth.id'
        - when: 'any(@record.team.memberships as m, m.user = @request.auth.id and m.role in ["owner", "editor"])'
      update: '@record.owner = @request.auth.id and not changed(@record.owner) and @next.title is not null'
      delete: '@record.owner = @request.auth.id and @record.status = "draft"'`;
const PAPERS = 50;

/** The sample with 200 policies more. */
function changesInEditor(text: string, rounds: number): void {
  const at = text.indexOf('\n  documents:');
  const papers = Array.from({ length: PAPERS }, (_, i) => paperCollection(i));
  const many = `${text.slice(0, at)}${papers.join('')}${text.slice(at)}`;
  if (parseSchema(many).schema === undefined) throw new Error('the schema of the bench has errors');
  let answered = 0;
  const files = { read: () => undefined, testsIn: () => [] };
  const server = new LanguageServer({
    files,
    env: {},
    version: '0',
    notify: () => answered++,
    refreshLenses: () => undefined,
    runTests: () => Promise.reject(new Error('the bench runs no tests in the editor')),
  });
  server.request('initialize', {});
  const times = Array.from({ length: 4 * rounds + 2 }, (_, i) => {
    const begin = performance.now();
    const textDocument = { uri: 'file:///bylaw.yaml', text: `${many}${'#'.repeat(i)}` };
    server.notify('textDocument/didOpen', { textDocument });
    return performance.now() - begin;
  });
  if (answered !== times.length) throw new Error('a change of the bench has no diagnostics');
  verdict('diagnostics of a change, 200 policies, median', shareOf(times, 0.5), { limit: 100, unit: 'ms' });
  verdict('diagnostics of a change, 200 policies, p95', shareOf(times, 0.95), { limit: 100, unit: 'ms' });
}

/** Seconds. */
async function leastOf(rounds: number, work: () => Promise<unknown>): Promise<number> {
  const times: number[] = [];
  for (let i = 0; i < rounds; i++) {
    const begin = performance.now();
    await work();
    times.push((performance.now() - begin) / 1000);
  }
  return Math.min(...times);
}

const bench: Bench = {
  name: 'workbench',
  question: 'how long do the tools for authors of policies take?',
  run,
};
export default bench;
