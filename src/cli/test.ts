/** `bylaw test`: policy tests in YAML, decided by the predicates of the rules and by a database in memory. */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { basename, dirname, join, relative, resolve } from 'node:path';
import { ConfigError, schemaFileOf } from '../config.ts';
import type { Database } from '../database/contract.ts';
import { Admission } from '../http/gate.ts';
import { applyMigration } from '../migrations/apply-migration.ts';
import { hasTablesOf } from '../migrations/readiness.ts';
import { schemaServedBy } from '../migrations/unmanaged/served-schema.ts';
import { GUEST } from '../policy/check/guests.ts';
import { Store } from '../records/access-context.ts';
import { deletedRecordsOf } from '../records/deleted-records.ts';
import { historyTables } from '../records/history.ts';
import { createRecords } from '../records/records.ts';
import { underlineIssue } from '../schema/file/issue.ts';
import { parseSchema } from '../schema/load.ts';
import type { Schema } from '../schema/model/model.ts';
import { unmanagedTables } from '../schema/model/stored-names.ts';
import { ident, sql } from '../sql.ts';
import { CoverageCounter, type CoverageDocument, percentOf } from '../workbench/coverage/coverage.ts';
import { coveragePage, printCoverage } from '../workbench/coverage/print-coverage.ts';
import { GUEST_NOTE } from '../workbench/guest-note.ts';
import { openMemoryDatabase } from '../workbench/memory-database.ts';
import { type Mutant, mutantsOf } from '../workbench/mutate/mutate.ts';
import { printMutants } from '../workbench/mutate/print-mutants.ts';
import type { TestedWorld } from '../workbench/mutate/telling-test.ts';
import { type PlacedRule, placedRules } from '../workbench/rule-places.ts';
import { adoptedTables } from '../workbench/test/adopted-tables.ts';
import type { TestTools } from '../workbench/test/database-outcome.ts';
import { fillWorld, RejectedRow } from '../workbench/test/fill-world.ts';
import { type FileResults, printResults } from '../workbench/test/print-results.ts';
import { type PolicyTests, readTests } from '../workbench/test/read-tests.ts';
import { junitOf, resultsDocument } from '../workbench/test/results-document.ts';
import { type RunOptions, runTests } from '../workbench/test/run-tests.ts';
import { chosenTests } from './support/chosen-tests.ts';
import type { Arguments, Command, Io } from './support/command.ts';
import { writeGivenFile } from './support/given-file.ts';
import { policyTestsIn } from './support/policy-test-files.ts';
import { watchFolder } from './support/watch-folder.ts';
import { requireSchema } from './support/workspace.ts';

export const command: Command = {
  name: 'test',
  summary: 'runs policy tests: who may do what with which record',
  positionals: ['[FILE…]'],
  settings: ['schema'],
  flags: {
    only: { value: 'TEXT', about: 'runs the expectations whose title or file contains it' },
    json: { about: 'prints one JSON document' },
    junit: { value: 'FILE', about: 'also writes the results as JUnit XML' },
    coverage: {
      value: '[=FILE]',
      about: 'counts the values of each leaf of each rule; with =FILE, also as a page of HTML',
    },
    'coverage-min': { value: 'PERCENT', about: 'exits with 1 below this share of the values of leaves' },
    mutate: {
      value: '[=changed:REVISION]',
      about:
        'changes each rule in one place at a time, and reports what no test notices; `=changed:REVISION`: rules that git does not have there',
    },
    watch: { about: 'runs again on each save of the schema or a test file' },
  },
  run,
};

async function run(args: Arguments, io: Io): Promise<number> {
  const db = await openMemoryDatabase();
  try {
    return await (args.has('watch') ? runOnSaves(args, io, db) : testPolicies(args, io, db));
  } finally {
    await db.close();
  }
}

/** `NAME.policy.yaml` beside the schema file. */
function testFilesOf({ positionals }: Arguments, schemaFile: string, { cwd }: Io): readonly string[] {
  if (positionals.length > 0) return positionals;
  const folder = dirname(resolve(cwd, schemaFile));
  const found = policyTestsIn(folder);
  if (found.length === 0)
    throw new ConfigError([`found no *.policy.yaml in ${folder}; docs/testing-policies.md shows how to write one`]);
  return found.map((name) => relative(cwd, join(folder, name)));
}

