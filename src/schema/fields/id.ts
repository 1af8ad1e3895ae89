import { ID } from '../../policy/scalar-types.ts';
import { parseUuid } from '../../policy/values.ts';
import { asInPolicies, type FieldKind, reject } from './kind.ts';

/** The ids of records, and references to them. */
export const id: FieldKind = {
  name: 'id',
  doc: 'a UUID',
  ...asInPolicies(ID),
  column: 'uuid',
  expected: 'the id of a record (a UUID)',
  bounds: 'none',
  hasEnum: false,
  fromJson(value) {
    const canonical = typeof value === 'string' ? parseUuid(value) : undefined;
    return canonical === undefined
      ? reject('wrong_type', 'expected the id of a record (a UUID)')
      : { value: canonical };
  },
  toJson: (cell) => `"${cell}"`,
  unquotedJson: String,
  fromCell: String,
  jsonSchema: () => ({ type: 'string', format: 'uuid' }),
  typescript: () => 'string',
  adoption: { narrower: [], defaultOf: () => undefined },
};
