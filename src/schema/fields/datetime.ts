import { SCALARS } from '../../policy/scalar-types.ts';
import { parseDatetime } from '../../policy/values.ts';
import {
  asInPolicies,
  type Constraints,
  endsInLetter,
  type FieldKind,
  outsideBounds,
  type Read,
  reject,
} from './kind.ts';
import { datetimeText, instantText } from './text-forms/datetime-text.ts';

const EXPECTED =
  'RFC 3339 with an offset, at most six decimals, in the years 0001 to 9999, such as "2026-01-31T09:30:00Z"';

function datetimeFromJson(value: unknown, constraints: Constraints): Read {
  const canonical = typeof value === 'string' ? parseDatetime(value) : undefined;
  if (canonical === undefined) return reject('wrong_type', `expected ${EXPECTED}`);
  return outsideBounds(canonical, constraints) ?? { value: canonical };
}

/**
 * `2026-01-31 09:30:00.5+00`, as PostgreSQL prints under DateStyle ISO and TimeZone UTC →
 * `2026-01-31T09:30:00.500000Z`. Columns that bylaw writes hold the years 0001 to 9999 only. Other programs may write
 * other years, and infinity, which stay as PostgreSQL prints them: a value is never shown as another one.
 */
function canonicalOfCell(cell: string): string {
  if (cell[10] !== ' ' || endsInLetter(cell)) return cell;
  if (cell.length === WITH_ALL_DECIMALS) return `${cell.slice(0, 10)}T${cell.slice(11, 26)}Z`;
  const decimals = cell.length > 22 ? cell.slice(20, -3) : '';
  return `${cell.slice(0, 10)}T${cell.slice(11, 19)}.${decimals.padEnd(6, '0')}Z`;
}

/** The length of `2026-01-31 09:30:00.123456+00`. */
const WITH_ALL_DECIMALS = 29;

export const datetime: FieldKind = {
  name: 'datetime',
  doc: 'an instant, RFC 3339 with an offset, to the microsecond; returned in UTC',
  ...asInPolicies(SCALARS.datetime),
  column: 'timestamp with time zone',
  // PostgreSQL prints another offset and other decimals than the canonical text has.
  hasColumnDefault: false,
  expected: EXPECTED,
  bounds: 'value',
  hasEnum: false,
  moment: 'instant',
  fromJson: datetimeFromJson,
  toJson: (cell) => `"${canonicalOfCell(cell)}"`,
  unquotedJson: canonicalOfCell,
  fromCell: canonicalOfCell,
  jsonSchema: () => ({ type: 'string', format: 'date-time' }),
  typescript: () => 'DateTime',
  inKey: instantText,
  text: datetimeText,
  adoption: {
    narrower: [],
    storedAs: { timestamp: { column: 'timestamp without time zone', readAs: " AT TIME ZONE 'UTC'" } },
    defaultOf: (expression) => (/^(?:now\(\)|CURRENT_TIMESTAMP)$/.test(expression) ? "'@now'" : undefined),
  },
};
