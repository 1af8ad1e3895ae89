/** Compares the references of several columns of a schema file with the foreign keys of a table. */
import { keyColumnsOf } from '../../schema/model/composite-key.ts';
import type { BelongsTo, Collection, Schema } from '../../schema/model/model.ts';
import type { Difference } from './difference.ts';
import { ON_DELETE_OF_CATALOG } from './draft-relation.ts';
import type { DraftTable } from './draft-table.ts';
import { areUnique, type ExistingConstraint, type ExistingTable } from './existing-tables.ts';

interface ReferringTable {
  readonly file: Schema;
  readonly collection: Collection;
  readonly table: ExistingTable;
  readonly draft: DraftTable | undefined;
}
type ReferenceOfColumns = BelongsTo & { readonly columns: readonly string[] };

const isComposite = (relation: object): relation is ReferenceOfColumns =>
  'columns' in relation && relation.columns !== undefined;

export function compareReferences({ file, collection, table, draft }: ReferringTable): readonly Difference[] {
  const declared = [...collection.relations.values()].filter(isComposite);
  const compared = declared.flatMap((relation) =>
    compareForeignKey(relation, table, file).map((each): Difference => {
      return { kind: 'differs', table: table.table, name: `${collection.name}.${relation.name}`, ...each };
    }),
  );
  const isDeclared = (columns: readonly string[]): boolean =>
    declared.some((relation) => areSame(relation.columns, columns));
  const lacking = (draft?.relations ?? []).flatMap(({ name, columns, declared: database }): readonly Difference[] =>
    columns === undefined || isDeclared(columns)
      ? []
      : [{ kind: 'file_lacks', table: table.table, columns, name: `${collection.name}.${name}`, database }],
  );
  return [...compared, ...lacking];
}

type DifferentValue = Pick<Difference, 'key' | 'file' | 'database'>;

function compareForeignKey(
  { collection, columns, unique, onDelete }: ReferenceOfColumns,
  table: ExistingTable,
  file: Schema,
): readonly DifferentValue[] {
  // A view has no foreign keys.
  if (table.kind !== 'table') return [];
  const target = file.collections.get(collection)!;
  const wanted = columnPairs({ table: target.table, columns, foreignColumns: keyColumnsOf(target) });
  const all = table.constraints.filter((each) => each.kind === 'f' && areSame(each.columns, columns));
  const found = all.find((each) => columnPairs(each) === wanted);
  const action = ON_DELETE_OF_CATALOG[found?.onDelete ?? ''];
  // No file can say of several columns that a delete clears them.
  const actual = action === 'set_null' ? 'restrict' : action;
  return [
    ...(found === undefined ? [{ key: 'references', file: wanted, database: all[0] && columnPairs(all[0]) }] : []),
    ...(actual !== undefined && actual !== onDelete ? [{ key: 'on_delete', file: onDelete, database: actual }] : []),
    ...(unique && !areUnique(table, columns) ? [{ key: 'unique', file: true, database: false }] : []),
  ];
}

const areSame = (some: readonly string[], others: readonly string[]): boolean =>
  some.length === others.length && some.every((each) => others.includes(each));

/** `shop.lines (order_no = order_no, line = line_no)`: equal texts are of equal foreign keys. */
function columnPairs({ table, columns, foreignColumns = [] }: Omit<ExistingConstraint, 'kind' | 'definition'>): string {
  const pairs = columns.map((column, i) => `${column} = ${foreignColumns[i]}`).toSorted();
  return `${table} (${pairs.join(', ')})`;
}
