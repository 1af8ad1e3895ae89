/** Reads one field of the file into a field of the model. */
import { LIMITS } from '../../../grammar/limits.ts';
import { hintOf, nearest } from '../../../grammar/suggest.ts';
import { NOW_WORDS } from '../../../grammar/tokens.ts';
import { jsonPartsOf } from '../../policy/emit/json-parts.ts';
import { rank } from '../../policy/operators.ts';
import type { ScalarType, ValueType } from '../../policy/scalar-types.ts';
import {
  describeType,
  elementOf,
  isDay,
  isInstant,
  isText,
  isWhole,
  MOST_ELEMENTS,
  scalarOf,
} from '../../policy/scalar-types.ts';
import { type Constraints, FIELD_KINDS } from '../fields/index.ts';
import type { DocumentPath, Finding, Report } from '../file/issue.ts';
import { type FieldShape, WITHIN_MEMBER } from '../file/shape.ts';
import { found } from '../file/validate.ts';
import { fieldOf } from '../model/built-in.ts';
import { type Default, type Field, isUniqueMember, type UniqueMember } from '../model/model.ts';

export interface FieldPlace {
  readonly name: string;
  readonly path: DocumentPath;
  readonly report: Report;
}
interface DefaultPlace extends FieldPlace {
  readonly auth: AuthTypes;
  /** The zone of `@today`. */
  readonly timezone: string;
}
/** The types of `@request.auth.<name>`, which a default may take. */
export type AuthTypes = ReadonlyMap<string, ValueType>;

/** The bytes of an entry of a B-tree: its values, as PostgreSQL compresses them, and some bytes of its own. */
export const INDEX_ENTRY_BYTES = 2704;
/** At four bytes a character, a longer string may not fit into an entry of a B-tree. */
export const INDEXABLE_LENGTH = 675;

/** `{ type: list, of: string }` has the type `string[]`. */
type TypedShape = Omit<FieldShape, 'type'> & { readonly type: ScalarType };

function typeOf({ type, of }: FieldShape, { path, report }: FieldPlace): ScalarType {
  if (type === 'list') {
    if (of !== undefined) return `${of}[]`;
    const message = `a list needs \`of\`, the type of its elements; expected \`{ type: list, of: string }\``;
    report({ code: 'of_missing', message, path });
    return 'string[]';
  }
  if (of !== undefined) {
    const message = `\`of\` does not apply to a ${type}; remove it, or write \`type: list\``;
    report({ code: 'not_for_this_type', message, path: [...path, 'of'], at: 'key' });
  }
  return type;
}

/** Reads a field without its default, which may refer to fields of `users`. */
export function readField(written: FieldShape, place: FieldPlace): Field {
  const shape = { ...written, type: typeOf(written, place) };
  const { type, required = false, index = false, search = false, read_only: readOnly = false, column, was } = shape;
  const kind = FIELD_KINDS[type];
  const uniqueness = readUnique(shape);
  const given = {
    name: place.name,
    type: type,
    required,
    ...uniqueness,
    index,
    was,
    ...(search && { search }),
    ...(shape.lower && { lower: true }),
    readOnly,
    ...readStoredAs(shape, place),
    ...readPaths(shape, place),
    ...(column !== undefined && { column }),
  };
  for (const key of ['search', 'lower'] as const)
    if (shape[key] && !isText(type)) place.report(notOfStrings(key, type, place));
  const digits = readDigits(shape, place);
  const bounds = readBounds(shape, place);
  const allowed = readEnum(shape, bounds, place);
  checkIndexable({ ...given, ...bounds, ...allowed }, place);
  // Otherwise PostgreSQL's index would reject a longer string, and the caller would get no useful error.
  const capped = kind.bounds === 'length' && isIndexed(given) && bounds.max === undefined && allowed.enum === undefined;
  const noIndex = shape.index === false && { noIndex: true as const };
  return fieldOf({ ...given, ...digits, ...bounds, ...(capped && { max: INDEXABLE_LENGTH }), ...allowed, ...noIndex });
}

