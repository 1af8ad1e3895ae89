import { parseBool } from '../../policy/values.ts';
import { type FieldKind, refuse } from './kind.ts';

export const bool: FieldKind = {
  name: 'bool',
  column: 'boolean',
  sqlType: 'bool',
  listType: 'bool[]',
  bounds: 'none',
  hasEnum: false,
  fromJson: (value) => (typeof value === 'boolean' ? { value } : refuse('wrong_type', 'expected true or false')),
  fromQuery: parseBool,
  toJson: (cell) => (cell === 't' ? 'true' : 'false'),
  fromCell: (cell) => cell === 't',
  jsonSchema: () => ({ type: 'boolean' }),
  typescript: () => 'boolean',
};
