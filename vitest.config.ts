import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    // Whole services, databases and argon2 run in these tests: more files at once than cores only makes them wait for each other.
    pool: 'forks',
    maxWorkers: 2,
    // A worker loads the modules once, and compiles the embedded database once; no test replaces a module.
    isolate: false,
    globalSetup: ['test/support/global.ts'],
    testTimeout: 60_000,
    hookTimeout: 120_000,
    reporters: ['default', './test/support/verdicts.ts'],
    // A test that fails is wrong, or the code is: no test runs again.
    retry: 0,
  },
});
