/** The filter keys of a list. The route, the OpenAPI document and the generated types all read this list. */
import { memoizedBy } from '../../memoized.ts';
import { isOpaque } from '../../policy/scalar-types.ts';
import type { Collection, Field, Relation } from './model.ts';

export type FilterKey =
  /** The id of the record itself. */
  | { readonly key: string; readonly kind: 'id' }
  | { readonly key: string; readonly kind: 'field'; readonly field: Field }
  /** The id of a related record. */
  | { readonly key: string; readonly kind: 'relation'; readonly relation: Relation };

type Filtered = Pick<Collection, 'fields' | 'relations'>;

/** Filters by key, in the order of the schema. */
export const filterKeysOf = memoizedBy(
  (collection: Filtered): ReadonlyMap<string, FilterKey> => new Map(allKeys(collection).map((key) => [key.key, key])),
);

function allKeys({ fields, relations }: Filtered): readonly FilterKey[] {
  return [
    { key: 'id', kind: 'id' },
    // A list is asked for its elements, and JSON for its presence, by a filter of a query.
    ...[...fields.values()]
      .filter(({ type }) => !isOpaque(type))
      .map((field): FilterKey => ({ key: field.name, kind: 'field', field })),
    ...[...relations.values()].flatMap((relation) =>
      relationKeysOf(relation).map((key): FilterKey => ({ key, kind: 'relation', relation })),
    ),
  ];
}

/** The keys that take the id of a record of the relation. */
export function relationKeysOf(relation: Relation): readonly string[] {
  switch (relation.kind) {
    case 'belongs_to':
      return [relation.name, `${relation.name}_id`];
    case 'has_one':
      return [relation.name];
    case 'has_many':
    case 'many_to_many':
      return [`${relation.name}_any`];
  }
}

/** The belongs_to that a filter of a list must require, because the rules do not. */
export const neededTenant = ({ tenantLayout }: Collection): string | undefined =>
  tenantLayout?.kind === 'by' && tenantLayout.lists === 'filtered' ? tenantLayout.by : undefined;
