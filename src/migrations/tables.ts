/**
 * The tables of a schema. Constraints are named by their columns, so that a violation can be
 * reported for its field.
 */
import { invariant, present } from '../invariant.ts';
import { LINK_TENANT_COLUMN } from '../policy/condition.ts';
import { foldedColumn } from '../policy/fold.ts';
import { belongsTosOf, type Checked, keyOf, type Policy, STAMPS } from '../policy/types.ts';
import { allOperandsOf } from '../policy/visit.ts';
import { columnTypeOfField, FIELD_KINDS, keyKindOf } from '../schema/fields/index.ts';
import type { TextForm } from '../schema/fields/kind.ts';
import { hasCompositeKey } from '../schema/model/composite-key.ts';
import {
  exclusionName,
  indexesOf,
  PARTITION_NUMBERS,
  tenantColumns,
  type UniqueIndexDefinition,
  uniqueColumns,
  uniqueIndexes,
} from '../schema/model/indexes.ts';
import { DELETED_AT } from '../schema/model/kept/soft-delete.ts';
import {
  type BelongsTo,
  type Collection,
  type Default,
  type Field,
  type ManyToMany,
  madeByDatabase,
  type NoOverlap,
  PERIOD_RANGES,
  type Relation,
  type Schema,
} from '../schema/model/model.ts';
import { linkTableOf } from '../schema/model/names.ts';
import {
  constraintName,
  deletedTableOf,
  historyTableOf,
  LINKS_COLUMN,
  storedTables,
  VERSION_COLUMN,
} from '../schema/model/stored-names.ts';
import { ident, join, quotedText, raw, type Sql } from '../sql.ts';

export interface Column {
  readonly name: string;
  /** The type as `format_type` prints it; text is always COLLATE "C". */
  readonly type: string;
  readonly required: boolean;
  /** The value of existing rows when the column is added or becomes required, as SQL. */
  readonly fill?: string;
  /** The DEFAULT of the column, as SQL: the program may leave the column out. */
  readonly columnDefault?: string;
  readonly was?: string;
  /** The column whose folded copies this one holds. */
  readonly foldedFrom?: string;
  /** True of another type of column that holds the values as they are. */
  readonly fits?: (type: string) => boolean;
  /** The database numbers new rows. */
  readonly isIdentity?: true;
  /** The texts that become its values without loss. */
  readonly textForm?: TextForm | undefined;
}
export interface ForeignKey {
  readonly column: string;
  readonly table: string;
  /** The column there that holds the id. */
  readonly key: string;
  readonly onDelete: 'CASCADE' | 'RESTRICT' | 'SET NULL' | 'NO ACTION';
  /** The key is another unique column than that of the ids, whose changes the column follows. */
  readonly isOfValue?: true;
  /** The columns that hold the tenant, here and there; first in the key, so that both rows have one tenant. */
  readonly tenant?: { readonly column: string; readonly references: string };
}
/**
 * `reference`: every machine has all rows. `by`: rows with one value of `column` are on one machine,
 * together with such rows of other tables with the same `target`.
 */
export type TableTenantLayout =
  | { readonly kind: 'reference' }
  | { readonly kind: 'by'; readonly column: string; readonly target: string };
export interface Table {
  readonly name: string;
  /** Possible former names; the first one that exists is renamed. */
  readonly was?: readonly string[];
  readonly columns: readonly Column[];
  /** The last is that of the ids, or of a link's target. */
  readonly primaryKey: readonly string[];
  /** The columns of each; the last one is that of the field. */
  readonly uniques: readonly (readonly string[])[];
  /** Unique indexes with a condition, or of folded values. */
  readonly uniqueIndexes: readonly UniqueIndex[];
  readonly exclusions: readonly ExclusionKey[];
  readonly foreignKeys: readonly ForeignKey[];
  /** The columns of each index. */
  readonly indexes: readonly (readonly string[])[];
  /** Columns with a trigram index, if the database can have one. */
  readonly searched: readonly string[];
  /** Undefined: all rows are on one machine. */
  readonly tenantLayout?: TableTenantLayout;
}

/** A unique index that no constraint can be. */
export interface UniqueIndex {
  readonly name: string;
  /** The last one is that of the field. */
  readonly columns: readonly string[];
  readonly ignoresCase: boolean;
  /** Names the columns by the name of the table. */
  readonly where?: Sql;
  /** The columns that the condition reads. */
  readonly whereColumns: readonly string[];
}