/** → the exit code. `db` is in memory, and is emptied. */
export async function testPolicies(args: Arguments, io: Io, db: Database): Promise<number> {
  const schemaFile = schemaFileOf(args.flags, io.env);
  const loaded = requireSchema(schemaFile, io, () => false);
  const rules = placedRules(loaded, readText(resolve(io.cwd, schemaFile), schemaFile));
  const testFiles = testFilesOf(args, schemaFile, io);
  const tools = await testToolsOf(db, loaded);
  const { schema } = tools.store;
  const found = testFiles.map((file) => readTestFile(file, schema, io));
  const read = found.map(({ tests }) => tests);
  const only = args.get('only');
  const chosen = only === undefined ? read : chosenTests(read, only);
  const counter = args.has('coverage') || args.has('coverage-min') ? new CoverageCounter() : undefined;
  const files: FileResults[] = [];
  const worlds: TestedWorld[] = [];
  for (const [at, { tests, text }] of found.entries()) {
    const { world, results } = await runTests(chosen[at]!, tools, countingBy(counter)).catch((error: unknown) => {
      throw error instanceof RejectedRow ? new ConfigError([underlineIssue(text, error.issueIn(text))]) : error;
    });
    files.push({ file: tests.file, names: tests.names, results });
    worlds.push({ tests, world, text });
  }
  const coverage = counter?.report(rules, { file: schemaFile, catalog: schema });
  const mutants = args.has('mutate')
    ? await mutantsOf({
        fill: (tests) => fillWorld(tools.store, tests),
        schema,
        rules: mutatedRules(rules, args, io),
        worlds,
      })
    : undefined;
  const report: PolicyReport = { schema, files, texts: worlds.map(({ text }) => text), coverage, mutants };
  writeReport(report, args, io);
  return exitCodeOf(report, leastCoverage(args));
}

interface PolicyReport {
  readonly schema: Schema;
  readonly files: readonly FileResults[];
  /** The texts of the files. */
  readonly texts: readonly string[];
  readonly coverage: CoverageDocument | undefined;
  readonly mutants: readonly Mutant[] | undefined;
}

const countingBy = (counter: CoverageCounter | undefined): Pick<RunOptions, 'onValue' | 'onRules'> =>
  counter === undefined
    ? {}
    : {
        onValue: (node, value) => counter.count(node, value),
        onRules: (traces) => counter.countRules(traces),
      };

function writeReport({ schema, files, texts, coverage, mutants }: PolicyReport, args: Arguments, io: Io): void {
  const junit = args.get('junit');
  if (junit !== undefined) writeGivenFile(junit, junitOf(files), io);
  const page = args.get('coverage') ?? '';
  if (page !== '' && coverage !== undefined) writeGivenFile(page, coveragePage(coverage), io);
  if (args.has('json')) {
    const document = { ...resultsDocument(files), ...(coverage && { coverage }), ...(mutants && { mutants }) };
    io.stdout.write(`${JSON.stringify(document, undefined, 2)}\n`);
    return;
  }
  io.stdout.write(printResults(files));
  const isOfGuests = files.some(({ results }) => results.some(({ expectation }) => expectation.as === GUEST));
  if (isOfGuests && !schema.guests) io.stdout.write(`${GUEST_NOTE}\n`);
  if (coverage !== undefined) io.stdout.write(printCoverage(coverage));
  if (mutants !== undefined) io.stdout.write(printMutants(mutants, texts));
}

function exitCodeOf({ files, coverage, mutants = [] }: PolicyReport, least: number): number {
  const all = files.flatMap(({ results }) => results);
  if (all.some(({ isDisagreement }) => isDisagreement)) return 3;
  const isMissed = coverage !== undefined && percentOf(coverage) < least;
  const isSurvived = mutants.some(({ verdict }) => verdict === 'survived');
  return isMissed || isSurvived || all.some(({ isOk }) => !isOk) ? 1 : 0;
}

/** Throws ConfigError. */
function leastCoverage(args: Arguments): number {
  const given = args.get('coverage-min') ?? '0';
  const least = Number(given);
  if (given.trim() !== '' && least >= 0 && least <= 100) return least;
  throw new ConfigError([`--coverage-min: expected a percentage from 0 to 100, found ${given}`]);
}

