/** What a list may be filtered by: every key that a collection has, found once. */
import type { Scalar } from '../../policy/values.ts';
import { FIELD_KINDS, ID_KIND } from '../../schema/fields/index.ts';
import type { Collection, Field, Relation } from '../../schema/model.ts';
import type { Filter } from '../../store/records/list.ts';

export interface FilterKey {
  readonly key: string;
  /** For people: what a value looks like. */
  readonly expected: string;
  /** Undefined: not a value of the key's type. */
  read(text: string): Filter | undefined;
}

const known = new WeakMap<Collection, ReadonlyMap<string, FilterKey>>();

export function filterKeysOf(collection: Collection): ReadonlyMap<string, FilterKey> {
  let keys = known.get(collection);
  if (keys === undefined) {
    keys = new Map(allKeys(collection).map((key) => [key.key, key]));
    known.set(collection, keys);
  }
  return keys;
}

function allKeys({ fields, relations }: Collection): readonly FilterKey[] {
  const own = idKey('id', (value) => ({ kind: 'id', value }));
  return [own, ...[...fields.values()].map(fieldKey), ...[...relations.values()].flatMap(relationKeys)];
}

function fieldKey(field: Field): FilterKey {
  return {
    key: field.name,
    expected: expectedOf(field),
    read(text) {
      const value = FIELD_KINDS[field.type].fromQuery(text);
      return value === undefined || !isAllowed(field, value) ? undefined : { kind: 'field', field, value };
    },
  };
}

const isAllowed = ({ enum: allowed }: Field, value: Scalar): boolean =>
  allowed === undefined || allowed.includes(value as string | number);

function relationKeys(relation: Relation): readonly FilterKey[] {
  const { kind, name } = relation;
  switch (kind) {
    case 'belongs_to':
      return [name, relation.column].map((key) => idKey(key, (id) => ({ kind, relation, id })));
    case 'has_one':
      return [idKey(name, (id) => ({ kind, relation, id }))];
    case 'has_many':
    case 'many_to_many':
      return [idKey(`${name}_any`, (id) => ({ kind: 'any', relation, id }))];
  }
}

function idKey(key: string, filterOf: (id: string) => Filter): FilterKey {
  return {
    key,
    expected: ID_KIND.expected,
    read(text) {
      const id = ID_KIND.fromQuery(text);
      return id === undefined ? undefined : filterOf(id as string);
    },
  };
}

function expectedOf({ type, enum: allowed }: Field): string {
  return allowed === undefined
    ? FIELD_KINDS[type].expected
    : `one of ${allowed.map((value) => `\`${value}\``).join(', ')}`;
}
