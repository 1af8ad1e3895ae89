import { parseUuid } from '../../policy/values.ts';
import { type FieldKind, refuse } from './kind.ts';

/** Identifiers and references to records. */
export const id: FieldKind = {
  name: 'id',
  column: 'uuid',
  sqlType: 'uuid',
  listType: 'uuid[]',
  bounds: 'none',
  hasEnum: false,
  fromJson(value) {
    const canonical = typeof value === 'string' ? parseUuid(value) : undefined;
    return canonical === undefined ? refuse('wrong_type', 'expected an identifier (a UUID)') : { value: canonical };
  },
  fromQuery: parseUuid,
  toJson: (cell) => `"${cell}"`,
  fromCell: (cell) => cell,
  jsonSchema: () => ({ type: 'string', format: 'uuid' }),
  typescript: () => 'string',
};
