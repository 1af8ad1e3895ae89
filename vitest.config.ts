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
    testTimeout: 30_000,
    hookTimeout: 60_000,
  },
});
