/**
 * Which tables a schema can describe as they are. INVARIANT: bringing the database to an adopted
 * table's collection drops no column, changes no type and requires nothing that is not required
 * already (store/migrations/diff.ts decides what it would do).
 */
import { collectionNameFault, memberNameFault } from '../../schema/names.ts';
import { ident } from '../../sql.ts';
import type { ExistingColumn, ExistingConstraint, ExistingTable } from './existing-tables.ts';

/** One line of a draft. */
export interface DraftMember {
  readonly name: string;
  /** The value as YAML. */
  readonly yaml: string;
  /** What to know about it. */
  readonly note?: string;
  /** Why the table cannot be adopted with it, and what would help. */
  readonly obstacle?: string;
}
export interface DraftTable {
  readonly name: string;
  readonly fields: readonly DraftMember[];
  readonly relations: readonly DraftMember[];
  readonly notes: readonly string[];
  /** Why the table cannot be adopted, apart from its members. */
  readonly obstacles: readonly string[];
}
export interface Skipped {
  readonly name: string;
  readonly reason: string;
}
export interface Draft {
  readonly adopted: readonly DraftTable[];
  /** Tables with a uuid key that need changes first. */
  readonly postponed: readonly DraftTable[];
  readonly skipped: readonly Skipped[];
}

interface Reference {
  readonly from: string;
  readonly member: string;
  readonly to: string;
  readonly unique: boolean;
}

const quoted = (name: string): string => ident(name).text;
/** YAML reads these without quotes as other values. */
export const yamlName = (name: string): string => (/^(?:null|true|false)$/i.test(name) ? JSON.stringify(name) : name);
const STAMPS = ['created_at', 'updated_at'];
/** What `users` has by itself, as the service makes it. */
const USER_COLUMNS: Readonly<Record<string, string>> = {
  email: 'text',
  email_verified: 'boolean',
  roles: 'text[]',
  disabled: 'boolean',
};

export function adopt(tables: readonly ExistingTable[]): Draft {
  const own = tables.filter(({ name }) => !/^(?:_|bylaw_)/.test(name));
  const candidates = own.filter((table) => skipReason(table) === undefined);
  const links = new Map(candidates.map((table) => [table.name, table]));
  // A table that references one that is not adopted would lose its foreign key, so it is not adopted either.
  for (;;) {
    const drafts = [...links.values()].map((table) => draftOf(table, links, own));
    const lost = drafts.filter((draft) => !isAdoptable(draft));
    for (const { name } of lost) links.delete(name);
    if (lost.length === 0) break;
  }
  const drafts = candidates.map((table) => draftOf(table, links, own));
  const references = candidates.filter(({ name }) => links.has(name)).flatMap((table) => referencesOf(table));
  const adopted = drafts.filter(({ name }) => links.has(name)).map((draft) => withReverse(draft, references));
  return {
    adopted,
    postponed: drafts.filter(({ name }) => !links.has(name)),
    skipped: own.flatMap((table) => {
      const reason = skipReason(table);
      return reason === undefined ? [] : [{ name: table.name, reason }];
    }),
  };
}

type Tables = ReadonlyMap<string, ExistingTable>;

const isAdoptable = ({ obstacles, fields, relations }: DraftTable): boolean =>
  obstacles.length === 0 && [...fields, ...relations].every(({ obstacle }) => obstacle === undefined);

/** Why a table is not even a candidate. */
function skipReason({ name, kind, columns, constraints }: ExistingTable): string | undefined {
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
  const [column] = key.columns as [string];
  const type = columns.find((one) => one.name === column)!.type;
  if (column !== 'id' || type !== 'uuid')
    return `its primary key is \`${column}\` of type ${type}; expected \`id\` of type uuid`;
  return collectionNameFault(name)?.message;
}

function draftOf(table: ExistingTable, known: Tables, all: readonly ExistingTable[]): DraftTable {
  const columns = table.columns.filter(({ name }) => name !== 'id' && name !== '_version');
  const keys = table.constraints.filter(({ kind }) => kind === 'f');
  const isReference = ({ name }: ExistingColumn): boolean => keys.some((key) => key.columns.includes(name));
  const plain = columns.filter((column) => !isReference(column) && !isBuiltIn(table, column));
  return {
    name: table.name,
    fields: plain.map((column) => fieldOf(table, column)),
    relations: columns.filter(isReference).map((column) => belongsToOf(table, column, known)),
    notes: notesOf(table),
    obstacles: [
      ...obstaclesOf(table),
      ...otherKeys(table, all),
      ...columns.flatMap((column) => builtInObstacle(table, column)),
    ],
  };
}