/** Rows that have the same values in `on` do not overlap in the range from `from` to `to`. */
export interface ExclusionKey {
  readonly name: string;
  /** The names of the constraints of the partitions, where the table has them. */
  readonly partitionNames: readonly string[];
  /** The tenant, and the members of the place. */
  readonly on: readonly string[];
  readonly from: string;
  readonly to: string;
  /** The function that makes a range of the two. */
  readonly range: string;
  /** Names the columns alone. */
  readonly where?: Sql;
  readonly whereColumns: readonly string[];
}

const ON_DELETE = { cascade: 'CASCADE', restrict: 'RESTRICT', set_null: 'SET NULL' } as const;

/** Without the tables that other programs own. */
export function tablesOf(schema: Schema): ReadonlyMap<string, Table> {
  const tables = new Map<string, Table>();
  for (const collection of schema.collections.values())
    if (collection.managed) tables.set(collection.table, collectionTable(collection, schema));
  for (const { softDelete, table } of schema.collections.values())
    if (softDelete !== undefined) tables.set(softDelete.table, deletedTable(softDelete.table, tables.get(table)!));
  for (const { history, table } of schema.collections.values())
    if (history?.table !== undefined) tables.set(history.table, historyTable(history.table, tables.get(table)!));
  for (const collection of schema.collections.values()) {
    for (const relation of collection.relations.values()) {
      if (relation.kind === 'many_to_many' && !tables.has(relation.linkTable)) {
        tables.set(relation.linkTable, joinTableOf(collection, relation, schema));
      }
    }
  }
  return tables;
}

function collectionTable(collection: Collection, schema: Schema): Table {
  const fields = [...collection.fields.values()];
  const references = belongsTosOf(collection);
  return {
    name: collection.table,
    ...formerTable(collection, schema),
    columns: [
      keyColumnOf(collection),
      ...systemColumns(collection),
      ...fields.flatMap((field) => {
        const was = formerColumn(collection, field);
        return field.search ? [fieldColumnOf(field, was), foldedColumnOf(field, was)] : [fieldColumnOf(field, was)];
      }),
      ...references.map((relation) => ({
        ...referenceColumnOf(relation, targetOf(schema, relation)),
        was: formerColumn(collection, relation),
      })),
      // PostgreSQL does not write the default into existing rows: adding the column to a large table takes no time.
      { name: VERSION_COLUMN, type: 'bigint', required: true, fill: '1', columnDefault: '1' },
    ],
    primaryKey: [...tenantColumnsOf(collection), keyOf(collection).column],
    uniques: uniqueColumns(collection),
    uniqueIndexes: uniqueIndexesOf(collection),
    exclusions: (collection.noOverlap ?? []).map((key) => exclusionOf(collection, key)),
    foreignKeys: references.map((relation) => foreignKeyOf(collection, relation, schema)),
    indexes: indexesOf(collection, schema).flatMap(({ columns, unique }) => (unique ? [] : [columns])),
    searched: fields.flatMap(({ search, column }) => (search ? [foldedColumn(column)] : [])),
    ...tenantLayoutOf(collection, schema),
  };
}

/** The unique indexes that no constraint can be. */
export const uniqueIndexesOf = (collection: Collection): readonly UniqueIndex[] =>
  uniqueIndexes(collection).map((definition) => uniqueIndexOf(collection, definition));

function uniqueIndexOf({ table }: Collection, { name, member, columns }: UniqueIndexDefinition): UniqueIndex {
  const { where, ignoresCase } = member.uniqueKey!;
  return { name, columns, ignoresCase, ...indexCondition(where, table) };
}

function exclusionOf(collection: Collection, key: NoOverlap): ExclusionKey {
  const { on, from, to, where } = key;
  const range = present(PERIOD_RANGES.get(from.type), `a range of ${from.type}`);
  const places = [...new Set([...tenantColumns(collection), ...on.map(({ column }) => column)])];
  const partitionNames = PARTITION_NUMBERS.map((partition) => exclusionName(collection, key, partition));
  const names = { name: exclusionName(collection, key), partitionNames };
  const columns = { on: places, from: from.column, to: to.column };
  return { ...names, ...columns, range, ...unqualified(indexCondition(where, ROW)) };
}

/** No table and no text of a schema has this name. */
const ROW = 'bylaw row 5d2f0c9e';

