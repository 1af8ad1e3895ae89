import { SCALARS } from '../../policy/scalar-types.ts';
import { sql } from '../../sql.ts';
import { asInPolicies, asText, cast, type FieldKind, readerOf } from './kind.ts';

const EXPECTED = 'a time of the day from 00:00:00 to 23:59:59.999999, such as "09:30:00"';
const COLUMN = 'time without time zone';

export const time: FieldKind = {
  name: 'time',
  doc: 'a time of the day, `HH:MM:SS` with at most six decimals; it has no time zone',
  ...asInPolicies(SCALARS.time),
  column: COLUMN,
  expected: EXPECTED,
  bounds: 'value',
  hasEnum: false,
  fromJson: readerOf(SCALARS.time, EXPECTED),
  // PostgreSQL prints no zeros after the last decimal, and neither does `parseTime`.
  toJson: (cell) => `"${cell}"`,
  unquotedJson: String,
  fromCell: String,
  jsonSchema: () => ({ type: 'string', format: 'partial-time' }),
  typescript: () => 'string',
  adoption: {
    narrower: [],
    defaultOf: (expression) => /^('[0-9:.]+')::time without time zone$/.exec(expression)?.[1],
  },
  inKey: cast,
  text: asText((text) => sql`${text} ~ '^([01][0-9]|2[0-3])(:[0-5][0-9]){2}([.][0-9]{0,5}[1-9])?$'`),
};
