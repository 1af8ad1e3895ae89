import { counted } from '../../counted.ts';
import { SCALARS } from '../../policy/scalar-types.ts';
import { lengthInCodePoints, parseString } from '../../policy/values.ts';
import { sql, unquotedText } from '../../sql.ts';
import {
  asInPolicies,
  type Constraints,
  enumSchema,
  enumType,
  type FieldKind,
  outsideEnum,
  type Read,
  reject,
} from './kind.ts';

function stringFromJson(value: unknown, constraints: Constraints): Read {
  if (typeof value !== 'string') return reject('wrong_type', 'expected a string');
  if (parseString(value) === undefined) return reject('unstorable', 'a NUL or a lone surrogate cannot be stored');
  const { min, max, lower } = constraints;
  const text = lower ? value.toLowerCase() : value;
  const length = lengthInCodePoints(text);
  if (min !== undefined && length < Number(min))
    return reject('too_short', `expected ${counted(min, 'character')} or more`);
  if (max !== undefined && length > Number(max))
    return reject('too_long', `expected ${counted(max, 'character')} or less`);
  return outsideEnum(text, constraints) ?? { value: text };
}

function defaultOf(expression: string): string | undefined {
  const literal = /^('(?:[^']|'')*')(?:::[\w ."]+)?$/.exec(expression)?.[1];
  const text = literal === undefined ? undefined : unquotedText(literal);
  // `@` begins a value of the request.
  return text === undefined || text.startsWith('@') ? undefined : JSON.stringify(text);
}

export const string: FieldKind = {
  name: 'string',
  doc: 'Unicode text without NUL',
  ...asInPolicies(SCALARS.string),
  column: 'text',
  expected: 'a string without NUL',
  bounds: 'length',
  hasEnum: true,
  fromJson: stringFromJson,
  toJson: JSON.stringify,
  fromCell: String,
  jsonSchema: ({ min, max, enum: allowed }) => ({
    type: 'string',
    minLength: min,
    maxLength: max,
    ...enumSchema({ enum: allowed }),
  }),
  typescript: (constraints) => enumType(constraints, 'string'),
  // `~` is between the values of a key.
  inKey: (column) => sql`replace(replace(${column}, '!', '!!'), '~', '!~')`,
  adoption: {
    narrower: [],
    asItIs: ['character varying'],
    // Without the spaces that fill it up.
    storedAs: { char: { column: 'character', readAs: '::text' } },
    defaultOf,
  },
};
