/** A foreign key as a belongs_to of the draft, and its other side as a has_many or has_one. */

import { FIELD_KINDS } from '../../schema/fields/index.ts';
import { columnNameIssue } from '../../schema/model/given-names.ts';
import { memberNameIssue } from '../../schema/model/names.ts';
import { typeOfColumn } from './column-types.ts';
import { draftField } from './draft-field.ts';
import { draftKey } from './draft-key.ts';
import { type DraftMember, type DraftTable, type LeftOut, USER_COLUMNS } from './draft-table.ts';
import {
  type ExistingColumn,
  type ExistingConstraint,
  type ExistingTable,
  isUniqueColumn,
  primaryKeyOf,
} from './existing-tables.ts';

export const ON_DELETE_OF_CATALOG: Readonly<Record<string, string>> = {
  c: 'cascade',
  r: 'restrict',
  a: 'restrict',
  n: 'set_null',
};
export interface DraftNames {
  /** The tables that have a collection, by their names in the file. */
  readonly known: ReadonlyMap<string, ExistingTable>;
  /** The collection of each table. */
  readonly collections: ReadonlyMap<string, string>;
  /** The members of each table, by column. */
  readonly members: ReadonlyMap<string, ReadonlyMap<string, string>>;
}
/** A foreign key that is a belongs_to of the draft. */
interface TableReference {
  readonly column: string;
  readonly key: ExistingConstraint;
}
/** A foreign key of several columns that is one. */
interface CompositeReference {
  /** Its columns, in the order of the key that they refer to. */
  readonly columns: readonly string[];
  readonly key: ExistingConstraint;
}

/** The foreign keys of a table: those that become a belongs_to, and the others with the reason. */
export interface References {
  readonly taken: readonly TableReference[];
  readonly composite: readonly CompositeReference[];
  readonly leftOut: readonly LeftOut[];
}

export function referencesOfTable(table: ExistingTable, { known }: Pick<DraftNames, 'known'>): References {
  const taken: TableReference[] = [];
  const composite: CompositeReference[] = [];
  const leftOut: LeftOut[] = [];
  const all = table.constraints.filter(({ kind }) => kind === 'f');
  // The members of a key of several columns come first.
  for (const key of [...all.filter(isOfOneColumn), ...all.filter((each) => !isOfOneColumn(each))]) {
    const columns = isOfOneColumn(key) ? undefined : compositeColumns(table, key, { known, taken });
    if (columns !== undefined) {
      composite.push({ columns, key });
      continue;
    }
    const [column = ''] = key.columns;
    const isSecond = isOfOneColumn(key) && taken.some((other) => other.column === column);
    const reason = isSecond ? 'its column is another reference already' : leftOutReason(table, key, known);
    if (reason === undefined) taken.push({ column, key });
    else leftOut.push({ kind: 'foreign key', name: `${table.table} (${key.columns.join(', ')})`, reason });
  }
  return { taken, composite, leftOut };
}

const isOfOneColumn = ({ columns }: ExistingConstraint): boolean => columns.length === 1;

/** The columns of the table in the order of the other key; undefined: the draft cannot have the reference. */
function compositeColumns(
  table: ExistingTable,
  { columns, foreignColumns = [], table: to }: ExistingConstraint,
  { known, taken }: Pick<DraftNames, 'known'> & Pick<References, 'taken'>,
): readonly string[] | undefined {
  const target = known.get(to!);
  const key = target === undefined ? [] : (draftKey(target)?.columns ?? []);
  if (key.length !== columns.length || !key.every((column) => foreignColumns.includes(column))) return undefined;
  const own = key.map((column) => columns[foreignColumns.indexOf(column)]!);
  const isHeld = own.every((column, i) => {
    const reference = taken.find((each) => each.column === column);
    const [foreign = ''] = reference?.key.foreignColumns ?? [];
    const isKeyThere = reference === undefined || isKey(known.get(reference.key.table!)!, foreign);
    return isKeyThere && isSameKind([table, column], [target!, key[i]!]);
  });
  return isHeld ? own : undefined;
}

type PlacedColumn = readonly [table: ExistingTable, column: string];
function isSameKind(...both: readonly [PlacedColumn, PlacedColumn]): boolean {
  const [own, other] = both.map(([table, name]) => {
    const column = table.columns.find((each) => each.name === name)!;
    return 'declared' in draftField(table, column, name) ? typeOfColumn(table.table, column) : undefined;
  });
  return own !== undefined && other !== undefined && FIELD_KINDS[own.type].sqlType === FIELD_KINDS[other.type].sqlType;
}

function leftOutReason(table: ExistingTable, key: ExistingConstraint, known: DraftNames['known']): string | undefined {
  const [column = ''] = key.columns;
  const target = known.get(key.table!);
  const there = `${key.table} (${key.foreignColumns?.join(', ')})`;
  if (target === undefined) return `it references ${key.table}, which is not in the draft`;
  if (key.columns.length > 1) return `it references ${there}, and the draft has no members that hold the key there`;
  const primary = primaryKeyOf(table);
  if (primary.length === 1 && primary[0] === column)
    return `it is the key itself: its id is that of a record of ${key.table}`;
  if (columnNameIssue(column) !== undefined) return columnNameIssue(column);
  const [foreign = ''] = key.foreignColumns ?? [];
  if (primary.length > 1 && primary.includes(column) && !isKey(target, foreign))
    return `it is in the key, and references ${there}, which is not the key there`;
  return isKey(target, foreign) || isUniqueField(target, foreign)
    ? undefined
    : `it references ${there}, which is neither its key nor a unique field`;
}

