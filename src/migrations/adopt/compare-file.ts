/** Compares a schema file with an existing database: what either of them lacks, and what differs. */
import { keyOf } from '../../policy/types.ts';
import { keyColumnsOf } from '../../schema/model/composite-key.ts';
import type { Collection, Schema } from '../../schema/model/model.ts';
import { storedTables, VERSION_COLUMN } from '../../schema/model/stored-names.ts';
import { isOfService, undecidedDrafts } from './adopt.ts';
import { type ComparedMember, compareMember } from './compare-member.ts';
import { compareReferences } from './compare-references.ts';
import type { Difference } from './difference.ts';
import { keyTypeOf } from './draft-key.ts';
import { type DraftTable, USER_COLUMNS } from './draft-table.ts';
import { type ExistingTable, primaryKeyOf } from './existing-tables.ts';

/**
 * The result has the order of the file, and ends with the tables that the file lacks.
 * @param schemas the schemas whose tables the file shall have; none: all
 */
export function compareFile(
  file: Schema,
  tables: readonly ExistingTable[],
  schemas: readonly string[],
): readonly Difference[] {
  const byName = new Map(tables.map((table) => [table.table, table]));
  const drafts = new Map(undecidedDrafts(tables).map((draft) => [draft.existing.table, draft]));
  const found = [...file.collections.values()].flatMap((collection) => {
    const table = byName.get(collection.table);
    if (table === undefined) return lackingTable(collection);
    return compareTable({ file, collection, table, draft: drafts.get(table.table) });
  });
  const stored = storedTables(file);
  const isWanted = ({ existing: { schema, table } }: DraftTable): boolean =>
    !stored.has(table) && (schemas.length === 0 || schemas.includes(schema));
  const lacking = [...drafts.values()].filter((draft) => isWanted(draft) && !isOfService(draft.existing));
  return [...found, ...lacking.map(({ existing: { table }, name }) => ({ kind: 'file_lacks' as const, table, name }))];
}

/** The service makes its own tables when it starts. */
const lackingTable = ({ name, table, kind }: Collection): readonly Difference[] =>
  kind === 'plain' ? [{ kind: 'database_lacks', table, name }] : [];

interface TablePair {
  readonly file: Schema;
  readonly collection: Collection;
  readonly table: ExistingTable;
  /** Undefined: a draft would leave the table out. */
  readonly draft: DraftTable | undefined;
}

function compareTable({ file, collection, table: existing, draft }: TablePair): readonly Difference[] {
  const { table } = existing;
  const columns = new Map(existing.columns.map((column) => [column.name, column]));
  const members = comparedMembers(collection);
  const references = new Set(draft?.relations.map(({ column }) => column));
  const compared = members.flatMap((member): readonly Difference[] => {
    const column = columns.get(member.column);
    const place = { table, column: member.column, name: `${collection.name}.${member.name}` };
    if (column === undefined) return [{ kind: 'database_lacks', ...place }];
    const given = { file, member, isReference: references.has(column.name) };
    return compareMember(given, existing, column).map((each) => ({ kind: 'differs', ...place, ...each }));
  });
  const known = new Set([...members.map(({ column }) => column), ...ownColumns(collection, existing)]);
  const lacking = [...(draft?.fields ?? []), ...(draft?.relations ?? [])].filter(
    ({ column }) => column !== undefined && !known.has(column),
  );
  const asLacking = ({ name, column, declared }: (typeof lacking)[number]): Difference => {
    return { kind: 'file_lacks', table, column: column!, name: `${collection.name}.${name}`, database: declared };
  };
  return [
    ...compareKey(collection, existing),
    ...compared,
    ...compareReferences({ file, collection, table: existing, draft }),
    ...lacking.map(asLacking),
  ];
}

function compareKey({ name, key }: Collection, table: ExistingTable): readonly Difference[] {
  const { column, kind, made } = keyOf({ key });
  if (made !== undefined) return compareColumnsOfKey({ name, key }, table);
  const place = { table: table.table, column, name };
  const existing = table.columns.find((each) => each.name === column);
  if (existing === undefined) return [{ kind: 'database_lacks', ...place }];
  const type = keyTypeOf(table.table, existing);
  return type === kind ? [] : [{ kind: 'differs', ...place, key: 'id', file: kind, database: existing.type }];
}

/** The members of a key of several columns are compared as such. */
function compareColumnsOfKey(
  { name, key }: Pick<Collection, 'name' | 'key'>,
  table: ExistingTable,
): readonly Difference[] {
  const [file, database] = [keyColumnsOf({ key }), primaryKeyOf(table)];
  if (table.kind !== 'table' || file.toSorted().join('\0') === database.toSorted().join('\0')) return [];
  return [{ kind: 'differs', table: table.table, name, key: 'id', file, database }];
}

/** References of several columns are compared as foreign keys. */
const comparedMembers = ({ fields, relations }: Collection): readonly ComparedMember[] => [
  ...fields.values(),
  ...[...relations.values()]
    .filter((relation) => relation.kind === 'belongs_to')
    .filter(({ columns }) => columns === undefined),
];

/** The columns of the key, and those that the service has for itself. */
const ownColumns = ({ kind, key }: Collection, table: ExistingTable): readonly string[] => [
  VERSION_COLUMN,
  keyOf({ key }).column,
  ...primaryKeyOf(table),
  ...(kind === 'users' ? Object.keys(USER_COLUMNS) : []),
];
