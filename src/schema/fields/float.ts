import { parseFloatText, readJson } from '../../policy/values.ts';
import {
  type Constraints,
  enumSchema,
  enumType,
  type FieldKind,
  outsideBounds,
  outsideEnum,
  type Read,
  refuse,
} from './kind.ts';

function fromJson(value: unknown, constraints: Constraints): Read {
  const finite = readJson('float', value);
  if (typeof finite !== 'number') return refuse('wrong_type', 'expected a finite number');
  return outsideBounds(finite, constraints) ?? outsideEnum(finite, constraints) ?? { value: finite };
}

export const float: FieldKind = {
  name: 'float',
  column: 'double precision',
  sqlType: 'float8',
  listType: 'float8[]',
  bounds: 'value',
  hasEnum: true,
  fromJson,
  fromQuery: parseFloatText,
  // PostgreSQL prints the shortest text that reads back as the same double, and every finite one of those is a JSON number.
  toJson: (cell) => cell,
  fromCell: Number,
  jsonSchema: (constraints) => ({
    type: 'number',
    ...(constraints.min === undefined ? {} : { minimum: constraints.min }),
    ...(constraints.max === undefined ? {} : { maximum: constraints.max }),
    ...enumSchema(constraints),
  }),
  typescript: (constraints) => enumType(constraints, 'number'),
};