const isBuiltIn = ({ name: table }: ExistingTable, { name, type }: ExistingColumn): boolean =>
  STAMPS.includes(name) || (table === 'users' && Object.hasOwn(USER_COLUMNS, name) && USER_COLUMNS[name] === type);

/** Columns that every collection has must be as the service makes them. */
function builtInObstacle({ name: table }: ExistingTable, column: ExistingColumn): readonly string[] {
  const { name, type, required, default: value } = column;
  const alter = `ALTER TABLE ${quoted(table)} ALTER COLUMN ${quoted(name)}`;
  if (STAMPS.includes(name)) {
    if (type !== 'timestamp with time zone') return [`\`${name}\` is ${type}: ${zoned(alter, name)}`];
    return required ? [] : [`\`${name}\` may be null: ${alter} SET NOT NULL`];
  }
  if (table !== 'users' || !Object.hasOwn(USER_COLUMNS, name)) return [];
  if (type !== USER_COLUMNS[name])
    return [`\`${name}\` of users is ${USER_COLUMNS[name]} to the service, but ${type} here`];
  if (!required) return [`\`${name}\` may be null: ${alter} SET NOT NULL`];
  return name === 'email' || value !== undefined ? [] : [`\`${name}\` has no default: ${alter} SET DEFAULT …`];
}

const zoned = (alter: string, name: string): string =>
  `${alter} TYPE timestamptz USING ${quoted(name)} AT TIME ZONE 'UTC'`;

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
  else if (!isUnique({ name, columns, constraints, indexes: [], kind: 'table' }, 'email'))
    found.push('`email` is not unique: ALTER TABLE "users" ADD UNIQUE ("email")');
  return found;
}

/** The unique constraint under such a key could not be made deferrable. */
const otherKeys = ({ name }: ExistingTable, all: readonly ExistingTable[]): readonly string[] =>
  all.flatMap(({ name: from, constraints }) =>
    constraints
      .filter(({ table, foreignColumns = [] }) => table === name && foreignColumns.join() !== 'id')
      .map(({ definition }) => `${from} references another column than its id: ${definition}`),
  );

function notesOf({ name, constraints, indexes }: ExistingTable): readonly string[] {
  const checks = constraints.filter(
    ({ kind, columns, definition }) => kind === 'c' && allowedBy(definition, columns) === undefined,
  );
  return [
    ...(name === 'users' ? ['users sign in by the lower-case form of `email`; passwords are not taken over'] : []),
    ...checks.map(
      ({ definition }) =>
        `PostgreSQL also holds ${oneLine(definition)}; a write that breaks it is a 500: say it with enum, min or max`,
    ),
    ...indexes
      .filter(({ unique, columns }) => unique && columns.length > 1)
      .map(({ columns }) => `PostgreSQL also holds unique (${columns.join(', ')})`),
  ];
}

const oneLine = (text: string): string => text.replaceAll(/\s+/g, ' ');

const isUnique = ({ constraints, indexes }: ExistingTable, column: string): boolean =>
  constraints.some(({ kind, columns }) => kind === 'u' && columns.length === 1 && columns[0] === column) ||
  indexes.some(({ unique, columns }) => unique && columns.length === 1 && columns[0] === column);

// ---------------------------------------------------------------- fields

interface FieldType {
  readonly type: string;
  readonly max?: number;
  /** Why it does not fit as it is. */
  readonly obstacle?: string;
  readonly note?: string;
}

