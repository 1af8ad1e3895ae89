/** Finds what keeps bylaw from owning a table as it is, apart from its columns. */
import { STAMPS } from '../../policy/types.ts';
import { draftKey } from './draft-key.ts';
import { alterColumn, USER_COLUMNS, withTimeZone } from './draft-table.ts';
import { undeclarableKeys } from './draft-unique.ts';
import { isOfCurrentSchema } from './drafted-names.ts';
import { type ExistingColumn, type ExistingTable, isUniqueColumn, primaryKeyOf } from './existing-tables.ts';

export function ownershipObstacles(table: ExistingTable): readonly string[] {
  if (table.kind !== 'table') return [`it is a ${table.kind}`];
  return [
    ...(isOfCurrentSchema(table) ? [] : [`it is in the schema \`${table.schema}\`, which is not the current one`]),
    ...keyObstacles(table),
    ...table.columns.flatMap((column) => builtInObstacles(table.table, column)),
    ...constraintObstacles(table),
    ...(table.table === 'users' ? accountObstacles(table) : []),
    ...(table.table === 'files' ? ['the service has a table `files` of its own; rename this one'] : []),
  ];
}

function keyObstacles(table: ExistingTable): readonly string[] {
  const primary = primaryKeyOf(table);
  if (primary.length !== 1)
    return [`its primary key is (${primary.join(', ')}); expected one column \`id\` of type uuid`];
  if (draftKey(table)?.declared === undefined) return [];
  const type = table.columns.find(({ name }) => name === primary[0])!.type;
  return [`its primary key is \`${primary[0]}\` of type ${type}; expected \`id\` of type uuid`];
}

/** Built-in columns must have the types and constraints that the service gives them. */
function builtInObstacles(table: string, column: ExistingColumn): readonly string[] {
  const { name, type, required, default: value } = column;
  const alter = alterColumn(table, name);
  if (name === '_version' && type !== 'bigint')
    return ['it has a column `_version`, in which the service counts changes'];
  if (STAMPS.includes(name)) {
    if (type !== 'timestamp with time zone') return [`\`${name}\` is ${type}: ${withTimeZone(table, name)}`];
    return required ? [] : [`\`${name}\` may be null: ${alter} SET NOT NULL`];
  }
  if (table !== 'users' || !Object.hasOwn(USER_COLUMNS, name)) return [];
  if (type !== USER_COLUMNS[name])
    return [`\`${name}\` of users is ${USER_COLUMNS[name]} to the service, but ${type} here`];
  if (!required) return [`\`${name}\` may be null: ${alter} SET NOT NULL`];
  return name === 'email' || value !== undefined ? [] : [`\`${name}\` has no default: ${alter} SET DEFAULT …`];
}

const constraintObstacles = (table: ExistingTable): readonly string[] =>
  undeclarableKeys(table).map(
    ({ definition }) =>
      `a value is unique within required members, and by one key, so ${definition} would be dropped; make it a unique index`,
  );

function accountObstacles(table: ExistingTable): readonly string[] {
  if (!table.columns.some(({ name }) => name === 'email'))
    return ['users sign in with `email`, and this table has no such column; rename it, or add the column'];
  return isUniqueColumn(table, 'email') ? [] : ['`email` is not unique: ALTER TABLE "users" ADD UNIQUE ("email")'];
}
