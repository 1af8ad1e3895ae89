import { SCALARS } from '../../policy/scalar-types.ts';
import { asInPolicies, cast, type FieldKind, reject } from './kind.ts';

export const bool: FieldKind = {
  name: 'bool',
  doc: '`true` or `false`',
  ...asInPolicies(SCALARS.bool),
  column: 'boolean',
  expected: '`true` or `false`',
  bounds: 'none',
  hasEnum: false,
  fromJson: (value) => (typeof value === 'boolean' ? { value } : reject('wrong_type', 'expected true or false')),
  toJson: (cell) => (cell === 't' ? 'true' : 'false'),
  fromCell: (cell) => cell === 't',
  isForeignCell: (cell) => cell !== 't' && cell !== 'f',
  jsonSchema: () => ({ type: 'boolean' }),
  typescript: () => 'boolean',
  inKey: cast,
  adoption: { narrower: [], defaultOf: (expression) => (/^(?:true|false)$/.test(expression) ? expression : undefined) },
};
