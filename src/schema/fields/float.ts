import { parseFloatText } from '../../policy/values.ts';
import { numberKind } from './number.ts';

export const float = numberKind({
  name: 'float',
  column: 'double precision',
  sqlType: 'float8',
  listType: 'float8[]',
  expected: 'a finite number',
  fromQuery: parseFloatText,
  jsonSchema: ({ min, max }) => ({
    type: 'number',
    ...(min === undefined ? {} : { minimum: min }),
    ...(max === undefined ? {} : { maximum: max }),
  }),
});
