/** A foreign key as a belongs_to of the draft, and its other side as a has_many or has_one. */
import { columnNameIssue } from '../../schema/model/given-names.ts';
import { memberNameIssue } from '../../schema/model/names.ts';
import { type DraftMember, type DraftTable, USER_COLUMNS, yamlName } from './draft-table.ts';
import { draftedMembers } from './drafted-names.ts';
import { type ExistingColumn, type ExistingConstraint, type ExistingTable, isUniqueColumn } from './existing-tables.ts';

export interface ReferencingKey {
  readonly from: string;
  readonly member: string;
  readonly to: string;
  readonly unique: boolean;
}
const ON_DELETE_OF_CATALOG: Readonly<Record<string, string>> = {
  c: 'cascade',
  r: 'restrict',
  a: 'restrict',
  n: 'set_null',
};
export interface DraftNames {
  /** The adopted tables. */
  readonly known: ReadonlyMap<string, ExistingTable>;
  /** The collection of each table. */
  readonly collections: ReadonlyMap<string, string>;
  /** The member of each column. */
  readonly members: ReadonlyMap<string, string>;
}

export function draftBelongsTo(
  table: ExistingTable,
  column: ExistingColumn,
  { known, collections, members }: DraftNames,
): DraftMember {
  const key = table.constraints.find(({ kind, columns }) => kind === 'f' && columns.includes(column.name))!;
  const name = members.get(column.name)!;
  const onDelete = ON_DELETE_OF_CATALOG[key.onDelete!];
  const parts = [
    'kind: belongs_to',
    `collection: ${yamlName(collections.get(key.table!) ?? key.table!)}`,
    ...(column.required ? ['required: true'] : []),
    ...(isUniqueColumn(table, column.name) ? ['unique: true'] : []),
    ...(onDelete === undefined ? [] : [`on_delete: ${onDelete}`]),
    ...(`${name}_id` === column.name ? [] : [`column: ${JSON.stringify(column.name)}`]),
  ];
  const obstacles = referenceObstacles({ table, column, key, known });
  const isReplaced = key.onDelete === 'a' && obstacles.length === 0;
  return {
    name,
    yaml: `{ ${parts.join(', ')} }`,
    ...(isReplaced && { note: 'ON DELETE NO ACTION becomes RESTRICT' }),
    ...(obstacles.length > 0 && { obstacle: obstacles.join('; ') }),
  };
}

interface ForeignColumn {
  readonly table: ExistingTable;
  readonly column: ExistingColumn;
  readonly key: ExistingConstraint;
  readonly known: ReadonlyMap<string, ExistingTable>;
}

function referenceObstacles({ table, column, key, known }: ForeignColumn): readonly string[] {
  const { name } = column;
  const found: string[] = [];
  const issue = columnNameIssue(name);
  if (issue !== undefined) found.push(issue);
  if (column.type !== 'uuid') found.push(`it is ${column.type}, not uuid`);
  else if (!known.has(key.table!)) found.push(`it references ${key.table}, which is not adopted`);
  if (key.foreignColumns?.join() !== 'id')
    found.push(`it references ${key.table} (${key.foreignColumns?.join(', ')}), not its id`);
  if (ON_DELETE_OF_CATALOG[key.onDelete!] === undefined)
    found.push('ON DELETE SET DEFAULT is not among cascade, restrict and set_null');
  if (column.required && key.onDelete === 'n')
    found.push('ON DELETE SET NULL cannot apply to a column that is NOT NULL');
  if (table.name === 'users' && column.required)
    found.push('it is required, but a user registers with email and password only');
  const keys = table.constraints.filter(({ kind, columns }) => kind === 'f' && columns.includes(name));
  if (keys.length > 1) found.push('it has several foreign keys');
  return found;
}

export function foreignKeysOf(table: ExistingTable, collections: DraftNames['collections']): readonly ReferencingKey[] {
  const members = draftedMembers(table);
  return table.constraints
    .filter(({ kind }) => kind === 'f')
    .map(({ columns: [column = ''], table: to }) => ({
      from: collections.get(table.name)!,
      member: members.get(column)!,
      to: to!,
      unique: isUniqueColumn(table, column),
    }));
}

/** Adds the has_many or has_one of each reference to the table, under a free name. */
export function withReverse(draft: DraftTable, references: readonly ReferencingKey[]): DraftTable {
  const reserved = draft.name === 'users' ? [...Object.keys(USER_COLUMNS), 'password'] : [];
  const members = [...draft.fields, ...draft.relations].flatMap(({ name }) => [name, `${name}_id`]);
  const taken = new Set([...members, ...reserved]);
  const reverse: DraftMember[] = [];
  for (const { from, member, to, unique } of references) {
    if (to !== draft.table) continue;
    const name = [from, `${from}_by_${member}`].find((wanted) => {
      return !taken.has(wanted) && !taken.has(`${wanted}_any`) && memberNameIssue(wanted) === undefined;
    });
    if (name === undefined) continue;
    for (const used of [name, `${name}_any`]) taken.add(used);
    reverse.push({
      name,
      yaml: `{ kind: ${unique ? 'has_one' : 'has_many'}, collection: ${yamlName(from)}, via: ${yamlName(member)} }`,
    });
  }
  return { ...draft, relations: [...draft.relations, ...reverse] };
}