/** `--mutate=changed:REV`: the rules that the revision does not have at their place. Throws ConfigError. */
function mutatedRules(rules: readonly PlacedRule[], args: Arguments, io: Io): readonly PlacedRule[] {
  const given = args.get('mutate') ?? '';
  if (given === '') return rules;
  const [, revision] = /^changed:(.+)$/.exec(given) ?? [];
  if (revision === undefined) throw new ConfigError([`--mutate: expected changed:REVISION, found ${given}`]);
  const file = schemaFileOf(args.flags, io.env);
  const before = parseSchema(fileAtRevision(revision, file, io), file, io.env).schema;
  if (before === undefined) throw new ConfigError([`--mutate: ${file} has errors in ${revision}`]);
  const known = new Set(placedRules(before, fileAtRevision(revision, file, io)).map(keyOfRule));
  return rules.filter((rule) => !known.has(keyOfRule(rule)));
}

const keyOfRule = ({ collection, action, member, rule, check }: PlacedRule): string =>
  JSON.stringify([collection, action, member, rule.text, check !== undefined]);

function fileAtRevision(revision: string, file: string, { cwd }: Io): string {
  const path = resolve(cwd, file);
  try {
    const args = ['show', '--end-of-options', `${revision}:./${basename(path)}`];
    return execFileSync('git', args, { cwd: dirname(path), encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });
  } catch {
    throw new ConfigError([`git has no ${file} at the revision ${revision}`]);
  }
}

interface ReadTestFile {
  readonly tests: PolicyTests;
  readonly text: string;
}

/** Throws ConfigError with every error of the file. */
function readTestFile(file: string, schema: Schema, { cwd }: Io): ReadTestFile {
  const text = readText(resolve(cwd, file), file);
  const { tests, issues } = readTests(text, file, schema);
  if (tests !== undefined) return { tests, text };
  throw new ConfigError(issues.map((issue) => underlineIssue(text, issue)));
}

function readText(path: string, file: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    throw new ConfigError([`cannot read ${file}`]);
  }
}

/**
 * A database with the tables of the schema; the store has the schema as these tables let it be served. Only records are
 * asked about, so the tables of accounts and the like are not made.
 */
export async function testToolsOf(db: Database, loaded: Schema): Promise<TestTools> {
  // The record of a migration says nothing of the tables of other programs.
  if (unmanagedTables(loaded).size > 0 || !(await hasTablesOf(db, loaded))) {
    await dropTestTables(db);
    for (const statement of adoptedTables(loaded)) await db.run(statement);
    await applyMigration(db, loaded, { systemTables: historyTables, allowDestructive: true });
  }
  const schema = await schemaServedBy(db, loaded);
  const store = new Store(db, schema);
  return {
    store,
    records: createRecords(db, schema),
    deleted: deletedRecordsOf(db, schema),
    admit: ({ caller, collection, action }, request, of = schema) =>
      new Admission(
        () => ({}),
        of,
        {
          caller: {
            kind: caller.id === undefined ? 'guest' : 'user',
            principal: String(caller.id),
            sessionId: '',
            by: 'bearer',
            auth: { ...caller, roles: caller.roles as string[] },
          },
          collection,
          action,
        },
        request,
      ),
  };
}

/** The rows of the run before must not refuse the tables of another schema. */
async function dropTestTables(db: Database): Promise<void> {
  const found = await db.rows(sql`SELECT tablename FROM pg_tables WHERE schemaname = current_schema()`);
  if (found.length === 0) return;
  for (const [name] of found) await db.run(sql`DROP TABLE IF EXISTS ${ident(String(name))} CASCADE`);
}

/** Never resolves: the command ends with its process. A save during the first run counts, too. */
function runOnSaves(args: Arguments, io: Io, db: Database): Promise<never> {
  const folder = dirname(resolve(io.cwd, schemaFileOf(args.flags, io.env)));
  let isWaiting = false;
  const again = async (): Promise<void> => {
    isWaiting = false;
    await testPolicies(args, io, db).catch((error: unknown) => {
      if (!(error instanceof ConfigError)) throw error;
      io.stderr.write(`${error.message}\n`);
    });
  };
  let running = Promise.resolve();
  for (const watched of new Set([folder, ...args.positionals.map((file) => dirname(resolve(io.cwd, file)))])) {
    watchFolder(watched, {}, (_event, name) => {
      if (isWaiting || !/\.ya?ml$/.test(basename(name ?? ''))) return;
      isWaiting = true;
      running = running.then(again);
    });
  }
  running = running.then(again);
  return new Promise(() => undefined);
}