function readStoredAs(
  { type, stored_as: storedAs }: TypedShape,
  { path, report }: FieldPlace,
): Pick<Field, 'storedAs'> {
  if (storedAs === undefined) return {};
  const names = Object.keys(FIELD_KINDS[type].adoption.storedAs ?? {});
  if (names.includes(storedAs)) return { storedAs };
  const expected = names.length === 0 ? 'remove it' : `expected \`${names.join('`, `')}\``;
  const message = `a ${describeType(type)} is not stored as ${storedAs}; ${expected}`;
  report({ code: 'stored_as_of_type', message, path: [...path, 'stored_as'] });
  return {};
}

/** A name of the policy language: a path is written behind the name of the field. */
const PATH = /^[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z_][A-Za-z0-9_]*)*$/;
/** A path of a policy has the name of the field, and perhaps of relations, before them. */
const MOST_PATH_KEYS = LIMITS.names - 1;

function readPaths({ type, paths, column }: TypedShape, { name, path: at, report }: FieldPlace): Pick<Field, 'paths'> {
  if (paths === undefined) return {};
  const path = [...at, 'paths'];
  if (scalarOf(type).sqlType !== 'jsonb') {
    const message = `\`paths\` lead into json values, and \`${name}\` is ${describeType(type)}; remove it`;
    report({ code: 'not_for_this_type', message, path, at: 'key' });
    return {};
  }
  for (const each of Object.keys(paths)) {
    if (PATH.test(each) && each.split('.').length <= MOST_PATH_KEYS) continue;
    const message = `expected up to ${MOST_PATH_KEYS} names apart by dots, each of letters, digits and underscores, found \`${each}\``;
    report({ code: 'invalid_path', message, path: [...path, each], at: 'key' });
  }
  return { paths: jsonPartsOf({ name, column: column ?? name }, paths) };
}

/** Reads the digits of a decimal, which has no others. */
function readDigits(shape: TypedShape, { path, report }: FieldPlace): Pick<Field, 'precision' | 'scale'> {
  const { type, precision, scale } = shape;
  const isDecimal = FIELD_KINDS[type].columnOf !== undefined;
  if (!isDecimal) {
    for (const key of ['precision', 'scale'] as const) {
      const message = `\`${key}\` does not apply to a ${describeType(type)}; remove it`;
      if (shape[key] !== undefined) report({ code: 'not_for_this_type', message, path: [...path, key], at: 'key' });
    }
    return {};
  }
  if (precision === undefined || scale === undefined) {
    const message = `a ${type} needs \`precision\` and \`scale\`; expected \`{ type: ${type}, precision: 12, scale: 2 }\``;
    report({ code: 'digits_missing', message, path });
    return {};
  }
  if (scale > precision) {
    const message = `\`scale\` (${scale}) is greater than \`precision\` (${precision}), which counts all digits`;
    report({ code: 'scale_above_precision', message, path: [...path, 'scale'] });
    return {};
  }
  return { precision, scale };
}

/** Reads `unique` of a member, without its condition. */
export function readUnique({
  unique = false,
}: Pick<FieldShape, 'unique'>): Pick<Field, 'unique' | 'uniqueWithin' | 'uniqueKey'> {
  if (typeof unique === 'boolean') return { unique };
  if (typeof unique === 'string') return { unique: false, uniqueWithin: WITHIN_MEMBER.exec(unique)![1]! };
  const { within = [], where, ignore_case: ignoresCase = false } = unique;
  const names = typeof within === 'string' ? [within] : within;
  if (names.length === 0 && where === undefined && !ignoresCase) return { unique: true };
  return { unique: false, uniqueKey: { within: names, ignoresCase } };
}

const isIndexed = (member: UniqueMember & Pick<Field, 'index'>): boolean => isUniqueMember(member) || member.index;

