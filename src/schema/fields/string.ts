import { parseString } from '../../policy/values.ts';
import { type Constraints, enumSchema, enumType, type FieldKind, outsideEnum, type Read, refuse } from './kind.ts';

/** Code points, of which a surrogate pair is one. */
export function lengthOf(text: string): number {
  let length = text.length;
  for (let i = 0; i < text.length - 1; i++) if (text.codePointAt(i)! > 0xffff) length--;
  return length;
}

function fromJson(value: unknown, constraints: Constraints): Read {
  if (typeof value !== 'string') return refuse('wrong_type', 'expected a string');
  if (parseString(value) === undefined) return refuse('unstorable', 'a NUL or a lone surrogate cannot be stored');
  const { min, max } = constraints;
  const length = lengthOf(value);
  if (min !== undefined && length < Number(min)) return refuse('too_short', `expected ${min} characters or more`);
  if (max !== undefined && length > Number(max)) return refuse('too_long', `expected ${max} characters or less`);
  return outsideEnum(value, constraints) ?? { value };
}

export const string: FieldKind = {
  name: 'string',
  // Code point order, whatever the database's default is: JavaScript has no other that both agree on.
  column: 'text COLLATE "C"',
  sqlType: 'text',
  listType: 'text[]',
  bounds: 'length',
  hasEnum: true,
  fromJson,
  fromQuery: parseString,
  toJson: (cell) => JSON.stringify(cell),
  fromCell: (cell) => cell,
  jsonSchema: (constraints) => ({
    type: 'string',
    ...(constraints.min === undefined ? {} : { minLength: constraints.min }),
    ...(constraints.max === undefined ? {} : { maxLength: constraints.max }),
    ...enumSchema(constraints),
  }),
  typescript: (constraints) => enumType(constraints, 'string'),
};
