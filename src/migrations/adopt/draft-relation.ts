/** A foreign key as a belongs_to of the draft, and its other side as a has_many or has_one. */
import { memberNameIssue } from '../../schema/model/names.ts';
import { type DraftMember, type DraftTable, renameColumn, USER_COLUMNS, yamlName } from './draft-table.ts';
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
const relationNameOf = (column: string): string => column.replace(/_id$/, '');

export function draftBelongsTo(
  table: ExistingTable,
  column: ExistingColumn,
  known: ReadonlyMap<string, ExistingTable>,
): DraftMember {
  const key = table.constraints.find(({ kind, columns }) => kind === 'f' && columns.includes(column.name))!;
  const name = relationNameOf(column.name);
  const onDelete = ON_DELETE_OF_CATALOG[key.onDelete!];
  const parts = [
    'kind: belongs_to',
    `collection: ${yamlName(key.table!)}`,
    ...(column.required ? ['required: true'] : []),
    ...(isUniqueColumn(table, column.name) ? ['unique: true'] : []),
    ...(onDelete === undefined ? [] : [`on_delete: ${onDelete}`]),
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
  if (!name.endsWith('_id'))
    found.push(`a belongs_to is a column \`…_id\`: ${renameColumn(table.name, name, `${name}_id`)}`);
  const issue = memberNameIssue(relationNameOf(name))?.message;
  if (issue !== undefined) found.push(issue);
  if (table.columns.some((other) => other.name === relationNameOf(name) && other.name !== name))
    found.push(`there is a column \`${relationNameOf(name)}\` too`);
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

export const foreignKeysOf = (table: ExistingTable): readonly ReferencingKey[] =>
  table.constraints
    .filter(({ kind }) => kind === 'f')
    .map(({ columns: [column = ''], table: to }) => ({
      from: table.name,
      member: relationNameOf(column),
      to: to!,
      unique: isUniqueColumn(table, column),
    }));

/** Adds the has_many or has_one of each reference to the table, under a free name. */
export function withReverse(draft: DraftTable, references: readonly ReferencingKey[]): DraftTable {
  const reserved = draft.name === 'users' ? [...Object.keys(USER_COLUMNS), 'password'] : [];
  const members = [...draft.fields, ...draft.relations].flatMap(({ name }) => [name, `${name}_id`]);
  const taken = new Set([...members, ...reserved]);
  const reverse: DraftMember[] = [];
  for (const { from, member, to, unique } of references) {
    if (to !== draft.name) continue;
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
