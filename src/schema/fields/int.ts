import { parseInt53, readJson } from '../../policy/values.ts';
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
  const whole = readJson('int', value);
  if (typeof whole !== 'number') return refuse('wrong_type', 'expected a whole number within ±9007199254740991');
  return outsideBounds(whole, constraints) ?? outsideEnum(whole, constraints) ?? { value: whole };
}

export const int: FieldKind = {
  name: 'int',
  column: 'bigint',
  sqlType: 'int8',
  listType: 'int8[]',
  bounds: 'value',
  hasEnum: true,
  fromJson,
  fromQuery: parseInt53,
  toJson: (cell) => cell,
  fromCell: Number,
  jsonSchema: (constraints) => ({
    type: 'integer',
    minimum: constraints.min ?? Number.MIN_SAFE_INTEGER,
    maximum: constraints.max ?? Number.MAX_SAFE_INTEGER,
    ...enumSchema(constraints),
  }),
  typescript: (constraints) => enumType(constraints, 'number'),
};
