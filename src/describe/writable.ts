/** What a write may and must hold, for the OpenAPI document and the TypeScript types; and the names of generated types. */
import type { BelongsTo, Collection, Field, HasOne, ManyToMany, Relation } from '../schema/model.ts';

/** A field or a relation that a body may hold. */
export type Writable =
  | { readonly name: string; readonly kind: 'field'; readonly field: Field; readonly required: boolean }
  | {
      readonly name: string;
      readonly kind: 'reference';
      readonly relation: BelongsTo | HasOne;
      readonly required: boolean;
      readonly nullable: boolean;
    }
  | { readonly name: string; readonly kind: 'members'; readonly relation: ManyToMany; readonly required: false };

export function writablesOf({ fields, relations }: Collection): readonly Writable[] {
  const ofFields = [...fields.values()].filter(({ readOnly }) => !readOnly);
  return [
    ...ofFields.map(
      (field): Writable => ({
        name: field.name,
        kind: 'field',
        field,
        required: field.required && field.default === undefined,
      }),
    ),
    ...[...relations.values()].flatMap(writableRelation),
  ];
}

function writableRelation(relation: Relation): readonly Writable[] {
  const { name } = relation;
  switch (relation.kind) {
    case 'belongs_to': {
      if (relation.readOnly) return [];
      const required = relation.required && relation.default === undefined;
      return [{ name, kind: 'reference', relation, required, nullable: !relation.required }];
    }
    case 'has_one':
      return [{ name, kind: 'reference', relation, required: false, nullable: true }];
    case 'many_to_many':
      return [{ name, kind: 'members', relation, required: false }];
    case 'has_many':
      return [];
  }
}

/** Relations whose id is a member of the record. */
export const referencesOf = ({ relations }: Collection): readonly (BelongsTo | HasOne)[] =>
  [...relations.values()].filter((relation) => relation.kind === 'belongs_to' || relation.kind === 'has_one');

/** Names of generated types that do not come from a collection. */
export const OTHER_TYPES: readonly string[] = [
  'Id',
  'IdOnly',
  'DateTime',
  'MemberChange',
  'Page',
  'Role',
  'Collections',
  'Problem',
  'Tokens',
  'Session',
];
const SUFFIXES = ['', 'Create', 'Update', 'Filters'] as const;

/** `team_members` → `TeamMembers`. Where two collections come to the same name, the later one is numbered. */
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
