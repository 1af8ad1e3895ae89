/** The tools that `bylaw dev` gives to pages: it saves the schema file, and runs policy tests on a database in memory. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { UnusableText, Workshop } from '../../http/workshop.ts';
import { present } from '../../invariant.ts';
import { Problem } from '../../problem.ts';
import { QueuePerKey } from '../../queue-per-key.ts';
import type { Schema } from '../../schema/model/model.ts';
import { CoverageCounter } from '../../workbench/coverage/coverage.ts';
import { openMemoryDatabase } from '../../workbench/memory-database.ts';
import { mutantsOf } from '../../workbench/mutate/mutate.ts';
import type { TestedWorld } from '../../workbench/mutate/telling-test.ts';
import { placedRules } from '../../workbench/rule-places.ts';
import { fillWorld, RejectedRow } from '../../workbench/test/fill-world.ts';
import type { FileResults } from '../../workbench/test/print-results.ts';
import { type PolicyTests, readTests } from '../../workbench/test/read-tests.ts';
import { resultsDocument } from '../../workbench/test/results-document.ts';
import { runTests } from '../../workbench/test/run-tests.ts';
import { policyTestsIn } from '../support/policy-test-files.ts';
import { testToolsOf } from '../test.ts';
import type { DevSession } from './dev-session.ts';

/** Each run has a database of its own. */
const runs = new QueuePerKey(
  { running: 1, waiting: 8, patienceMs: 60_000 },
  () => new Problem('rate_limited', 'other tests are running; try again in some seconds'),
);

/** Made before the service that lends it to its routes; the session follows. */
export class DevWorkshop implements Workshop {
  #session: DevSession | undefined;

  follow(session: DevSession): void {
    this.#session = session;
  }

  async saveSchema(text: string, version: string): ReturnType<Workshop['saveSchema']> {
    return this.#session === undefined ? { reason: NOT_STARTED } : this.#session.save(text, version);
  }

  testFiles(): ReadonlyMap<string, string> {
    const folder = this.#session?.folder;
    if (folder === undefined) throw new Problem('unavailable', NOT_STARTED);
    return new Map(policyTestsIn(folder).map((name) => [name, readFileSync(join(folder, name), 'utf8')]));
  }

  async runTests(...[files, withMutants]: Parameters<Workshop['runTests']>): ReturnType<Workshop['runTests']> {
    const schema = this.#session?.schema;
    if (schema === undefined) throw new Problem('unavailable', NOT_STARTED);
    const read = [...files].map(([file, text]) => ({ file, text, ...readTests(text, file, schema) }));
    const unusable: readonly UnusableText[] = read.filter(({ tests }) => tests === undefined);
    if (unusable.length > 0) return { unusable };
    const usable = read.flatMap(({ tests, text }) => (tests === undefined ? [] : [{ tests, text }]));
    try {
      return { results: await runs.run('all', () => testResultsOf(schema, usable, withMutants)) };
    } catch (error) {
      if (!(error instanceof RejectedRow)) throw error;
      const text = present(files.get(error.file), 'the text of the rejected row');
      return { unusable: [{ file: error.file, text, issues: [error.issueIn(text)] }] };
    }
  }
}

const NOT_STARTED = 'bylaw dev is still starting; try again';

interface ReadFile {
  readonly tests: PolicyTests;
  readonly text: string;
}

async function testResultsOf(loaded: Schema, files: readonly ReadFile[], withMutants: boolean): Promise<object> {
  const db = await openMemoryDatabase();
  try {
    const tools = await testToolsOf(db, loaded);
    const { schema } = tools.store;
    const counter = new CoverageCounter();
    const all: FileResults[] = [];
    const worlds: TestedWorld[] = [];
    for (const { tests: read, text } of files) {
      const tests = present(readTests(text, read.file, schema).tests, 'tests that were read before');
      const { world, results } = await runTests(tests, tools, {
        onValue: (node, value) => counter.count(node, value),
        onRules: (traces) => counter.countRules(traces),
      });
      all.push({ file: tests.file, names: tests.names, results });
      worlds.push({ tests, world, text });
    }
    const rules = placedRules(schema, schema.text);
    const coverage = counter.report(rules, { file: schema.file, catalog: schema });
    const mutants = withMutants
      ? await mutantsOf({ fill: (tests) => fillWorld(tools.store, tests), schema, rules, worlds })
      : undefined;
    return { ...resultsDocument(all), coverage, ...(mutants && { mutants }) };
  } finally {
    await db.close();
  }
}
