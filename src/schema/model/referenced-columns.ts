/** `references` of a belongs_to: the unique field whose values its column has. */
import { hintOf, nearest } from '../../../grammar/suggest.ts';
import { keyOf, type ReferencedColumn } from '../../policy/types.ts';
import type { Path, Report } from '../file/issue.ts';
import type { BelongsToShape, CollectionShape } from '../file/shape.ts';
import { tableOf } from './given-names.ts';
import type { Collection } from './model.ts';

interface DeclaredReference {
  readonly shape: Pick<BelongsToShape, 'references'>;
  readonly path: Path;
}
type ReferencedCollection = Pick<Collection, 'name' | 'key' | 'fields'> & { readonly shape: CollectionShape };

/** Undefined: the column has ids. */
export function referencedColumn(
  { shape: { references: name }, path }: DeclaredReference,
  target: ReferencedCollection,
  report: Report,
): ReferencedColumn | undefined {
  if (name === undefined || name === 'id') return undefined;
  const field = target.fields.get(name);
  if (field?.unique) return { field: name, table: tableOf(target), column: field.column, key: keyOf(target).column };
  const unique = [...target.fields.values()].filter((each) => each.unique).map((each) => each.name);
  const near = field === undefined ? nearest(name, unique) : undefined;
  const message =
    field === undefined
      ? `\`${target.name}\` has no field \`${name}\`${hintOf(near)}`
      : `\`${name}\` of \`${target.name}\` is not unique, so a value of it may refer to several records; add \`unique: true\``;
  report({ code: 'invalid_references', message, path: [...path, 'references'], replacement: near });
  return undefined;
}
