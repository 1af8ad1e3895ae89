/**
 * The suites about records on hash-partitioned tables, on both databases: other names of
 * constraints, no system columns, row locks and foreign keys across partitions.
 */
import { mergeConfig } from 'vitest/config';
import config from './vitest.config.ts';

// Read by test/support/partitioned.ts.
process.env.TEST_PARTITIONS = '1';

export default mergeConfig(
  { ...config, test: { ...config.test, include: [] } },
  {
    test: {
      include: [
        'test/contract/*.test.ts',
        'test/routes/{aggregate,batch,capabilities,changes,field-rules,lists,query,records,statements,taken-values,users}.test.ts',
        'test/records/**/security-{row-locks,expand,versions,self-witness}.test.ts',
        'test/{migrations,records}/**/{idempotency,list-facts,partitions,record-view,records,search,writes-that-wait}.test.ts',
      ],
    },
  },
);
