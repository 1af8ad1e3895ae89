import { KEYS, type KeyKind } from '../../policy/scalar-types.ts';
import { type CatalogCollection, keyOf } from '../../policy/types.ts';
import { int } from './int.ts';
import { asInPolicies, cast, type FieldKind, reject } from './kind.ts';
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

type HasKey = Pick<CatalogCollection, 'key'>;
export const keyKindOf = (collection: HasKey): FieldKind => KEY_KINDS[keyOf(collection).kind];
/** The same of a collection that the catalog has. */
export const keyKindIn = (
  { collections }: { readonly collections: ReadonlyMap<string, HasKey> },
  name: string,
): FieldKind => keyKindOf(collections.get(name)!);
