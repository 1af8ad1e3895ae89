/** The key of a collection: the columns that identify a row of an existing table. */
import { FIELD_KINDS } from '../../schema/fields/index.ts';
import { typeOfColumn } from './column-types.ts';
import { draftField } from './draft-field.ts';
import type { Declaration } from './draft-table.ts';
import { KEY_SUFFIX } from './drafted-names.ts';
import { type ExistingColumn, type ExistingTable, isUniqueColumn, primaryKeyOf } from './existing-tables.ts';

export interface DraftKey {
  readonly columns: readonly string[];
  /** `id` of the collection, of one column; undefined: a uuid in the column `id`, which the service makes. */
  readonly declared?: Declaration;
  readonly note?: string;
}

/** The types of keys, by the SQL types of the fields that their columns would be. */
const DRAFTED_KEY_TYPES: Readonly<Record<string, keyof typeof MAKER>> = { uuid: 'uuid', int8: 'int', text: 'string' };
const MAKER = { uuid: 'service', int: 'database', string: 'caller' } as const;

/** Undefined: there is none, or it has a type of no key. */
export function draftKey(table: ExistingTable): DraftKey | undefined {
  const columns = primaryColumns(table);
  if (columns.length > 1) return columns.every((name) => isInKey(table, name)) ? { columns } : undefined;
  if (columns.length === 0) return undefined;
  const column = table.columns.find(({ name }) => name === columns[0])!;
  const type = keyTypeOf(table.table, column);
  if (type === undefined) return undefined;
  const declared = draftedKey(table, column, type);
  return { columns, ...(declared && { declared }), ...noteOf(table, column) };
}

/** The draft has the column, of a type that a key of several columns may have. */
function isInKey(table: ExistingTable, name: string): boolean {
  const column = table.columns.find((each) => each.name === name)!;
  const kind = typeOfColumn(table.table, column)?.type;
  return kind !== undefined && FIELD_KINDS[kind].inKey !== undefined && 'declared' in draftField(table, column, name);
}

/** Undefined: no key has the type of the column. */
export function keyTypeOf(table: string, column: ExistingColumn): keyof typeof MAKER | undefined {
  const kind = typeOfColumn(table, column);
  return kind && DRAFTED_KEY_TYPES[FIELD_KINDS[kind.type].sqlType];
}

function draftedKey(table: ExistingTable, column: ExistingColumn, type: keyof typeof MAKER): Declaration | undefined {
  const maker = table.kind === 'table' ? draftedMaker(column, type) : MAKER[type];
  if (type === 'uuid' && column.name === 'id' && maker === MAKER.uuid) return undefined;
  return {
    type,
    ...(column.name !== 'id' && { column: column.name }),
    ...(maker !== MAKER[type] && { made_by: maker }),
  };
}

/** A column without a default gets its value from the caller; a uuid from the service, which a DEFAULT only replaces. */
function draftedMaker({ default: value, generated }: ExistingColumn, type: keyof typeof MAKER) {
  if (type === 'uuid') return 'service';
  return generated || value !== undefined ? 'database' : 'caller';
}

function noteOf({ kind, constraints }: ExistingTable, { name }: ExistingColumn): Pick<DraftKey, 'note'> {
  if (constraints.some((constraint) => constraint.kind === 'p')) return {};
  const note =
    kind === 'table'
      ? `it has no primary key; \`${name}\` is unique and never null`
      : `PostgreSQL knows no key of it; make sure that \`${name}\` differs in all rows and is never null`;
  return { note };
}

/** The primary key, or a unique column that is never null. A view has a column of such a name. */
function primaryColumns(table: ExistingTable): readonly string[] {
  const primary = primaryKeyOf(table);
  if (primary.length > 0) return primary;
  const unique = table.columns.filter(({ name, required }) => required && isUniqueColumn(table, name));
  const found = unique[0] ?? (table.kind === 'table' ? undefined : likelyKey(table));
  return found === undefined ? [] : [found.name];
}

/** The column `id`, `<name>_id` or `<name>_no` of a view; or the first one with such an end. */
function likelyKey({ columns }: ExistingTable): ExistingColumn | undefined {
  const [first] = columns;
  return columns.find(({ name }) => name === 'id') ?? (first && KEY_SUFFIX.test(first.name) ? first : undefined);
}