function fieldOf(table: ExistingTable, column: ExistingColumn): DraftMember {
  const { name, required, generated, default: value } = column;
  const unique = isUnique(table, name);
  const index = !unique && table.indexes.some(({ columns }) => columns.length === 1 && columns[0] === name);
  const kind = typeOf(table, column);
  const check = table.constraints.find(
    ({ kind: of, columns }) => of === 'c' && columns.length === 1 && columns[0] === name,
  );
  const allowed = column.values ?? (kind.type === 'string' && check ? allowedBy(check.definition, [name]) : undefined);
  const known = value === undefined ? undefined : defaultOf(value, kind.type);
  const isForeign = table.name === 'users' && name === 'password';
  const rejected = isForeign ? '`password` means something else on `users`' : memberNameFault(name)?.message;
  const cannotRegister = table.name === 'users' && required && known === undefined;
  const parts = [
    `type: ${kind.type}`,
    ...(required ? ['required: true'] : []),
    ...(unique ? ['unique: true'] : []),
    ...(index ? ['index: true'] : []),
    ...(kind.max === undefined ? [] : [`max: ${kind.max}`]),
    ...(allowed === undefined ? [] : [`enum: ${JSON.stringify(allowed)}`]),
    ...(known === undefined ? [] : [`default: ${known}`]),
  ];
  const obstacles = [
    rejected,
    generated ? 'PostgreSQL makes its value, which a schema cannot say' : undefined,
    kind.obstacle,
    cannotRegister ? 'it is required and has no default, but a user registers with email and password only' : undefined,
  ].filter((text) => text !== undefined);
  const note =
    value !== undefined && known === undefined ? `its default ${oneLine(value)} is not used by the service` : kind.note;
  return {
    name,
    yaml: `{ ${parts.join(', ')} }`,
    ...(note !== undefined && { note }),
    ...(obstacles.length > 0 && { obstacle: obstacles.join('; ') }),
  };
}

function typeOf({ name: table }: ExistingTable, { name, type, collation, values }: ExistingColumn): FieldType {
  const alter = `ALTER TABLE ${quoted(table)} ALTER COLUMN ${quoted(name)}`;
  const to = (target: string): string => `it is ${type}: ${alter} TYPE ${target}`;
  if (values !== undefined) return { type: 'string', obstacle: to(`text COLLATE "C" USING ${quoted(name)}::text`) };
  const limited = /^character(?: varying)?(?:\((\d+)\))?$/.exec(type);
  if (limited !== null) {
    const max = limited[1] === undefined ? {} : { max: Number(limited[1]) };
    return { type: 'string', ...max, obstacle: to('text COLLATE "C"') };
  }
  switch (type) {
    case 'text':
      if (collation === 'nondeterministic')
        return {
          type: 'string',
          obstacle: `its collation takes different strings as equal: ${alter} TYPE text COLLATE "C"`,
        };
      if (collation === 'code points') return { type: 'string' };
      return {
        type: 'string',
        note: `its index serves no order of policies, which is by code point: ${alter} TYPE text COLLATE "C"`,
      };
    case 'boolean':
      return { type: 'bool' };
    case 'bigint':
      return { type: 'int', note: 'integers beyond ±(2^53−1) lose digits in JSON' };
    case 'integer':
    case 'smallint':
      return { type: 'int', obstacle: to('bigint') };
    case 'double precision':
      return { type: 'float' };
    case 'real':
      return { type: 'float', obstacle: to('double precision') };
    case 'timestamp with time zone':
      return { type: 'datetime' };
    case 'timestamp without time zone':
      return { type: 'datetime', obstacle: `it is ${type}: ${zoned(alter, name)}` };
    case 'uuid':
      return {
        type: 'string',
        obstacle: 'it is a uuid without a foreign key: add the key, or make it text COLLATE "C"',
      };
    default:
      return { type: 'string', obstacle: `no field type holds ${type}; move the column to a table of its own` };
  }
}

/** `CHECK ((status = ANY (ARRAY['a'::text, 'b'::text])))` → its strings. */
function allowedBy(definition: string, columns: readonly string[]): readonly string[] | undefined {
  const list = /^CHECK \(\(\(?"?(\w+)"?\)?(?:::text)? = ANY \(\(?ARRAY\[(.*)\]\)?(?:::text\[\])?\)\)\)$/.exec(
    definition,
  );
  if (list === null || columns.length !== 1 || list[1] !== columns[0]) return undefined;
  const strings = list[2]!.match(/'(?:[^']|'')*'/g) ?? [];
  const rest = list[2]!.replaceAll(/'(?:[^']|'')*'(?:::(?:text|character varying|bpchar))?(?:::text)?/g, '');
  if (strings.length === 0 || /[^\s,()]/.test(rest)) return undefined;
  return strings.map(unquote);
}

const unquote = (literal: string): string => literal.slice(1, -1).replaceAll("''", "'");