const notOfStrings = (key: 'search' | 'lower', type: ScalarType, { path }: FieldPlace): Finding => ({
  code: `${key}_of_type`,
  message: `\`${key}\` is for string fields, found ${describeType(type)}`,
  path: [...path, key],
});

function checkIndexable(
  field: UniqueMember & Pick<Field, 'index' | 'type' | 'max'>,
  { path, report }: FieldPlace,
): void {
  const { type, max } = field;
  if (field.uniqueKey?.ignoresCase && !isText(type)) {
    const message = `\`ignore_case\` is for string fields, found ${describeType(type)}`;
    report({ code: 'ignore_case_of_type', message, path: [...path, 'unique', 'ignore_case'] });
  }
  if (
    scalarOf(type).sorts === false &&
    FIELD_KINDS[type].isIndexable !== false &&
    isIndexed({ ...field, index: false })
  ) {
    const message = `\`unique\` does not apply to a ${elementOf(type) ? 'list' : type}; remove it`;
    report({ code: 'not_for_this_type', message, path: [...path, 'unique'], at: 'key' });
  }
  if (isIndexed(field) && FIELD_KINDS[type].isIndexable === false) {
    const key = field.index ? 'index' : 'unique';
    const message = `\`${key}\` does not apply to ${type}, which may be too long for an index; remove it`;
    report({ code: 'not_for_this_type', message, path: [...path, key], at: 'key' });
  }
  if (
    !isIndexed(field) ||
    FIELD_KINDS[type].bounds !== 'length' ||
    max === undefined ||
    Number(max) <= INDEXABLE_LENGTH
  )
    return;
  const message = `PostgreSQL cannot index strings of more than ${INDEX_ENTRY_BYTES} bytes; expected a \`max\` of at most ${INDEXABLE_LENGTH}`;
  report({ code: 'index_too_long', severity: 'warning', message, path: [...path, 'max'] });
}

function readBounds(shape: TypedShape, place: FieldPlace): Constraints {
  const min = readBound('min', shape, place);
  const max = readBound('max', shape, place);
  const ofValue = FIELD_KINDS[shape.type].bounds === 'value' ? shape.type : undefined;
  if (min !== undefined && max !== undefined && rank(min, max, ofValue) > 0) {
    const message = `no value fits: \`min\` (${min}) is greater than \`max\` (${max})`;
    place.report({ code: 'min_above_max', message, path: [...place.path, 'min'] });
    return {};
  }
  return { min, max };
}

function readBound(key: 'min' | 'max', shape: TypedShape, { path, report }: FieldPlace): number | string | undefined {
  const raw = shape[key];
  if (raw === undefined) return undefined;
  const at = [...path, key];
  const kind = FIELD_KINDS[shape.type];
  if (kind.bounds === 'none') {
    const message = `\`${key}\` does not apply to a ${describeType(shape.type)}; remove it`;
    return report({ code: 'not_for_this_type', message, path: at, at: 'key' });
  }
  if (kind.bounds === 'length' || kind.bounds === 'elements') {
    const [counts, most] =
      kind.bounds === 'length' ? ['a string counts characters', Infinity] : ['a list counts elements', MOST_ELEMENTS];
    if (Number.isSafeInteger(raw) && Number(raw) >= 0 && Number(raw) <= most) return raw;
    const range = most === Infinity ? 'from 0' : `from 0 to ${most}`;
    const message = `\`${key}\` of ${counts}: expected an int ${range}, found ${found(raw)}`;
    return report({ code: 'wrong_type', message, path: at });
  }
  const { value, error } = kind.fromJson(raw, {}) as { value?: number | string; error?: { detail: string } };
  if (error !== undefined) {
    const message = `\`${key}\` must be a value of the field: ${error.detail}, found ${found(raw)}`;
    report({ code: 'wrong_type', message, path: at });
  }
  return value;
}

