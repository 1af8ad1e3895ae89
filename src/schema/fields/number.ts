/**
 * The number types differ in range only: their bounds are values, and PostgreSQL prints them as
 * JSON does.
 */
import { SCALARS } from '../../policy/scalar-types.ts';
import {
  asInPolicies,
  type Constraints,
  endsInLetter,
  enumSchema,
  enumType,
  type FieldKind,
  type JsonSchema,
  outsideBounds,
  outsideEnum,
  reject,
} from './kind.ts';

export interface NumberType extends Pick<FieldKind, 'doc' | 'column' | 'expected' | 'isBeyond' | 'inKey'> {
  readonly adoption: Omit<FieldKind['adoption'], 'defaultOf'>;
  readonly name: 'int' | 'float';
  /** The JSON Schema of the type, without its enum. */
  jsonSchema(bounds: Pick<Constraints, 'min' | 'max'>): JsonSchema;
}

export const numberKind = (type: NumberType): FieldKind => ({
  ...type,
  ...asInPolicies(SCALARS[type.name]),
  bounds: 'value',
  hasEnum: true,
  fromJson(value, constraints) {
    const number = SCALARS[type.name].readJson(value);
    if (typeof number !== 'number') return reject('wrong_type', `expected ${type.expected}`);
    return outsideBounds(number, constraints) ?? outsideEnum(number, constraints) ?? { value: number };
  },
  // PostgreSQL prints a double as the shortest text that reads back as the same one, which is a JSON number
  // if the double is finite. Only other programs write others, and JSON has no numbers for them.
  toJson: (cell) => (endsInLetter(cell) ? `"${cell}"` : cell),
  fromCell: Number,
  jsonSchema: (constraints) => ({ ...type.jsonSchema(constraints), ...enumSchema(constraints) }),
  typescript: (constraints) => enumType(constraints, 'number'),
  adoption: {
    ...type.adoption,
    defaultOf(expression) {
      const number = /^\(?'?(-?\d+(?:\.\d+)?)'?\)?(?:::[\w ]+)?$/.exec(expression)?.[1];
      return number !== undefined && SCALARS[type.name].readJson(Number(number)) !== undefined ? number : undefined;
    },
  },
});
