/** `managed: false`: keys of the file that a table of another owner cannot follow. */

import { isText } from '../../policy/scalar-types.ts';
import { FIELD_KINDS } from '../fields/index.ts';
import type { DocumentPath, Report } from '../file/issue.ts';
import type { CollectionShape } from '../file/shape.ts';
import type { BelongsTo, Collection, Field, Relation } from './model.ts';

interface DeclaredCollection {
  readonly shape: CollectionShape;
  readonly path: DocumentPath;
}

type StoredMembers = Pick<Collection, 'fields' | 'relations'>;
type UnmanagedMembers = StoredMembers & Pick<DeclaredCollection, 'shape'>;

type PlacedMessage = readonly [path: DocumentPath, message: string];

export function checkUnmanaged(declared: Iterable<DeclaredCollection>, report: Report): void {
  for (const { shape, path } of declared) {
    if (shape.managed !== false) {
      reportOwners({ shape, path }, report);
      continue;
    }
    for (const [at, message] of misplaced(shape)) {
      report({ code: 'not_for_unmanaged', message, path: [...path, ...at], at: 'key' });
    }
  }
}

/** Migrations give a column the type of its field. */
function reportOwners({ shape: { fields = {} }, path }: DeclaredCollection, report: Report): void {
  const message = '`stored_as` is for the tables of other programs, which have `managed: false`; remove it';
  for (const [name, field] of Object.entries(fields))
    if (typeof field !== 'string' && field.stored_as !== undefined)
      report({ code: 'not_for_managed', message, path: [...path, 'fields', name, 'stored_as'], at: 'key' });
}

function* misplaced({
  was,
  distribute,
  no_overlap: noOverlap,
  fields = {},
  relations = {},
}: CollectionShape): Iterable<PlacedMessage> {
  const ofOwner = 'the table is not managed';
  if (was !== undefined) yield [['was'], `${ofOwner}, so no migration renames it; remove \`was\``];
  if (distribute !== undefined) yield [['distribute'], `${ofOwner}, so its owner decides where rows are; remove it`];
  if (noOverlap !== undefined) yield [['no_overlap'], `${ofOwner}, so its owner adds the constraint; remove it`];
  for (const [name, field] of Object.entries(fields)) {
    if (typeof field === 'string') continue;
    const path = ['fields', name];
    if (field.search === true)
      yield [[...path, 'search'], `${ofOwner}, and \`search\` needs a column that the service adds; remove it`];
    if (field.was !== undefined)
      yield [[...path, 'was'], `${ofOwner}, so no migration renames columns; use \`column\``];
  }
  for (const [name, relation] of Object.entries(relations)) {
    if (relation.kind === 'belongs_to' && relation.was !== undefined)
      yield [['relations', name, 'was'], `${ofOwner}, so no migration renames columns; use \`column\``];
  }
}

/**
 * Only a managed table ensures that stored records have a value, and that the record of a reference exists: rules must
 * hold where they do not.
 */
export function storedMembers(
  { shape, fields, relations }: UnmanagedMembers,
  drafts: ReadonlyMap<string, DeclaredCollection>,
): StoredMembers {
  const isManaged = ({ managed = true }: CollectionShape): boolean => managed;
  const isOwn = isManaged(shape);
  const optional = [...relations].map(([name, relation]): [string, Relation] => {
    const isToOwn = isManaged(drafts.get(relation.collection)?.shape ?? {});
    if (relation.kind === 'many_to_many') return [name, isToOwn ? relation : { ...relation, mayBeLost: true }];
    if (relation.kind !== 'belongs_to' || (isOwn && isToOwn)) return [name, relation];
    return [name, { ...withoutForeignKey(relation), required: false }];
  });
  const stored = isOwn ? fields : new Map([...fields].map(([name, field]) => [name, ownersField(field)]));
  return { fields: stored, relations: new Map(optional) };
}

/** The same reference where its record may be gone. A value of another column that no record has is null. */
export const withoutForeignKey = (relation: BelongsTo): BelongsTo =>
  relation.references === undefined ? { ...relation, mayBeLost: true } : { ...relation, required: false };

const ownersField = (field: Field): Field => ({
  ...field,
  required: false,
  mayExceedType: true,
  ...(isText(field.type) && field.enum !== undefined && { readAs: '::text' }),
  ...readingOf(field),
});

function readingOf({ type, storedAs }: Field): Pick<Field, 'readAs'> {
  const readAs = storedAs === undefined ? undefined : FIELD_KINDS[type].adoption.storedAs?.[storedAs]?.readAs;
  return readAs === undefined ? {} : { readAs };
}