function readEnum(shape: TypedShape, bounds: Constraints, { path, report }: FieldPlace): Pick<Constraints, 'enum'> {
  if (shape.enum === undefined) return {};
  const kind = FIELD_KINDS[shape.type];
  if (!kind.hasEnum) {
    const message = `\`enum\` does not apply to a ${describeType(shape.type)}; remove it`;
    report({ code: 'not_for_this_type', message, path: [...path, 'enum'], at: 'key' });
    return {};
  }
  const values: (string | number)[] = [];
  shape.enum.forEach((raw, i) => {
    const { value, error } = kind.fromJson(raw, { ...bounds, lower: shape.lower ?? false }) as {
      value?: string | number;
      error?: { detail: string };
    };
    const at = [...path, 'enum', i];
    if (error !== undefined) {
      const message = `not a value of this field: ${error.detail}, found ${found(raw)}`;
      report({ code: 'wrong_type', message, path: at });
    } else if (values.includes(value!))
      report({ code: 'duplicate_value', message: `\`${raw}\` is given twice; remove one of them`, path: at });
    else values.push(value!);
  });
  return values.length === 0 ? {} : { enum: values };
}

const FROM_AUTH = /^@request\.auth\.(.*)$/s;

export function readFieldDefault(
  raw: NonNullable<FieldShape['default']>,
  field: Field,
  { path, report, auth, timezone }: DefaultPlace,
): Default | undefined {
  const at = [...path, 'default'];
  if (raw === '@now' && isInstant(field.type)) return { kind: 'now' };
  if (raw === '@today' && isDay(field.type)) return { kind: 'now', zone: timezone };
  if (raw === '@now' || raw === '@today') {
    const type = raw === '@now' ? 'datetime' : 'date';
    const message = `expected ${describeType(field.type)}, found \`${raw}\`, which is a ${type}`;
    return report({ code: 'invalid_default', message, path: at });
  }
  if (typeof raw === 'string' && raw.startsWith('@'))
    return readAuthDefault(raw, { type: field.type, path, report, auth });
  const read = FIELD_KINDS[field.type].fromJson(raw, field);
  if (read.error === undefined) return { kind: 'constant', value: read.value };
  const near = typeof raw === 'string' && field.enum !== undefined ? nearest(raw, field.enum.map(String)) : undefined;
  const asString = isText(field.type) && typeof raw !== 'string' ? `'${raw}'` : undefined;
  const replacement = near ?? asString;
  const message = `the default is not a value of this field: ${read.error.detail}, found ${found(raw)}${hintOf(near)}`;
  return report({ code: 'invalid_default', message, path: at, replacement });
}

export interface AuthDefault extends Omit<FieldPlace, 'name'> {
  readonly type: ValueType;
  readonly auth: AuthTypes;
}

export function readAuthDefault(raw: string, { type, path, report, auth }: AuthDefault): Default | undefined {
  const at = [...path, 'default'];
  const name = FROM_AUTH.exec(raw)?.[1];
  const source = name === undefined ? undefined : auth.get(name);
  if (name === undefined || source === undefined) {
    const near = nearest(raw, [...NOW_WORDS, ...[...auth.keys()].map((key) => `@request.auth.${key}`)]);
    const hint =
      near === undefined
        ? 'expected `@now`, `@today` or a field of `@request.auth` such as `@request.auth.id`'
        : `did you mean \`${near}\`?`;
    return report({ code: 'invalid_default', message: `unknown name \`${raw}\`; ${hint}`, path: at });
  }
  if (sameType(source, type)) return { kind: 'auth', name };
  const message = `expected ${describeType(type)}, found \`${raw}\`, which is ${describeType(source)}`;
  return report({ code: 'invalid_default', message, path: at });
}

function sameType(source: ValueType, type: ValueType): boolean {
  if (typeof source === 'object' && typeof type === 'object') return source.id === type.id;
  // An int id is a number, other ids are strings.
  if (typeof source === 'object') return isWhole(source) ? isWhole(type) : isText(type);
  return source === type;
}
