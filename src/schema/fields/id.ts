import { KEYS, type KeyKind } from '../../policy/scalar-types.ts';
import { type CatalogCollection, keyOf } from '../../policy/types.ts';
import { int } from './int.ts';
import { asInPolicies, cast, type FieldKind, type JsonSchema, type Read, reject } from './kind.ts';
import { string } from './string.ts';

type OwnPart = Pick<
  FieldKind,
  'doc' | 'column' | 'toJson' | 'unquotedJson' | 'fromCell' | 'jsonSchema' | 'typescript' | 'inKey'
>;

function keyKind(kind: KeyKind, own: OwnPart): FieldKind {
  const { readJson } = KEYS[kind];
  const expected = `the id of a record (${own.doc})`;
  return {
    ...own,
    name: 'id',
    ...asInPolicies(KEYS[kind]),
    expected,
    bounds: 'none',
    hasEnum: false,
    fromJson(value) {
      const id = readJson(value);
      return id === undefined ? reject('wrong_type', `expected ${expected}`) : { value: id };
    },
    adoption: { narrower: [], defaultOf: () => undefined },
  };
}

const uuid = keyKind('uuid', {
  doc: 'a UUID',
  column: 'uuid',
  toJson: (cell) => `"${cell}"`,
  unquotedJson: String,
  fromCell: String,
  jsonSchema: () => ({ type: 'string', format: 'uuid' }),
  typescript: () => 'string',
  inKey: cast,
});

/** The ids of records, and references to them, by the kind of their collection's key. */
const KEY_KINDS: Readonly<Record<KeyKind, FieldKind>> = {
  uuid,
  int: keyKind('int', int),
  string: keyKind('string', {
    ...string,
    doc: 'a string that is not empty',
    jsonSchema: () => ({ type: 'string', minLength: 1 }),
  }),
};

/**
 * Bytes of an id that a caller makes. It fits into an address, into each index, and twice into that of a reference or
 * of a link.
 */
const MOST_ID_BYTES = 1024;

/** The id of a record that its creator makes. */
export function readNewId(collection: HasKey, value: unknown): Read {
  const read = keyKindOf(collection).fromJson(value, {});
  if (read.error || typeof read.value !== 'string') return read;
  const { length } = new TextEncoder().encode(read.value);
  return length > MOST_ID_BYTES ? reject('too_long', `expected ${MOST_ID_BYTES} bytes or less`) : read;
}

/** The same as JSON Schema, which counts characters. */
export function newIdSchema(collection: HasKey): JsonSchema {
  const schema = keyKindOf(collection).jsonSchema({});
  return keyOf(collection).kind === 'string' ? { ...schema, maxLength: MOST_ID_BYTES } : schema;
}

type HasKey = Pick<CatalogCollection, 'key'>;
export const keyKindOf = (collection: HasKey): FieldKind => KEY_KINDS[keyOf(collection).kind];
/** The same of a collection that the catalog has. */
export const keyKindIn = (
  { collections }: { readonly collections: ReadonlyMap<string, HasKey> },
  name: string,
): FieldKind => keyKindOf(collections.get(name)!);