/** A partition and a shard have other names than the table. */
const unqualified = ({ where, whereColumns }: Pick<UniqueIndex, 'where' | 'whereColumns'>) => ({
  ...(where !== undefined && { where: raw(where.text.replaceAll(`${ident(ROW).text}.`, '')) }),
  whereColumns,
});

function indexCondition(policy: Policy | undefined, table: string): Pick<UniqueIndex, 'where' | 'whereColumns'> {
  if (policy === undefined) return { whereColumns: [] };
  const where = policy.specialise(NO_REQUEST).where(table.slice(table.indexOf('.') + 1));
  invariant(where.params.length === 0, 'the condition of an index has no parameters');
  return { where, whereColumns: namedColumns(policy.checked) };
}

/** The condition of an index reads no request. */
const NO_REQUEST = { auth: null, query: {}, now: '1970-01-01T00:00:00.000000Z' };

const namedColumns = (checked: Checked): readonly string[] =>
  allOperandsOf(checked).flatMap((operand) => {
    if (operand.kind !== 'column') return [];
    if (operand.column.kind === 'field') return [operand.column.field.column];
    return operand.column.kind === 'belongs_to' ? [operand.column.relation.column] : [];
  });

/** The first column of every key of a collection that is stored by tenant. */
const tenantColumnsOf = ({ tenantLayout }: Collection): readonly string[] =>
  tenantLayout?.kind === 'by' ? [tenantLayout.column] : [];

function tenantLayoutOf(collection: Collection, schema: Schema): Pick<Table, 'tenantLayout'> {
  const { tenantLayout } = collection;
  if (tenantLayout === null) return {};
  if (tenantLayout.kind === 'reference') return { tenantLayout: { kind: 'reference' } };
  const tenant = present(collection.relations.get(tenantLayout.by), `the relation ${tenantLayout.by}`);
  return { tenantLayout: { kind: 'by', column: tenantLayout.column, target: targetOf(schema, tenant).table } };
}

function foreignKeyOf(collection: Collection, relation: BelongsTo, schema: Schema): ForeignKey {
  const { column } = relation;
  const target = targetOf(schema, relation);
  const { column: key } = keyOf(target);
  const onDelete = ON_DELETE[relation.onDelete];
  if (relation.references !== undefined)
    return { column, table: target.table, key: relation.references.column, onDelete, isOfValue: true };
  const [own] = tenantColumnsOf(collection);
  const [references] = tenantColumnsOf(target);
  if (own === undefined || references === undefined) return { column, table: target.table, key, onDelete };
  // SET NULL would clear the tenant too. The records room clears a reference itself before it deletes the record.
  const isCleared = onDelete === 'SET NULL';
  const tenant = { column: own, references };
  return { column, table: target.table, key, onDelete: isCleared ? 'NO ACTION' : onDelete, tenant };
}

/** The columns of users besides their fields. */
function systemColumns(collection: Collection): readonly Column[] {
  if (collection.kind !== 'users') return [];
  return [
    { name: 'roles', type: 'text[]', required: true, fill: `'{}'::text[]`, columnDefault: `'{}'::text[]` },
    { name: 'disabled', type: 'boolean', required: true, fill: 'false', columnDefault: 'false' },
  ];
}

/** The table of deleted rows takes them as they were: no constraint of the living ones is theirs. */
function deletedTable(name: string, living: Table): Table {
  const indexes = [...living.indexes, ...living.uniques, ...living.uniqueIndexes.map(({ columns }) => columns)];
  return {
    name,
    ...(living.was === undefined ? {} : { was: living.was.map(deletedTableOf) }),
    columns: [
      ...living.columns.map(({ columnDefault: _, isIdentity: __, ...column }) => ({
        ...column,
        required: living.primaryKey.includes(column.name),
      })),
      { name: DELETED_AT, type: 'timestamp with time zone', required: true, fill: 'now()' },
      { name: LINKS_COLUMN, type: 'jsonb', required: false },
    ],
    primaryKey: living.primaryKey,
    uniques: [],
    uniqueIndexes: [],
    exclusions: [],
    foreignKeys: [],
    indexes: [...new Map(indexes.map((columns) => [columns.join(), columns])).values()],
    searched: [],
    ...(living.tenantLayout === undefined ? {} : { tenantLayout: living.tenantLayout }),
  };
}

