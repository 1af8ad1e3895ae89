/**
 * `npm run test:distributed`: the suites about routes once more, with every collection distributed by tenant and every statement
 * judged; with `TEST_CITUS_URL`, a coordinator, all that is not embedded runs on that cluster. Left out is what has no collections, or its own tenants.
 */
import { mergeConfig } from 'vitest/config';
import config from './vitest.config.ts';

// Read by test/support/distributed-schema.ts.
process.env.TEST_DISTRIBUTED = '1';
// Read by test/support/postgres.ts.
if (process.env.TEST_CITUS_URL) process.env.TEST_DATABASE_URL = process.env.TEST_CITUS_URL;

const merged = mergeConfig(config, {
  test: { exclude: ['test/routes/{docs-page,outage,concurrency,statements,unindexed-pages,tenants}.test.ts'] },
});
// Lists are merged by joining them.
merged.test.include = ['test/routes/*.test.ts'];

export default merged;
