/** What `int` and `float` share: bounds that are values, enums, and a text of PostgreSQL's that is JSON as it stands. */
import { readJson, type Scalar } from '../../policy/values.ts';
import type { SqlType } from '../../sql.ts';
import { enumSchema, enumType, type FieldKind, type JsonSchema, outsideBounds, outsideEnum, refuse } from './kind.ts';

export interface NumberType {
  readonly name: 'int' | 'float';
  readonly column: string;
  readonly sqlType: SqlType;
  readonly listType: SqlType;
  /** What a body is told to hold. */
  readonly expected: string;
  fromQuery(text: string): Scalar | undefined;
  /** Without its enum. */
  jsonSchema(bounds: { readonly min?: number | string; readonly max?: number | string }): JsonSchema;
}

export const numberKind = ({ expected, ...type }: NumberType): FieldKind => ({
  ...type,
  bounds: 'value',
  hasEnum: true,
  fromJson(value, constraints) {
    const number = readJson(type.name, value);
    if (typeof number !== 'number') return refuse('wrong_type', `expected ${expected}`);
    return outsideBounds(number, constraints) ?? outsideEnum(number, constraints) ?? { value: number };
  },
  // Of a double, PostgreSQL prints the shortest text that reads back as the same one, and every finite one of those is a JSON number.
  toJson: (cell) => cell,
  fromCell: Number,
  jsonSchema: (constraints) => ({ ...type.jsonSchema(constraints), ...enumSchema(constraints) }),
  typescript: (constraints) => enumType(constraints, 'number'),
});
