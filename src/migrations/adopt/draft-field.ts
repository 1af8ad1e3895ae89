/** A column as a field of the draft: its type, its constraints, and the obstacles to its adoption. */
import type { ScalarType } from '../../policy/scalar-types.ts';
import { MOST_DIGITS } from '../../policy/values.ts';
import { digitsOf } from '../../schema/fields/decimal.ts';
import { FIELD_KINDS, SCALAR_TYPES } from '../../schema/fields/index.ts';
import { columnNameIssue } from '../../schema/model/given-names.ts';
import { unquotedText } from '../../sql.ts';
import { alterColumn, type DraftMember, retypedAsText, withTimeZone } from './draft-table.ts';
import { type ExistingColumn, type ExistingTable, isUniqueColumn } from './existing-tables.ts';

export const oneLine = (text: string): string => text.replaceAll(/\s+/g, ' ');

interface FieldType {
  readonly type: ScalarType;
  readonly max?: number;
  readonly precision?: number;
  readonly scale?: number;
  /** Why the column does not fit as it is. */
  readonly obstacle?: string;
  readonly note?: string | undefined;
}

/** @param member the name of the field */
export function draftField(table: ExistingTable, column: ExistingColumn, member: string): DraftMember {
  const { name, required, generated, default: value } = column;
  const unique = isUniqueColumn(table, name);
  const index = !unique && table.indexes.some(({ columns }) => columns.length === 1 && columns[0] === name);
  const kind = fieldTypeOf(table, column);
  const check = table.constraints.find(
    ({ kind: of, columns }) => of === 'c' && columns.length === 1 && columns[0] === name,
  );
  const allowed =
    column.values ?? (FIELD_KINDS[kind.type].hasEnum && check ? allowedBy(check.definition, [name]) : undefined);
  const known = value === undefined ? undefined : FIELD_KINDS[kind.type].adoption.defaultOf(value);
  const cannotRegister = table.name === 'users' && required && known === undefined;
  const parts = [
    `type: ${kind.type}`,
    ...(required ? ['required: true'] : []),
    ...(unique ? ['unique: true'] : []),
    ...(index ? ['index: true'] : []),
    ...(kind.precision === undefined ? [] : [`precision: ${kind.precision}`, `scale: ${kind.scale}`]),
    ...(kind.max === undefined ? [] : [`max: ${kind.max}`]),
    ...(allowed === undefined ? [] : [`enum: ${JSON.stringify(allowed)}`]),
    ...(known === undefined ? [] : [`default: ${known}`]),
    ...(member === name ? [] : [`column: ${JSON.stringify(name)}`]),
  ];
  const isPassword = table.name === 'users' && name === 'password';
  const obstacles = [
    isPassword ? '`password` means something else on `users`' : columnNameIssue(name),
    generated ? 'PostgreSQL makes its value, which a schema cannot say' : undefined,
    kind.obstacle,
    cannotRegister ? 'it is required and has no default, but a user registers with email and password only' : undefined,
  ].filter((text) => text !== undefined);
  const note =
    value !== undefined && known === undefined ? `its default ${oneLine(value)} is not used by the service` : kind.note;
  return {
    name: member,
    yaml: `{ ${parts.join(', ')} }`,
    ...(note !== undefined && { note }),
    ...(obstacles.length > 0 && { obstacle: obstacles.join('; ') }),
  };
}

function fieldTypeOf({ name: table }: ExistingTable, { name, type, collation, values }: ExistingColumn): FieldType {
  const alter = alterColumn(table, name);
  const to = (target: string): string => `it is ${type}: ${alter} TYPE ${target}`;
  if (values !== undefined) return { type: 'string', obstacle: `it is ${type}: ${retypedAsText(table, name)}` };
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
    case 'timestamp without time zone':
      return { type: 'datetime', obstacle: `it is ${type}: ${withTimeZone(table, name)}` };
    default:
      return (
        ofKind(type, to) ?? {
          type: 'string',
          obstacle: `no field type holds ${type}; move the column to a table of its own`,
        }
      );
  }
}

/** @param to returns the SQL that turns the column into that type */
function ofKind(type: string, to: (target: string) => string): FieldType | undefined {
  for (const name of SCALAR_TYPES) {
    const { column, adoption, columnOf } = FIELD_KINDS[name];
    if (columnOf !== undefined && type.startsWith(column)) return decimalOf(name, type);
    if (column === type) return { type: name, note: adoption.note };
    if (adoption.narrower.includes(type)) return { type: name, obstacle: to(column) };
  }
  return undefined;
}

function decimalOf(name: ScalarType, type: string): FieldType {
  const digits = digitsOf(type);
  if (digits !== undefined && digits.precision <= MOST_DIGITS && digits.scale <= digits.precision)
    return { type: name, ...digits };
  const digitsOfAll = { precision: MOST_DIGITS, scale: MOST_DIGITS / 2 };
  const obstacle = `it is ${type}; a ${name} has at most ${MOST_DIGITS} digits: change it to numeric(p,s)`;
  return { type: name, ...digitsOfAll, obstacle };
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
