/** The folded copies that search fields keep beside them, written wherever the field is. */
import { fold, foldedColumn } from '../../policy/fold.ts';
import type { Collection } from '../../schema/model/model.ts';
import type { ColumnValue } from './input.ts';

/** Process-wide: a memo of a pure function of the collection. */
const known = new WeakMap<Collection, ReadonlySet<string>>();

/** The columns of the fields that `matches` looks in. */
function searchColumns(collection: Collection): ReadonlySet<string> {
  let columns = known.get(collection);
  if (columns === undefined) {
    const searched = [...collection.fields.values()].filter(({ search }) => search);
    columns = new Set(searched.map(({ column }) => column));
    known.set(collection, columns);
  }
  return columns;
}

/** With a copy after each value of a search field. */
export function withFoldedCopies(collection: Collection, values: readonly ColumnValue[]): readonly ColumnValue[] {
  const searched = searchColumns(collection);
  if (searched.size === 0) return values;
  return values.flatMap((each) => (searched.has(each.column) ? [each, copyOf(each)] : [each]));
}

function copyOf({ column, value }: ColumnValue): ColumnValue {
  return { column: foldedColumn(column), type: 'text', value: typeof value === 'string' ? fold(value) : null };
}
