/** A column as a field of the draft: its type, its constraints, and what keeps bylaw from owning it. */
import { parse } from 'yaml';
import { elementOf, type ScalarType } from '../../policy/scalar-types.ts';
import { FIELD_KINDS } from '../../schema/fields/index.ts';
import { withoutLength } from '../../schema/fields/kind.ts';
import { columnNameIssue } from '../../schema/model/given-names.ts';
import { unquotedText } from '../../sql.ts';
import { type ColumnType, typeOfColumn } from './column-types.ts';
import type { DraftMember, LeftOut } from './draft-table.ts';
import { type ExistingColumn, type ExistingTable, isUniqueColumn } from './existing-tables.ts';

export const oneLine = (text: string): string => text.replaceAll(/\s+/g, ' ');

const SECRET_NAME =
  /(?:^|_)(?:passwd|pwd|password(?:_?hash)?|secret|salt|api_?key|private_?key|(?:access|refresh|reset)_?token)(?:_|$)/i;

/** `passwordHash`, `password-hash` → `password_Hash`, `password_hash`. */
const withUnderscores = (name: string): string =>
  name.replaceAll(/(?<=[a-z\d])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|[^A-Za-z\d]+/g, '_');

/** @param member the name of the field */
export function draftField(table: ExistingTable, column: ExistingColumn, member: string): DraftMember | LeftOut {
  const issue = columnNameIssue(column.name);
  const kind = typeOfColumn(table.table, column);
  if (issue !== undefined) return leftOutColumn(table, column, issue);
  if (kind === undefined) return leftOutColumn(table, column, `no field type holds ${column.type}`);
  if (kind.storedAs === undefined && !isServedAsItIs(column, kind.type))
    return leftOutColumn(table, column, `no field type takes it as it is; ${kind.obstacle}`);
  if (SECRET_NAME.test(withUnderscores(column.name)))
    return leftOutColumn(table, column, 'its name is that of a secret; add it with rules of its own');
  const given = column.default === undefined ? undefined : FIELD_KINDS[kind.type].adoption.defaultOf(column.default);
  return {
    name: member,
    column: column.name,
    declared: declaredField(table, column, { kind, given, member }),
    notes: notesOf(column, kind, given),
    obstacles: obstaclesOf(table, column, { kind, given }),
  };
}

/** bylaw reads and writes the column of another owner without a change of its type. */
function isServedAsItIs({ type, base = type, values }: ExistingColumn, kind: ScalarType): boolean {
  const { column, columnOf, adoption } = FIELD_KINDS[kind];
  if (values !== undefined) return true;
  if (columnOf !== undefined) return base.includes('(');
  return [column, ...(adoption.asItIs ?? [])].includes(withoutLength(base));
}

function leftOutColumn(table: ExistingTable, column: ExistingColumn, reason: string): LeftOut {
  // A create gives no value for it.
  const isNeeded = column.required && column.default === undefined && !column.generated && table.kind === 'table';
  const consequence = isNeeded ? '; it must have a value, which a create can only get from a trigger' : '';
  return { kind: 'column', name: `${table.table}.${column.name}`, reason: `${reason}${consequence}` };
}

interface DraftedColumn {
  readonly kind: ColumnType;
  /** The default as YAML. */
  readonly given: string | undefined;
}

function declaredField(
  table: ExistingTable,
  column: ExistingColumn,
  { kind, given, member }: DraftedColumn & { readonly member: string },
): DraftMember['declared'] {
  const { name, required, generated, computed, default: value } = column;
  const unique = isUniqueColumn(table, name);
  const index = table.indexes.some(({ columns }) => columns.length === 1 && columns[0] === name);
  // PostgreSQL fills in a value that a create leaves out, which a required field without a default forbids.
  const isFilledIn = generated || (value !== undefined && given === undefined);
  const allowed = column.values ?? (FIELD_KINDS[kind.type].hasEnum ? allowedIn(table, name) : undefined);
  const element = elementOf(kind.type);
  return {
    ...(element === undefined ? { type: kind.type } : { type: 'list', of: element }),
    ...(kind.storedAs !== undefined && { stored_as: kind.storedAs }),
    ...(required && !isFilledIn && { required: true }),
    ...(unique && element === undefined && { unique: true }),
    ...(index && !unique && { index: true }),
    ...(kind.precision !== undefined && { precision: kind.precision, scale: kind.scale }),
    ...(kind.max !== undefined && { max: kind.max }),
    ...(allowed !== undefined && { enum: allowed }),
    ...(given !== undefined && { default: parse(given) }),
    ...(computed && { read_only: true }),
    ...(member !== name && { column: name }),
  };
}

function notesOf({ required, default: value, computed }: ExistingColumn, kind: ColumnType, given?: string) {
  if (computed || value === undefined || given !== undefined) return kind.note === undefined ? [] : [kind.note];
  const isNull = required ? ', and it is never null' : '';
  return [`the file cannot say its default ${oneLine(value)}${isNull}`];
}

function obstaclesOf({ name: table }: ExistingTable, column: ExistingColumn, { kind, given }: DraftedColumn) {
  const isOfUsers = table === 'users';
  return [
    isOfUsers && column.name === 'password' ? '`password` means something else on `users`' : undefined,
    column.generated ? 'PostgreSQL makes its value' : undefined,
    kind.obstacle,
    isOfUsers && column.required && given === undefined
      ? 'it is required and has no default, but a user registers with email and password only'
      : undefined,
  ].filter((text) => text !== undefined);
}

export function allowedIn({ constraints }: ExistingTable, column: string): readonly string[] | undefined {
  const check = constraints.find(({ kind, columns }) => kind === 'c' && columns.length === 1 && columns[0] === column);
  return check && allowedBy(check.definition, [column]);
}

/** `CHECK ((status = ANY (ARRAY['a'::text, 'b'::text])))` → its strings. */
export function allowedBy(definition: string, columns: readonly string[]): readonly string[] | undefined {
  const list = /^CHECK \(\(\(?"?(\w+)"?\)?(?:::text)? = ANY \(\(?ARRAY\[(.*)\]\)?(?:::text\[\])?\)\)\)$/.exec(
    definition,
  );
  if (list === null) return undefined;
  const [, column, elements = ''] = list;
  if (columns.length !== 1 || column !== columns[0]) return undefined;
  const strings = elements.match(/'(?:[^']|'')*'/g) ?? [];
  const rest = elements.replaceAll(/'(?:[^']|'')*'(?:::(?:text|character varying|bpchar))?(?:::text)?/g, '');
  if (strings.length === 0 || /[^\s,()]/.test(rest)) return undefined;
  return strings.map(unquotedText);
}