/** The default as YAML; undefined: a schema cannot say it. */
function defaultOf(value: string, type: string): string | undefined {
  if (type === 'datetime') return /^(?:now\(\)|CURRENT_TIMESTAMP)$/.test(value) ? "'@now'" : undefined;
  if (type === 'bool') return /^(?:true|false)$/.test(value) ? value : undefined;
  if (type === 'string') {
    const literal = /^('(?:[^']|'')*')(?:::[\w ."]+)?$/.exec(value);
    const text = literal === null ? undefined : unquote(literal[1]!);
    // `@` begins a value of the request.
    return text === undefined || text.startsWith('@') ? undefined : JSON.stringify(text);
  }
  const number = /^\(?'?(-?\d+(?:\.\d+)?)'?\)?(?:::[\w ]+)?$/.exec(value)?.[1];
  return number !== undefined && (type === 'float' || Number.isSafeInteger(Number(number))) ? number : undefined;
}

// ---------------------------------------------------------------- relations

const ON_DELETE: Readonly<Record<string, string>> = { c: 'cascade', r: 'restrict', a: 'restrict', n: 'set_null' };
const memberOf = (column: string): string => column.replace(/_id$/, '');

function belongsToOf(table: ExistingTable, column: ExistingColumn, known: Tables): DraftMember {
  const key = table.constraints.find(({ kind, columns }) => kind === 'f' && columns.includes(column.name))!;
  const name = memberOf(column.name);
  const onDelete = ON_DELETE[key.onDelete!];
  const parts = [
    'kind: belongs_to',
    `collection: ${yamlName(key.table!)}`,
    ...(column.required ? ['required: true'] : []),
    ...(isUnique(table, column.name) ? ['unique: true'] : []),
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
  readonly known: Tables;
}

function referenceObstacles({ table, column, key, known }: ForeignColumn): readonly string[] {
  const { name } = column;
  const found: string[] = [];
  if (!name.endsWith('_id'))
    found.push(
      `a belongs_to is a column \`…_id\`: ALTER TABLE ${quoted(table.name)} RENAME COLUMN ${quoted(name)} TO ${quoted(`${name}_id`)}`,
    );
  const fault = memberNameFault(memberOf(name))?.message;
  if (fault !== undefined) found.push(fault);
  if (table.columns.some((other) => other.name === memberOf(name) && other.name !== name))
    found.push(`there is a column \`${memberOf(name)}\` too`);
  if (column.type !== 'uuid') found.push(`it is ${column.type}, not uuid`);
  else if (!known.has(key.table!)) found.push(`it references ${key.table}, which is not adopted`);
  if (key.foreignColumns?.join() !== 'id')
    found.push(`it references ${key.table} (${key.foreignColumns?.join(', ')}), not its id`);
  if (ON_DELETE[key.onDelete!] === undefined)
    found.push('ON DELETE SET DEFAULT is not among cascade, restrict and set_null');
  if (column.required && key.onDelete === 'n')
    found.push('ON DELETE SET NULL cannot apply to a column that is NOT NULL');
  if (table.name === 'users' && column.required)
    found.push('it is required, but a user registers with email and password only');
  const keys = table.constraints.filter(({ kind, columns }) => kind === 'f' && columns.includes(name));
  if (keys.length > 1) found.push('it has several foreign keys');
  return found;
}

const referencesOf = (table: ExistingTable): readonly Reference[] =>
  table.constraints
    .filter(({ kind }) => kind === 'f')
    .map(({ columns: [column = ''], table: to }) => ({
      from: table.name,
      member: memberOf(column),
      to: to!,
      unique: isUnique(table, column),
    }));

/** Adds the has_many or has_one of each reference to the table, where a name is free. */
function withReverse(draft: DraftTable, references: readonly Reference[]): DraftTable {
  const reserved = draft.name === 'users' ? [...Object.keys(USER_COLUMNS), 'password'] : [];
  const members = [...draft.fields, ...draft.relations].flatMap(({ name }) => [name, `${name}_id`]);
  const taken = new Set([...members, ...reserved]);
  const reverse: DraftMember[] = [];
  for (const { from, member, to, unique } of references) {
    if (to !== draft.name) continue;
    const name = [from, `${from}_by_${member}`].find((wanted) => {
      return !taken.has(wanted) && !taken.has(`${wanted}_any`) && memberNameFault(wanted) === undefined;
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
