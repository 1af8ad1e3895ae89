/** The field type of a column of an existing table. */
import type { ScalarType } from '../../policy/scalar-types.ts';
import { MOST_DIGITS } from '../../policy/values.ts';
import { digitsOf } from '../../schema/fields/decimal.ts';
import { FIELD_KINDS, SCALAR_TYPES } from '../../schema/fields/index.ts';
import { withoutLength } from '../../schema/fields/kind.ts';
import { alterColumn, retypedAsText, withTimeZone } from './draft-table.ts';
import type { ExistingColumn } from './existing-tables.ts';

export interface ColumnType {
  readonly type: ScalarType;
  readonly max?: number;
  readonly precision?: number;
  readonly scale?: number;
  /** The name of the column's own type, which a table of another owner may keep. */
  readonly storedAs?: string | undefined;
  /** Why bylaw cannot own the column as it is, with the statement that makes it fit. */
  readonly obstacle?: string;
  readonly note?: string | undefined;
}

/** Undefined: no field type holds its values. */
export function typeOfColumn(table: string, column: ExistingColumn): ColumnType | undefined {
  const { name, type, base = type, collation, values } = column;
  const alter = alterColumn(table, name);
  const to = (target: string): string => `it is ${type}: ${alter} TYPE ${target}`;
  if (values !== undefined) return { type: 'string', obstacle: `it is ${type}: ${retypedAsText(table, name)}` };
  if (base !== type) {
    const found = typeOfColumn(table, {
      name,
      type: base,
      collation,
      required: false,
      generated: false,
      computed: false,
    });
    return found && { ...found, obstacle: to(FIELD_KINDS[found.type].column), storedAs: undefined };
  }
  const limited = /^character(?: varying)?(?:\((\d+)\))?$/.exec(type);
  if (limited !== null) {
    const max = limited[1] === undefined ? {} : { max: Number(limited[1]) };
    return { type: 'string', ...max, obstacle: to('text COLLATE "C"'), storedAs: storedAsOf('string', type) };
  }
  switch (withoutLength(type)) {
    case 'text':
      return textType(collation, alter);
    case 'timestamp without time zone':
      return {
        type: 'datetime',
        obstacle: `it is ${type}: ${withTimeZone(table, name)}`,
        storedAs: storedAsOf('datetime', type),
      };
    default:
      return ofKind(type, to);
  }
}

/** The name under which a field of the kind has the column as it is. */
function storedAsOf(kind: ScalarType, type: string): string | undefined {
  const { storedAs = {} } = FIELD_KINDS[kind].adoption;
  return Object.entries(storedAs).find(([, { column }]) => column === withoutLength(type))?.[0];
}

function textType(collation: ExistingColumn['collation'], alter: string): ColumnType {
  const retype = `${alter} TYPE text COLLATE "C"`;
  if (collation === 'nondeterministic')
    return { type: 'string', obstacle: `its collation takes different strings as equal: ${retype}` };
  if (collation === 'code points') return { type: 'string' };
  return { type: 'string', note: `its index serves no order of policies, which is by code point: ${retype}` };
}

/** @param to returns the SQL that turns the column into that type */
function ofKind(type: string, to: (target: string) => string): ColumnType | undefined {
  for (const name of SCALAR_TYPES) {
    const { column, adoption, columnOf } = FIELD_KINDS[name];
    if (columnOf !== undefined && type.startsWith(column) && !type.endsWith('[]')) return decimalColumn(name, type);
    if (column === type) return { type: name, note: adoption.note };
    const storedAs = storedAsOf(name, type);
    if (adoption.narrower.includes(type) || storedAs !== undefined || column === withoutLength(type))
      return { type: name, obstacle: to(column), storedAs };
  }
  return undefined;
}

function decimalColumn(name: ScalarType, type: string): ColumnType {
  const digits = digitsOf(type);
  if (digits !== undefined && digits.precision <= MOST_DIGITS && digits.scale <= digits.precision)
    return { type: name, ...digits };
  const obstacle = `it is ${type}; a ${name} has at most ${MOST_DIGITS} digits: change it to numeric(p,s)`;
  const storedAs = storedAsOf(name, type);
  return { type: name, precision: MOST_DIGITS, scale: MOST_DIGITS / 2, obstacle, storedAs };
}
