/**
 * Reports the fields that pages are filtered or sorted by without an index: such pages read the
 * whole table as it grows. Where another filter has an index, the rest only narrows what that
 * finds.
 */
import type { Collection, Field } from '../../schema/model/model.ts';
import type { Store } from '../access-context.ts';
import type { Filter } from './exact-filters.ts';
import type { Sorting } from './sort.ts';

/** What a page is found by. */
interface PageKeys {
  /** The fields that every record of the page is compared by; undefined: something else finds few records. */
  readonly filtered: readonly Pick<Field, 'name' | 'column'>[] | undefined;
  /** The first key of the order, where it is a field of the record itself. */
  readonly sorted?: Pick<Field, 'name' | 'column'> | undefined;
}

export function tellUnindexed(store: Store, collection: Collection, { filtered, sorted }: PageKeys): void {
  const tell = store.hooks.onUnindexed;
  if (tell === undefined || filtered === undefined || (filtered.length === 0 && sorted === undefined)) return;
  const indexed = store.pages.indexedOf(collection);
  if (filtered.some(({ column }) => indexed.has(column))) return;
  for (const field of new Set(filtered.map(({ name }) => name)))
    tell({ collection: collection.name, field, use: 'filter' });
  if (sorted === undefined || indexed.has(sorted.column)) return;
  tell({ collection: collection.name, field: sorted.name, use: 'sort' });
}

/** Of the exact filters, those of relations and of the id have an index. */
export function fieldsOf(filters: readonly Filter[]): readonly Field[] | undefined {
  const fields: Field[] = [];
  for (const filter of filters) {
    if (filter.kind !== 'field') return undefined;
    fields.push(filter.field);
  }
  return fields;
}

export function firstFieldOf([first]: readonly Sorting[]): Pick<Field, 'name' | 'column'> | undefined {
  return first === undefined || first.path.steps.length > 0 ? undefined : first.path.field;
}
