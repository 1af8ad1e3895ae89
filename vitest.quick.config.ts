/**
 * `npm run test:quick`: the embedded database only, and without the suites that start processes,
 * drive a browser, resize images, compile projects, or try every character or combination. `npm test` runs everything.
 */
import { mergeConfig } from 'vitest/config';
import config from './vitest.config.ts';

// Read by test/support/global.ts: no PostgreSQL is started.
process.env.TEST_QUICK = '1';

export default mergeConfig(config, {
  test: {
    exclude: [
      'test/cli/{backup,serve,pipes,dev,dev-question,transfer,optional-packages}.test.ts',
      'test/auth/{passwords,commands,limiter,limits,oauth,browsers,nodes}.test.ts',
      'test/files/{crash,bucket-crash,bucket,copies,redirects,keeping,s3}.test.ts',
      'test/routes/{concurrency,outage,docs-page,taken-values}.test.ts',
      'test/bench/documents-world.test.ts',
      'test/{fuzz,movies}/**',
      'test/client/typed.test.ts',
      'test/schema/total.test.ts',
      'test/security/expressions.test.ts',
      'test/{files/security-variants,http/security,database/security-statements}.test.ts',
      'test/routes/query-cost.test.ts',
      'test/policy/analyse/completions.test.ts',
      'test/database/**/{code-points,database,data-folder,engine-thread,replica,synced-folder}.test.ts',
      'test/migrations/{tenant-tables,unique-within}.test.ts',
      'test/records/transfer/exchanged-values.test.ts',
      'test/{package,docs}/**',
      'test/exports/browser.test.ts',
      'test/readme.test.ts',
    ],
  },
});
