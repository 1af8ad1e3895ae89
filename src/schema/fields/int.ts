import { sql } from '../../sql.ts';
import { cast } from './kind.ts';
import { numberKind } from './number.ts';

export const int = numberKind({
  name: 'int',
  doc: 'a whole number within ±(2^53−1)',
  column: 'bigint',
  isBeyond: (column) => sql`${column} NOT BETWEEN -9007199254740991 AND 9007199254740991`,
  expected: 'a whole number within ±9007199254740991',
  inKey: cast,
  adoption: {
    narrower: ['integer', 'smallint'],
    asItIs: ['integer', 'smallint'],
    note: 'integers beyond ±(2^53−1) lose digits in JSON',
  },
  jsonSchema: ({ min, max }) => ({
    type: 'integer',
    minimum: min ?? Number.MIN_SAFE_INTEGER,
    maximum: max ?? Number.MAX_SAFE_INTEGER,
  }),
});
