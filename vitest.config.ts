/**
 * `vitest run` runs every suite. `--mode quick` leaves out what is tagged `long`, and starts no PostgreSQL. `--mode partitions`
 * runs what is tagged `partitions` on hash-partitioned tables: other names of constraints, no system columns, row locks and
 * foreign keys across partitions. `--mode package` runs what is tagged `registry`, which installs packages from there: it belongs
 * to a release and to CI, and the other suites need no network.
 */
import { globSync, readFileSync } from 'node:fs';
import { defineConfig } from 'vitest/config';
import { compileCache } from './test/support/vitest/compile-cache.ts';
import { LongestFirst } from './test/support/vitest/longest-first.ts';
import { makeRunFolder } from './test/support/vitest/run-folder.ts';

/** The suites with a line `// @module-tag …` of this tag: a filter of vitest's own would load the suites that it leaves out. */
const tagged = (tag: string): readonly string[] =>
  globSync('test/**/*.test.ts').filter((file) =>
    new RegExp(`^// @module-tag ${tag}$`, 'm').test(readFileSync(file, 'utf8')),
  );

export default defineConfig(({ mode }) => {
  const [isQuick, isPartitions, isPackage] = [mode === 'quick', mode === 'partitions', mode === 'package'];
  // Read by test/support/vitest/global.ts.
  if (isQuick) process.env.TEST_QUICK = '1';
  // Read by test/support/cluster/partitioned.ts.
  if (isPartitions) process.env.TEST_PARTITIONS = '1';
  // Read by os.tmpdir(), here, in the workers and in the processes that they start; test/support/vitest/global.ts removes it.
  process.env.TMPDIR = makeRunFolder();
  // Read by the workers and the processes that they start.
  process.env.NODE_COMPILE_CACHE ??= compileCache();
  return {
    test: {
      include: isPartitions ? [...tagged('partitions')] : isPackage ? [...tagged('registry')] : ['test/**/*.test.ts'],
      exclude: isPackage ? [] : [...tagged('registry'), ...(isQuick ? tagged('long') : [])],
      tags: [
        { name: 'registry', description: 'installs packages from their registry: of `npm run test:package` only' },
        { name: 'long', description: 'takes seconds: starts processes, tries every character or combination' },
        { name: 'partitions', description: 'about records, and also true on hash-partitioned tables' },
      ],
      ...(isQuick ? { tagsFilter: ['!long'] } : {}),
      // On two processors, a third file uses the time in which the others wait for timers, browsers and other processes: 425 s
      // instead of 488.
      pool: 'forks',
      // While a service makes its tables on a cluster, Citus keeps writers of the same tables of other schemas waiting.
      maxWorkers: process.env.TEST_CITUS_URL ? 1 : 3,
      sequence: { sequencer: LongestFirst },
      // Node loads the modules as it does for users: nothing is transformed, and an import is not a property of an object.
      experimental: { viteModuleRunner: false, nodeLoader: false },
      // A worker loads the modules once, and compiles the embedded database once; no test replaces a module.
      isolate: false,
      globalSetup: ['test/support/vitest/global.ts'],
      setupFiles: ['test/support/vitest/each-file.ts'],
      // No test is about its own limit: it ends one that hangs, on a busy machine too.
      testTimeout: 180_000,
      hookTimeout: 180_000,
      reporters: ['default', './test/support/vitest/verdicts.ts'],
      // A test that fails is wrong, or the code is: no test runs again.
      retry: 0,
    },
  };
});
