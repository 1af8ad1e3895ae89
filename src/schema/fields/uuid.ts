import { SCALARS } from '../../policy/scalar-types.ts';
import { sql } from '../../sql.ts';
import { asInPolicies, asText, cast, type FieldKind, readerOf } from './kind.ts';

const EXPECTED = 'a UUID with dashes, such as "01900000-0000-7000-8000-000000000000"';

export const uuid: FieldKind = {
  name: 'uuid',
  doc: 'a UUID that references no record; read in any letter case',
  ...asInPolicies(SCALARS.uuid),
  column: 'uuid',
  expected: EXPECTED,
  bounds: 'none',
  hasEnum: false,
  fromJson: readerOf(SCALARS.uuid, EXPECTED),
  toJson: (cell) => `"${cell}"`,
  unquotedJson: String,
  fromCell: String,
  jsonSchema: () => ({ type: 'string', format: 'uuid' }),
  typescript: () => 'string',
  adoption: {
    narrower: [],
    defaultOf: (expression) => /^('[0-9a-f-]{36}')::uuid$/.exec(expression)?.[1],
  },
  inKey: cast,
  text: asText((text) => sql`${text} ~ '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$'`),
};
