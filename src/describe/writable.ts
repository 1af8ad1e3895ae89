/** What a caller may send and must send, as the descriptions of the interface (OpenAPI, TypeScript) need it. */
import type { BelongsTo, Collection, Field, HasOne, ManyToMany, Relation } from '../schema/model.ts';

/** A field or a relation that a body may hold. */
export type Writable =
  | { readonly name: string; readonly kind: 'field'; readonly field: Field; readonly mandatory: boolean }
  | {
      readonly name: string;
      readonly kind: 'reference';
      readonly relation: BelongsTo | HasOne;
      readonly mandatory: boolean;
      readonly nullable: boolean;
    }
  | { readonly name: string; readonly kind: 'members'; readonly relation: ManyToMany; readonly mandatory: false };

export function writablesOf({ fields, relations }: Collection): readonly Writable[] {
  const ofFields = [...fields.values()].filter(({ readOnly }) => !readOnly);
  return [
    ...ofFields.map(
      (field): Writable => ({
        name: field.name,
        kind: 'field',
        field,
        mandatory: field.required && field.default === undefined,
      }),
    ),
    ...[...relations.values()].flatMap(writableRelation),
  ];
}

function writableRelation(relation: Relation): readonly Writable[] {
  const { name } = relation;
  switch (relation.kind) {
    case 'belongs_to': {
      const mandatory = relation.required && relation.default === undefined;
      return relation.readOnly ? [] : [{ name, kind: 'reference', relation, mandatory, nullable: !relation.required }];
    }
    case 'has_one':
      return [{ name, kind: 'reference', relation, mandatory: false, nullable: true }];
    case 'many_to_many':
      return [{ name, kind: 'members', relation, mandatory: false }];
    case 'has_many':
      return [];
  }
}

/** Relations whose identifier a record shows. */
export const referencesOf = ({ relations }: Collection): readonly (BelongsTo | HasOne)[] =>
  [...relations.values()].filter((relation) => relation.kind === 'belongs_to' || relation.kind === 'has_one');

/** A filter key of lists, and the field that its value is of; without one, its value is an identifier. */
export interface FilterKey {
  readonly key: string;
  readonly field?: Field;
  readonly target?: string;
}

export function filterKeysOf({ name, fields, relations }: Collection): readonly FilterKey[] {
  const keys: FilterKey[] = [{ key: 'id', target: name }];
  for (const field of fields.values()) keys.push({ key: field.name, field });
  for (const relation of relations.values()) {
    const target = relation.collection;
    if (relation.kind === 'belongs_to') keys.push({ key: relation.name, target }, { key: relation.column, target });
    else keys.push({ key: relation.kind === 'has_one' ? relation.name : `${relation.name}_any`, target });
  }
  return keys;
}

/** Names of the generated types that are not those of collections. */
const OTHER_TYPES: readonly string[] = [
  'Id',
  'DateTime',
  'Members',
  'Page',
  'Role',
  'Collections',
  'Problem',
  'Tokens',
  'Session',
];
const SUFFIXES = ['', 'Create', 'Update', 'Filters'] as const;

/** `team_members` → `TeamMembers`. Two collections may come to the same names: the later one is numbered. */
export function typeNames(collections: Iterable<string>): ReadonlyMap<string, string> {
  const names = new Map<string, string>();
  const taken = new Set(OTHER_TYPES);
  for (const collection of collections) {
    const base = collection.replaceAll(/(?:^|_)([A-Za-z0-9])/g, (_, letter: string) => letter.toUpperCase());
    let name = base;
    for (let i = 2; SUFFIXES.some((suffix) => taken.has(name + suffix)); i++) name = `${base}${i}`;
    for (const suffix of SUFFIXES) taken.add(name + suffix);
    names.set(collection, name);
  }
  return names;
}