const isKey = (table: ExistingTable, column: string): boolean => column === draftKey(table)?.columns.join();

/** The draft has the column as a field, not as a reference. */
function isUniqueField(table: ExistingTable, name: string): boolean {
  const column = table.columns.find((each) => each.name === name);
  const isReference = table.constraints.some(({ kind, columns }) => kind === 'f' && columns[0] === name);
  return (
    column !== undefined && !isReference && isUniqueColumn(table, name) && 'declared' in draftField(table, column, name)
  );
}

export function draftBelongsTo(
  table: ExistingTable,
  { column: { name: column, ...facts }, key }: { readonly column: ExistingColumn; readonly key: ExistingConstraint },
  { known, collections, members }: DraftNames,
): DraftMember {
  const name = members.get(table.table)!.get(column)!;
  const onDelete = ON_DELETE_OF_CATALOG[key.onDelete!];
  const [foreign = ''] = key.foreignColumns ?? [];
  const obstacles = keyObstaclesOf(table, { name: column, ...facts }, key);
  return {
    name,
    column,
    declared: {
      kind: 'belongs_to',
      collection: collections.get(key.table!)!,
      ...(facts.required && { required: true }),
      ...(isUniqueColumn(table, column) && { unique: true }),
      ...(onDelete !== undefined && { on_delete: onDelete }),
      ...(`${name}_id` !== column && { column }),
      ...(!isKey(known.get(key.table!)!, foreign) && { references: members.get(key.table!)!.get(foreign)! }),
      ...(facts.computed && { read_only: true }),
    },
    notes: onDelete === undefined ? ['PostgreSQL sets its default when the other record is deleted'] : [],
    obstacles,
  };
}

/** The names of its other members are taken. */
export function draftCompositeReference(
  table: ExistingTable,
  { columns, key }: CompositeReference,
  { collections, members, taken }: DraftNames & { readonly taken: ReadonlySet<string> },
): DraftMember {
  const own = members.get(table.table)!;
  const collection = collections.get(key.table!)!;
  const onDelete = key.onDelete === 'c' ? 'cascade' : 'restrict';
  const fields = columns.map((column) => own.get(column)!);
  const wanted = [collection, `${collection}_by_${fields.join('_')}`];
  const isFree = (name: string): boolean =>
    !taken.has(name) && !taken.has(`${name}_id`) && memberNameIssue(name) === undefined;
  const name =
    wanted.find(isFree) ?? Array.from({ length: taken.size + 1 }, (_, i) => `${collection}_${i + 2}`).find(isFree)!;
  return {
    name,
    columns,
    declared: { kind: 'belongs_to', collection, fields, on_delete: onDelete },
    notes: ['n', 'd'].includes(key.onDelete!)
      ? ['PostgreSQL clears its columns when the other record is deleted, which the service rejects']
      : [],
    obstacles: ['it has several columns'],
  };
}

function keyObstaclesOf(table: ExistingTable, column: ExistingColumn, key: ExistingConstraint): readonly string[] {
  const found: string[] = [];
  if (column.type !== 'uuid') found.push(`it is ${column.type}, not uuid`);
  else if (key.foreignColumns?.join() !== 'id')
    found.push(`it references ${key.table} (${key.foreignColumns?.join(', ')}), not its id`);
  if (ON_DELETE_OF_CATALOG[key.onDelete!] === undefined)
    found.push('ON DELETE SET DEFAULT is not among cascade, restrict and set_null');
  if (column.required && key.onDelete === 'n')
    found.push('ON DELETE SET NULL cannot apply to a column that is NOT NULL');
  if (table.table === 'users' && column.required)
    found.push('it is required, but a user registers with email and password only');
  return found;
}

/** A belongs_to of the draft, as its other side needs it. */
export interface ReferencingKey {
  readonly from: string;
  readonly member: string;
  /** The table at the other side. */
  readonly to: string;
  readonly unique: boolean;
}

/** Adds the has_many or has_one of each reference to the table, under a free name. */
export function withReverse(draft: DraftTable, references: readonly ReferencingKey[]): DraftTable {
  const reserved = draft.name === 'users' ? [...Object.keys(USER_COLUMNS), 'password'] : [];
  const members = [...draft.fields, ...draft.relations].flatMap(({ name }) => [name, `${name}_id`]);
  const taken = new Set([...members, ...reserved]);
  const reverse: DraftMember[] = [];
  for (const { from, member, to, unique } of references) {
    if (to !== draft.existing.table) continue;
    const name = [from, `${from}_by_${member}`].find((wanted) => {
      return !taken.has(wanted) && !taken.has(`${wanted}_any`) && memberNameIssue(wanted) === undefined;
    });
    if (name === undefined) continue;
    for (const used of [name, `${name}_any`]) taken.add(used);
    const kind = unique ? 'has_one' : 'has_many';
    reverse.push({ name, declared: { kind, collection: from, via: member }, notes: [], obstacles: [] });
  }
  return { ...draft, relations: [...draft.relations, ...reverse] };
}
