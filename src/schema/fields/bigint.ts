import { SCALARS } from '../../policy/scalar-types.ts';
import { sql } from '../../sql.ts';
import { asInPolicies, asText, cast, type FieldKind, readerOf } from './kind.ts';

const EXPECTED = 'a whole number from -9223372036854775808 to 9223372036854775807 as a string, such as "42"';

export const bigint: FieldKind = {
  name: 'bigint',
  doc: 'a whole number of 64 bits; a string in JSON, because JSON numbers lose digits beyond 2^53',
  ...asInPolicies(SCALARS.bigint),
  column: 'bigint',
  expected: EXPECTED,
  bounds: 'value',
  hasEnum: false,
  fromJson: readerOf(SCALARS.bigint, EXPECTED),
  toJson: (cell) => `"${cell}"`,
  unquotedJson: String,
  fromCell: String,
  jsonSchema: () => ({ type: 'string', format: 'int64' }),
  typescript: () => 'string',
  adoption: { narrower: [], defaultOf: () => undefined },
  inKey: cast,
  text: asText(
    (text) => sql`CASE
      WHEN ${text} ~ '^(0|-?[1-9][0-9]{0,18})$' THEN ${text}::numeric BETWEEN -9223372036854775808 AND 9223372036854775807
      ELSE false
    END`,
  ),
};
