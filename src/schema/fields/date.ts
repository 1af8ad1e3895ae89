import { SCALARS } from '../../policy/scalar-types.ts';
import { type Sql, sql } from '../../sql.ts';
import { asInPolicies, asText, cast, type FieldKind, readerOf } from './kind.ts';

/** Texts are read in the order of a CASE, so that no cast meets a text that is not of the form. */
const isDate = (text: Sql): Sql => sql`CASE
    WHEN ${text} ~ '^[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])$' AND left(${text}, 4) <> '0000'
    THEN right(${text}, 2)::int <= extract(day FROM (left(${text}, 7) || '-01')::date + interval '1 month - 1 day')
    ELSE false
  END`;

const EXPECTED = 'a date in the years 0001 to 9999, such as "2026-01-31"';

export const date: FieldKind = {
  name: 'date',
  doc: 'a day of the calendar, `YYYY-MM-DD`',
  ...asInPolicies(SCALARS.date),
  column: 'date',
  expected: EXPECTED,
  bounds: 'value',
  hasEnum: false,
  moment: 'day',
  fromJson: readerOf(SCALARS.date, EXPECTED),
  toJson: (cell) => `"${cell}"`,
  unquotedJson: String,
  fromCell: String,
  jsonSchema: () => ({ type: 'string', format: 'date' }),
  typescript: () => 'string',
  adoption: {
    narrower: [],
    defaultOf(expression) {
      if (/^(?:CURRENT_DATE|\(?now\(\)\)?::date)$/.test(expression)) return "'@today'";
      return /^('\d{4}-\d\d-\d\d')::date$/.exec(expression)?.[1];
    },
  },
  inKey: cast,
  text: asText(isDate),
};
