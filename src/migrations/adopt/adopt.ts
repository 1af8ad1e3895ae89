/**
 * Decides which tables a schema can describe as they are. INVARIANT: a migration to the collection of
 * an adopted table drops no column, changes no type and makes no column required (migrations/diff.ts
 * plans it).
 */
import { STAMPS } from '../../policy/types.ts';
import { allowedBy, draftField, oneLine } from './draft-field.ts';
import { type DraftNames, draftBelongsTo, foreignKeysOf, withReverse } from './draft-relation.ts';
import { alterColumn, type Draft, type DraftTable, USER_COLUMNS, withTimeZone } from './draft-table.ts';
import { draftedCollections, draftedMembers } from './drafted-names.ts';
import { type ExistingColumn, type ExistingTable, holdsReference, isUniqueColumn } from './existing-tables.ts';

export function draftSchema(tables: readonly ExistingTable[]): Draft {
  const own = tables.filter(({ name }) => !/^(?:_|bylaw_)/.test(name));
  const candidates = own.filter((table) => skipReason(table) === undefined);
  const adoptable = new Map(candidates.map((table) => [table.name, table]));
  const names = { known: adoptable, collections: draftedCollections(candidates) };
  // A table that references a rejected table would lose its foreign key, so it is rejected too.
  for (;;) {
    const drafts = [...adoptable.values()].map((table) => draftTable(table, names));
    const rejected = drafts.filter((draft) => !isAdoptable(draft));
    for (const { table } of rejected) adoptable.delete(table);
    if (rejected.length === 0) break;
  }
  const drafts = candidates.map((table) => draftTable(table, names));
  const adoptedTables = candidates.filter(({ name }) => adoptable.has(name));
  const references = adoptedTables.flatMap((table) => foreignKeysOf(table, names.collections));
  const adopted = drafts.filter(({ table }) => adoptable.has(table)).map((draft) => withReverse(draft, references));
  return {
    adopted,
    postponed: drafts.filter(({ table }) => !adoptable.has(table)),
    skipped: own.flatMap((table) => {
      const reason = skipReason(table);
      return reason === undefined ? [] : [{ name: table.name, reason }];
    }),
  };
}

const isAdoptable = ({ obstacles, fields, relations }: DraftTable): boolean =>
  obstacles.length === 0 && [...fields, ...relations].every(({ obstacle }) => obstacle === undefined);

/** Why a table is not a candidate. */
function skipReason({ kind, columns, constraints }: ExistingTable): string | undefined {
  if (kind !== 'table') return `it is a ${kind}`;
  const key = constraints.find((constraint) => constraint.kind === 'p');
  if (key === undefined) return 'it has no primary key';
  const foreign = constraints
    .filter((constraint) => constraint.kind === 'f')
    .flatMap((constraint) => constraint.columns);
  const isLink =
    key.columns.length === 2 && columns.length === 2 && key.columns.every((column) => foreign.includes(column));
  if (isLink) {
    return (
      'it links two tables; declare a many_to_many, whose table is named `<collection>__<relation>` with ' +
      '`record_id` and `member_id`, and copy its rows'
    );
  }
  if (key.columns.length > 1)
    return `its primary key is (${key.columns.join(', ')}); expected one column \`id\` of type uuid`;
  const [column] = key.columns;
  const type = columns.find((one) => one.name === column)?.type;
  if (column !== 'id' || type !== 'uuid')
    return `its primary key is \`${column}\` of type ${type}; expected \`id\` of type uuid`;
  return undefined;
}

function draftTable(table: ExistingTable, names: Omit<DraftNames, 'members'>): DraftTable {
  const columns = table.columns.filter(({ name }) => name !== 'id' && name !== '_version');
  const members = draftedMembers(table);
  const plain = columns.filter((column) => !holdsReference(table, column.name) && !isBuiltIn(table, column));
  return {
    name: names.collections.get(table.name)!,
    table: table.name,
    fields: plain.map((column) => draftField(table, column, members.get(column.name)!)),
    relations: columns
      .filter(({ name }) => holdsReference(table, name))
      .map((column) => draftBelongsTo(table, column, { ...names, members })),
    notes: notesOf(table),
    obstacles: [...obstaclesOf(table), ...columns.flatMap((column) => builtInObstacle(table, column))],
  };
}

const isBuiltIn = ({ name: table }: ExistingTable, { name, type }: ExistingColumn): boolean =>
  STAMPS.includes(name) || (table === 'users' && Object.hasOwn(USER_COLUMNS, name) && USER_COLUMNS[name] === type);

/** Built-in columns must have the types and constraints that the service gives them. */
function builtInObstacle({ name: table }: ExistingTable, column: ExistingColumn): readonly string[] {
  const { name, type, required, default: value } = column;
  const alter = alterColumn(table, name);
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
function obstaclesOf({ name, columns, constraints }: ExistingTable): readonly string[] {
  const found: string[] = [];
  if (name === 'files')
    found.push('the service has a table `files` of its own; rename this one, or `bylaw migrate plan` will change it');
  if (columns.some((column) => column.name === '_version' && column.type !== 'bigint'))
    found.push('it has a column `_version`, in which the service counts changes');
  for (const { kind, columns: keys, definition } of constraints) {
    if (kind === 'u' && keys.length > 1)
      found.push(
        `a schema has no unique over several fields, so ${definition} would be dropped; make it a unique index`,
      );
    if (kind === 'f' && keys.length > 1) found.push(`a belongs_to is one column, so ${definition} would be dropped`);
  }
  if (name !== 'users') return found;
  const email = columns.find((column) => column.name === 'email');
  if (email === undefined)
    found.push('users sign in with `email`, and this table has no such column; rename it, or add the column');
  else if (!isUniqueColumn({ name, columns, constraints, indexes: [], kind: 'table' }, 'email'))
    found.push('`email` is not unique: ALTER TABLE "users" ADD UNIQUE ("email")');
  return found;
}

function notesOf({ name, constraints, indexes }: ExistingTable): readonly string[] {
  const checks = constraints.filter(
    ({ kind, columns, definition }) => kind === 'c' && allowedBy(definition, columns) === undefined,
  );
  return [
    ...(name === 'users' ? ['users sign in by the lower-case form of `email`; passwords are not taken over'] : []),
    ...checks.map(
      ({ definition }) =>
        `PostgreSQL also holds ${oneLine(definition)}; a write that breaks it is a 422 \`check_violation\``,
    ),
    ...indexes
      .filter(({ unique, columns }) => unique && columns.length > 1)
      .map(({ columns }) => `PostgreSQL also holds unique (${columns.join(', ')})`),
  ];
}
