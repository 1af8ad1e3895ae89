import { SCALARS } from '../../policy/scalar-types.ts';
import { MOST_DIGITS, plainNumeral, readDecimal } from '../../policy/values.ts';
import { raw, sql } from '../../sql.ts';
import { asInPolicies, asText, type Constraints, type FieldKind, outsideNumerals, type Read, reject } from './kind.ts';

/** `numeric(12,2)` → its digits, and those after the point. */
const MODIFIED = /^numeric\((\d+),(\d+)\)$/;
export function digitsOf(columnType: string): { readonly precision: number; readonly scale: number } | undefined {
  const [, precision, scale] = MODIFIED.exec(columnType) ?? [];
  return precision === undefined ? undefined : { precision: Number(precision), scale: Number(scale) };
}

const EXPECTED = 'a decimal such as "12.50"';

/** More digits than the field has are an error: no value is rounded. */
function fromJson(value: unknown, constraints: Constraints): Read {
  const { precision = MOST_DIGITS, scale = MOST_DIGITS } = constraints;
  const plain = readDecimal(value);
  if (plain === undefined) return reject('wrong_type', `expected ${EXPECTED}, of at most ${MOST_DIGITS} digits`);
  const [whole = '', fraction = ''] = plain.replace('-', '').split('.');
  if (fraction.length > scale) return reject('too_precise', `expected at most ${scale} digits after the point`);
  const most = constraints.scale === undefined ? precision : precision - scale;
  if (whole !== '0' && whole.length > most)
    return reject(
      plain.startsWith('-') ? 'too_small' : 'too_large',
      `expected at most ${most} digits before the point`,
    );
  return outsideNumerals(plain, constraints) ?? { value: plain };
}

export const decimal: FieldKind = {
  name: 'decimal',
  doc: 'an exact number of `precision` digits, `scale` of them after the point; a string in JSON, and also read from a number',
  ...asInPolicies(SCALARS.decimal),
  column: 'numeric',
  columnOf: ({ precision = MOST_DIGITS, scale = 0 }) => `numeric(${precision},${scale})`,
  expected: EXPECTED,
  bounds: 'value',
  hasEnum: false,
  fromJson,
  // PostgreSQL prints as many digits as the scale has.
  toJson: (cell) => `"${cell}"`,
  unquotedJson: String,
  fromCell: plainNumeral,
  jsonSchema: () => ({ type: 'string', format: 'decimal' }),
  typescript: () => 'string',
  adoption: {
    narrower: [],
    storedAs: { numeric: { column: 'numeric' } },
    defaultOf(expression) {
      const number = /^\(?'?(-?\d+(?:\.\d+)?)'?\)?(?:::numeric)?$/.exec(expression)?.[1];
      return number === undefined ? undefined : `'${number}'`;
    },
  },
  text: asText((text, columnType) => {
    const { precision, scale } = digitsOf(columnType) ?? { precision: 0, scale: 0 };
    const whole = precision > scale ? `(0|[1-9][0-9]{0,${precision - scale - 1}})` : '0';
    const fraction = scale > 0 ? `([.][0-9]{1,${scale}})?` : '';
    return sql`${text} ~ ${raw(`'^-?${whole}${fraction}$'`)}`;
  }),
};
