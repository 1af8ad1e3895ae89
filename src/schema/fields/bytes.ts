import { SCALARS } from '../../policy/scalar-types.ts';
import { base64OfBytes, MOST_BYTES_OF_VALUE, parseBytes } from '../../policy/values.ts';
import { type Sql, sql } from '../../sql.ts';
import { asInPolicies, type FieldKind, reject } from './kind.ts';

const EXPECTED = `at most ${MOST_BYTES_OF_VALUE} bytes in base64 with its padding, such as "aGVsbG8="`;

/** PostgreSQL breaks the lines of long values. */
const inBase64 = (bytes: Sql): Sql => sql`translate(encode(${bytes}, 'base64'), E'\\n', '')`;

export const bytes: FieldKind = {
  name: 'bytes',
  doc: 'at most 64 KiB of any bytes, in base64 in JSON',
  ...asInPolicies(SCALARS.bytes),
  column: 'bytea',
  expected: EXPECTED,
  bounds: 'none',
  hasEnum: false,
  isIndexable: false,
  fromJson(value) {
    const read = typeof value === 'string' ? parseBytes(value) : undefined;
    return read === undefined ? reject('wrong_type', `expected ${EXPECTED}`) : { value: read };
  },
  toJson: (cell) => `"${base64OfBytes(cell)}"`,
  unquotedJson: base64OfBytes,
  fromCell: String,
  jsonSchema: () => ({ type: 'string', format: 'byte', contentEncoding: 'base64' }),
  typescript: () => 'string',
  adoption: { narrower: [], defaultOf: () => undefined },
  text: {
    print: inBase64,
    isPrinted: (text) => sql`CASE
      WHEN ${text} ~ '^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$'
      THEN ${inBase64(sql`decode(${text}, 'base64')`)} = ${text} AND length(${text}) <= 87384
      ELSE false
    END`,
    parse: (text) => sql`decode(${text}, 'base64')`,
  },
};
