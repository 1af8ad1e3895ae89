/** Compares a field or a belongs_to of a schema file with its column. */
import { keyOf, STAMPS } from '../../policy/types.ts';
import { FIELD_KINDS } from '../../schema/fields/index.ts';
import type { BelongsTo, Field, Schema } from '../../schema/model/model.ts';
import { typeOfColumn } from './column-types.ts';
import { allowedIn } from './draft-field.ts';
import { ON_DELETE_OF_CATALOG } from './draft-relation.ts';
import { type ExistingColumn, type ExistingTable, isUniqueColumn } from './existing-tables.ts';

export type ComparedMember = Field | BelongsTo;

/** A key of the file whose value is not that of the database. */
export interface DifferentKey {
  readonly key: string;
  readonly file: unknown;
  readonly database: unknown;
}
interface MemberOfFile {
  readonly file: Schema;
  readonly member: ComparedMember;
  /** A draft has a belongs_to for the column. */
  readonly isReference: boolean;
}

export function compareMember(
  given: MemberOfFile,
  table: ExistingTable,
  column: ExistingColumn,
): readonly DifferentKey[] {
  const { member } = given;
  const ofType = 'kind' in member ? [] : compareField(member, table, column);
  return [...ofType, ...compareReference(given, table, column), ...compareWrites(member, table, column)];
}

function compareField(field: Field, table: ExistingTable, column: ExistingColumn): readonly DifferentKey[] {
  const kind = typeOfColumn(table.table, column);
  if (kind === undefined || FIELD_KINDS[kind.type].sqlType !== FIELD_KINDS[field.type].sqlType)
    return [{ key: 'type', file: field.type, database: column.type }];
  const digits = (['precision', 'scale'] as const).filter(
    (key) => column.type.includes('(') && kind[key] !== field[key],
  );
  const allowed = column.values ?? allowedIn(table, column.name);
  const isOther = allowed !== undefined && !isSameColumns(allowed, field.enum ?? []);
  const isLonger = kind.max !== undefined && !(Number(field.max) <= kind.max) && field.enum === undefined;
  return [
    ...digits.map((key) => ({ key, file: field[key], database: kind[key] })),
    ...(isLonger ? [{ key: 'max', file: field.max, database: kind.max }] : []),
    ...(isOther ? [{ key: 'enum', file: field.enum, database: allowed }] : []),
  ];
}

function isSameColumns(some: readonly unknown[], others: readonly unknown[]): boolean {
  return some.length === others.length && some.every((each) => others.includes(each));
}

function compareReference(
  { file, member, isReference }: MemberOfFile,
  table: ExistingTable,
  { name }: ExistingColumn,
): readonly DifferentKey[] {
  const key = table.constraints.find(
    ({ kind, columns }) => kind === 'f' && columns.length === 1 && columns[0] === name,
  );
  if (!('kind' in member)) return isReference ? [{ key: 'references', file: undefined, database: key?.table }] : [];
  const target = file.collections.get(member.collection)?.table;
  // A view has no foreign keys.
  if (key?.table !== target)
    return table.kind === 'table' ? [{ key: 'references', file: target, database: key?.table }] : [];
  const to = file.collections.get(member.collection);
  const referenced = member.references?.column ?? (to && keyOf(to).column);
  const [foreign] = key?.foreignColumns ?? [];
  if (key !== undefined && foreign !== referenced)
    return [{ key: 'references', file: `${target}.${referenced}`, database: `${target}.${foreign}` }];
  const onDelete = ON_DELETE_OF_CATALOG[key?.onDelete ?? ''];
  if (key === undefined || onDelete === undefined || onDelete === member.onDelete) return [];
  return [{ key: 'on_delete', file: member.onDelete, database: onDelete }];
}

/** Compares the values that a write must give, and may give. */
function compareWrites(
  { needed, unique, readOnly, ...member }: ComparedMember,
  table: ExistingTable,
  column: ExistingColumn,
): readonly DifferentKey[] {
  const found: DifferentKey[] = [];
  const isFilledIn = column.default !== undefined || column.generated || member.default !== undefined;
  // A file says nothing of the times of records but their columns.
  if (table.kind === 'table' && !STAMPS.includes(member.name) && needed !== column.required && (needed || !isFilledIn))
    found.push({ key: 'required', file: needed, database: column.required });
  if (table.kind === 'table' && unique !== isUniqueColumn(table, column.name))
    found.push({ key: 'unique', file: unique, database: !unique });
  if (column.computed && !readOnly) found.push({ key: 'read_only', file: false, database: true });
  return found;
}
