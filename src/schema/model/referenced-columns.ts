/** `references` of a belongs_to: the unique field whose values its column has. */
import { hintOf, nearest } from '../../../grammar/suggest.ts';
import { keyOf, type ReferencedColumn } from '../../policy/types.ts';
import type { DocumentPath, Report } from '../file/issue.ts';
import type { BelongsToShape, CollectionShape } from '../file/shape.ts';
import { tableOf } from './given-names.ts';
import type { Collection } from './model.ts';

interface DeclaredReference {
  readonly shape: Pick<BelongsToShape, 'references'>;
  readonly path: DocumentPath;
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

interface ReferringDraft extends ReferencedCollection {
  readonly kind: Collection['kind'];
  readonly path: DocumentPath;
}

/** Some rows have another value of a related record than its id. */
export const hasValueReferences = ({ relations }: Pick<Collection, 'relations'>): boolean =>
  [...relations.values()].some((relation) => relation.kind === 'belongs_to' && relation.references !== undefined);

/** Keys whose copies of a row have its columns as they are. */
const COPYING = ['changes', 'history', 'soft_delete', 'distribute'] as const;

/** Migrations make the column and its foreign key, so each record of the other collection must have a value. */
export function checkManagedReferences(
  { kind, shape, path, name }: ReferringDraft,
  others: ReadonlyMap<string, ReferringDraft>,
  report: Report,
): void {
  if (shape.managed === false) return;
  for (const [own, relation] of Object.entries(shape.relations ?? {})) {
    if (relation.kind !== 'belongs_to' || relation.references === undefined || relation.references === 'id') continue;
    const target = others.get(relation.collection);
    const invalid = (message: string): void =>
      report({ code: 'invalid_references', message, path: [...path, 'relations', own, 'references'], at: 'key' });
    const copying = COPYING.find((key) => shape[key] !== undefined && shape[key] !== false);
    if (kind !== 'plain') invalid(`\`${name}\` is a collection of the service, whose references are ids; remove it`);
    else if (copying !== undefined)
      invalid(
        `\`${copying}\` keeps rows with the ids that they refer to, and this column has other values; remove one of them`,
      );
    else if (target?.shape.managed === false)
      invalid(
        `the table of \`${relation.collection}\` is not managed, so only another such table refers to its values; remove it`,
      );
    else if (target?.fields.get(relation.references)?.required === false)
      invalid(
        `no record could refer to one of \`${relation.collection}\` without a \`${relation.references}\`; add \`required: true\` to that field`,
      );
  }
}
