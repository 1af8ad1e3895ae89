/** Fields of a page without an index. */
import type { AskedFilter } from '../../policy/filters/filter.ts';
import type { Collection } from '../../schema/model/model.ts';
import type { Store, UnindexedUse } from '../access-context.ts';
import type { Sorting } from './keyset.ts';
import type { RelatedFilter } from './related-filters.ts';

interface UsedFields {
  readonly filters: readonly AskedFilter[];
  readonly related: readonly RelatedFilter[];
  readonly request: { readonly sort?: readonly Sorting[] };
}

/**
 * The fields that a page is filtered and sorted by without an index, so that it reads the whole
 * table as it grows. An index of another filter leaves the rest only to narrow its rows.
 */
export function unindexedUses(
  { pages }: Store,
  collection: Collection,
  { filters, related, request }: UsedFields,
): readonly UnindexedUse[] {
  const indexed = pages.indexedOf(collection);
  const unserved = filters.map((filter) => filter.unserved(indexed));
  const isServed = related.length > 0 || unserved.includes(undefined);
  if (isServed) return [];
  const filtered = new Set(unserved.flatMap((columns = []) => columns.map(({ name }) => name)));
  const [first] = request.sort ?? [];
  // No index has the order of folded copies and of distances.
  const { steps = [], field, isFolded, from } = first?.path ?? {};
  const sorted = steps.length > 0 || isFolded || from ? undefined : field;
  return [
    ...[...filtered].map((field) => ({ collection: collection.name, field, use: 'filter' as const })),
    ...(sorted === undefined || indexed.has(sorted.column)
      ? []
      : [{ collection: collection.name, field: sorted.name, use: 'sort' as const }]),
  ];
}