/** The history of the rows of a table that is divided by tenant: each tenant's entries are beside its rows. */
function historyTable(name: string, living: Table): Table {
  const { target } = living.tenantLayout as Extract<TableTenantLayout, { kind: 'by' }>;
  const column = (of: string, type: string, required = true): Column => ({ name: of, type, required });
  return {
    name,
    ...(living.was === undefined ? {} : { was: living.was.map(historyTableOf) }),
    columns: [
      column(LINK_TENANT_COLUMN, 'uuid'),
      column('record', 'text'),
      column('seq', 'bigint'),
      column('at', 'timestamp with time zone'),
      column('by', 'text', false),
      column('before', 'jsonb', false),
      column('after', 'jsonb', false),
    ],
    primaryKey: [LINK_TENANT_COLUMN, 'record', 'seq'],
    uniques: [],
    uniqueIndexes: [],
    exclusions: [],
    foreignKeys: [],
    indexes: [['at']],
    searched: [],
    tenantLayout: { kind: 'by', column: LINK_TENANT_COLUMN, target },
  };
}

/** A table or a column gets the name that the file gives it now. */
const formerTable = ({ name, table, was }: Collection, schema: Schema): Pick<Table, 'was'> => {
  // A rename does not move a table to another schema.
  const former = table.includes('.') ? undefined : (was ?? (table === name ? undefined : name));
  return former === undefined || storedTables(schema).has(former) ? {} : { was: [former] };
};

function formerColumn({ fields, relations }: Collection, member: Field | BelongsTo): string | undefined {
  const columnNamed = (name: string): string => ('kind' in member ? `${name}_id` : name);
  if (member.was !== undefined) return columnNamed(member.was);
  const former = columnNamed(member.name);
  const members: readonly (Field | Relation)[] = [...fields.values(), ...relations.values()];
  const isTaken = members.some((each) => 'column' in each && each.column === former);
  return isTaken ? undefined : former;
}

function fieldColumnOf(field: Field, was: string | undefined): Column {
  const isTime = STAMPS.includes(field.name);
  const fill = isTime ? 'now()' : field.default && fillOf(field.default, field.type);
  return {
    name: field.column,
    type: columnTypeOfField(field),
    required: field.required,
    fill,
    // A version of the program that does not know the field leaves the column out.
    columnDefault: isTime ? 'now()' : columnDefaultOf(field),
    textForm: FIELD_KINDS[field.type].text,
    was,
  };
}

function foldedColumnOf({ column }: Field, was: string | undefined): Column {
  const former = was && foldedColumn(was);
  return { name: foldedColumn(column), type: 'text', required: false, foldedFrom: column, was: former };
}

const referenceColumnOf = ({ column, needed, references }: BelongsTo, target: Collection): Column => ({
  ...(references === undefined ? idColumnOf(target) : valueColumnOf(target.fields.get(references.field)!)),
  name: column,
  required: needed,
});

/** A column that holds values of the field. */
const valueColumnOf = (field: Field): Pick<Column, 'type' | 'textForm'> => ({
  type: columnTypeOfField(field),
  textForm: FIELD_KINDS[field.type].text,
});

/** A column that holds ids of the collection. */
const idColumnOf = (collection: Collection): Pick<Column, 'type' | 'fits'> => {
  const { kind } = keyOf(collection);
  return {
    type: keyKindOf(collection).column,
    ...(kind !== 'uuid' && { fits: (type) => OTHER_KEY_TYPES[kind].test(type) }),
  };
};
const OTHER_KEY_TYPES = { int: /^(?:integer|smallint)$/, string: /^character varying/ };

const KEY_DEFAULTS = { uuid: 'gen_random_uuid()', string: 'gen_random_uuid()::text' };

function keyColumnOf(collection: Collection): Column {
  const { kind, column } = keyOf(collection);
  const own = { ...idColumnOf(collection), name: column, required: true, was: formerKeyColumn(collection) };
  if (!madeByDatabase(collection)) return own;
  return kind === 'int' ? { ...own, isIdentity: true } : { ...own, columnDefault: KEY_DEFAULTS[kind] };
}

/** The ids had the column `id`, unless a member has it now. */
function formerKeyColumn({ key, fields, relations }: Collection): string | undefined {
  const members = [...fields.values(), ...relations.values()];
  const isTaken = members.some((member) => 'column' in member && member.column === 'id');
  return isTaken || keyOf({ key }).column === 'id' ? undefined : 'id';
}

function columnDefaultOf({ type, default: value }: Field): string | undefined {
  return value?.kind === 'constant' && FIELD_KINDS[type].hasColumnDefault ? fillOf(value, type) : undefined;
}

