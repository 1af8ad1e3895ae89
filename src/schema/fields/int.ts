import { parseInt53 } from '../../policy/values.ts';
import { numberKind } from './number.ts';

export const int = numberKind({
  name: 'int',
  column: 'bigint',
  sqlType: 'int8',
  listType: 'int8[]',
  expected: 'a whole number within ±9007199254740991',
  fromQuery: parseInt53,
  jsonSchema: ({ min, max }) => ({
    type: 'integer',
    minimum: min ?? Number.MIN_SAFE_INTEGER,
    maximum: max ?? Number.MAX_SAFE_INTEGER,
  }),
});