function fillOf(value: Default, type: Field['type']): string | undefined {
  switch (value.kind) {
    case 'constant':
      return FIELD_KINDS[type].literal(value.value);
    case 'now':
      return value.zone === undefined ? 'now()' : `(now() AT TIME ZONE ${quotedText(value.zone)})::date`;
    case 'auth':
      return undefined;
  }
}

const targetOf = ({ collections }: Schema, { collection }: Relation): Collection =>
  present(collections.get(collection), `collection ${collection}`);

/** The method of an index; undefined: the default of PostgreSQL. A list is indexed by its elements, a point by its place. */
export function methodOfType(type: string): 'gin' | 'gist' | undefined {
  if (type === 'point') return 'gist';
  return type.endsWith('[]') ? 'gin' : undefined;
}

export const indexMethod = ({ columns }: Table, [first]: readonly string[]): ReturnType<typeof methodOfType> =>
  methodOfType(columns.find(({ name }) => name === first)?.type ?? '');

export const stringLiteral = (text: string): Sql => raw(quotedText(text));

export const columnList = (columns: readonly string[]): Sql =>
  join(
    columns.map((column) => ident(column)),
    ', ',
  );

/** The type holds the values of the column as they are. */
export const fitsColumn = ({ type, fits }: Column, actual: string): boolean =>
  type === actual || fits?.(actual) === true;

/** Rows may still come with ids of their own, such as those of an import. */
export const IDENTITY = 'GENERATED BY DEFAULT AS IDENTITY';

export function columnTypeOf({ type, isIdentity }: Column): string {
  if (isIdentity) return `${type} ${IDENTITY}`;
  return type === 'text' ? 'text COLLATE "C"' : type;
}

/** The name has the column of the field, for which an error is reported. */
export const uniqueName = (table: string, columns: readonly string[], suffix: 'key' | 'newkey' = 'key'): string =>
  constraintName(table, columns.slice(-1), suffix);

interface ForeignColumns {
  readonly own: readonly string[];
  readonly references: readonly string[];
}

export const foreignColumns = ({ column, key, tenant }: ForeignKey): ForeignColumns =>
  tenant === undefined
    ? { own: [column], references: [key] }
    : { own: [tenant.column, column], references: [tenant.references, key] };

function joinTableOf(collection: Collection, relation: ManyToMany, schema: Schema): Table {
  const { linkTable, sourceColumn, targetColumn } = relation;
  const target = targetOf(schema, relation);
  const { tenantLayout } = tenantLayoutOf(collection, schema);
  const tenant = tenantLayout?.kind === 'by' ? [LINK_TENANT_COLUMN] : [];
  const linked = (column: string, to: Collection): ForeignKey => {
    const [references] = tenantColumnsOf(to);
    const isOfTenant = references === undefined ? {} : { tenant: { column: LINK_TENANT_COLUMN, references } };
    return { column, table: to.table, key: keyOf(to).column, onDelete: 'CASCADE', ...isOfTenant };
  };
  return {
    name: linkTable,
    was: formerLinkTables(collection, relation),
    columns: [
      ...tenant.map((name) => ({ name, type: 'uuid', required: true })),
      { ...idColumnOf(collection), name: sourceColumn, required: true },
      { ...idColumnOf(target), name: targetColumn, required: true },
    ],
    primaryKey: [...tenant, sourceColumn, targetColumn],
    uniques: [],
    uniqueIndexes: [],
    exclusions: [],
    // The text of a key of several columns is in no column of its table.
    foreignKeys: [linked(sourceColumn, collection), ...(hasCompositeKey(target) ? [] : [linked(targetColumn, target)])],
    indexes: [[...tenant, targetColumn, sourceColumn]],
    searched: [],
    ...(tenantLayout?.kind === 'by' && { tenantLayout: { ...tenantLayout, column: LINK_TENANT_COLUMN } }),
    ...(tenantLayout?.kind === 'reference' && { tenantLayout }),
  };
}

/** The collection, the relation, or both may have a new name. */
function formerLinkTables({ name, was }: Collection, relation: ManyToMany): readonly string[] {
  const collections = was === undefined ? [name] : [was, name];
  const relations = relation.was === undefined ? [relation.name] : [relation.was, relation.name];
  const all = collections.flatMap((one) => relations.map((other) => linkTableOf(one, other)));
  return all.filter((table) => table !== relation.linkTable);
}
