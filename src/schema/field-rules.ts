/** One field of the file → a field of the model. */
import { nearest } from '../../grammar/suggest.ts';
import type { ScalarType } from '../policy/types.ts';
import type { Scalar } from '../policy/values.ts';
import { fieldOf } from './built-in.ts';
import { type Constraints, FIELD_KINDS } from './fields/index.ts';
import type { Path, Report } from './issue.ts';
import type { Default, Field } from './model.ts';
import type { FieldShape } from './shape.ts';

export interface FieldPlace {
  readonly name: string;
  readonly path: Path;
  readonly report: Report;
}
/** What `@request.auth.<name>` may stand for in a default. */
export type AuthTypes = ReadonlyMap<string, ScalarType | { readonly id: string }>;

/** Behind this a text may not fit into a page of a B-tree (2704 bytes), at four bytes a character. */
export const INDEXABLE_LENGTH = 675;

/** Without the default, which may need what `users` holds. */
export function readField(shape: FieldShape, place: FieldPlace): Field {
  const { type, required = false, unique = false, index = false, was } = shape;
  const kind = FIELD_KINDS[type as ScalarType];
  const given = {
    name: place.name,
    type: type as ScalarType,
    required,
    unique,
    index,
    ...(was === undefined ? {} : { was }),
  };
  const bounds = readBounds(shape, place);
  const allowed = readEnum(shape, bounds, place);
  checkIndexable({ ...given, ...bounds, ...allowed }, place);
  // A longer text would be refused by the index, which is no answer to give to a caller.
  const capped =
    kind.bounds === 'length' && (unique || index) && bounds.max === undefined && allowed.enum === undefined;
  return fieldOf({ ...given, ...bounds, ...(capped ? { max: INDEXABLE_LENGTH } : {}), ...allowed });
}

function checkIndexable(
  { unique, index, type, max }: Pick<Field, 'unique' | 'index' | 'type' | 'max'>,
  { path, report }: FieldPlace,
): void {
  if (!(unique || index) || type !== 'string' || max === undefined || Number(max) <= INDEXABLE_LENGTH) return;
  report({
    code: 'index_too_long',
    severity: 'warning',
    message: `PostgreSQL refuses to index texts that are longer than 2704 bytes; expected a \`max\` of at most ${INDEXABLE_LENGTH}`,
    path: [...path, 'max'],
  });
}

function readBounds(shape: FieldShape, place: FieldPlace): Constraints {
  const min = readBound('min', shape, place);
  const max = readBound('max', shape, place);
  if (min !== undefined && max !== undefined && min > max) {
    place.report({
      code: 'min_above_max',
      message: `\`min\` ${min} is above \`max\` ${max}, so no value fits`,
      path: [...place.path, 'min'],
    });
    return {};
  }
  return { ...(min === undefined ? {} : { min }), ...(max === undefined ? {} : { max }) };
}

function readBound(key: 'min' | 'max', shape: FieldShape, { path, report }: FieldPlace): number | string | undefined {
  const raw = shape[key];
  if (raw === undefined) return undefined;
  const at = [...path, key];
  const kind = FIELD_KINDS[shape.type as ScalarType];
  if (kind.bounds === 'none') {
    report({ code: 'not_for_this_type', message: `a ${shape.type} has no \`${key}\``, path: at, at: 'key' });
    return undefined;
  }
  if (kind.bounds === 'length') {
    if (Number.isSafeInteger(raw) && Number(raw) >= 0) return raw;
    report({
      code: 'wrong_type',
      message: `\`${key}\` of a string counts characters: expected a whole number from 0, found \`${raw}\``,
      path: at,
    });
    return undefined;
  }
  const { value, fault } = kind.fromJson(raw, {}) as { value?: number | string; fault?: { detail: string } };
  if (fault !== undefined)
    report({ code: 'wrong_type', message: `\`${key}\` is no ${shape.type}: ${fault.detail}`, path: at });
  return value;
}

function readEnum(shape: FieldShape, bounds: Constraints, { path, report }: FieldPlace): Pick<Constraints, 'enum'> {
  if (shape.enum === undefined) return {};
  const kind = FIELD_KINDS[shape.type as ScalarType];
  if (!kind.hasEnum) {
    report({
      code: 'not_for_this_type',
      message: `a ${shape.type} has no \`enum\``,
      path: [...path, 'enum'],
      at: 'key',
    });
    return {};
  }
  const values: (string | number)[] = [];
  shape.enum.forEach((raw, i) => {
    const { value, fault } = kind.fromJson(raw, bounds) as { value?: string | number; fault?: { detail: string } };
    const at = [...path, 'enum', i];
    if (fault !== undefined)
      report({
        code: 'wrong_type',
        message: `\`${raw}\` is no ${shape.type} of this field: ${fault.detail}`,
        path: at,
      });
    else if (values.includes(value!))
      report({ code: 'duplicate_value', message: `\`${raw}\` is given twice`, path: at });
    else values.push(value!);
  });
  return values.length === 0 ? {} : { enum: values };
}

const FROM_AUTH = /^@request\.auth\.(.*)$/s;

export function readFieldDefault(
  raw: Scalar,
  field: Field,
  { path, report, auth }: FieldPlace & { readonly auth: AuthTypes },
): Default | undefined {
  const at = [...path, 'default'];
  if (raw === '@now') {
    if (field.type === 'datetime') return { kind: 'now' };
    report({ code: 'invalid_default', message: `\`@now\` is a datetime, and the field is ${field.type}`, path: at });
    return undefined;
  }
  if (typeof raw === 'string' && raw.startsWith('@'))
    return readAuthDefault(raw, { type: field.type, path, report, auth });
  const read = FIELD_KINDS[field.type].fromJson(raw, field);
  if (read.fault === undefined) return { kind: 'constant', value: read.value };
  const near = typeof raw === 'string' && field.enum !== undefined ? nearest(raw, field.enum.map(String)) : undefined;
  const quoted = field.type === 'string' && typeof raw !== 'string' ? `'${raw}'` : undefined;
  const replacement = near ?? quoted;
  report({
    code: 'invalid_default',
    message: `\`${raw}\` cannot be the default: ${read.fault.detail}${near === undefined ? '' : `; did you mean \`${near}\`?`}`,
    path: at,
    ...(replacement === undefined ? {} : { replacement }),
  });
  return undefined;
}

export interface AuthDefault extends Omit<FieldPlace, 'name'> {
  readonly type: ScalarType | { readonly id: string };
  readonly auth: AuthTypes;
}

export function readAuthDefault(raw: string, { type, path, report, auth }: AuthDefault): Default | undefined {
  const at = [...path, 'default'];
  const name = FROM_AUTH.exec(raw)?.[1];
  const source = name === undefined ? undefined : auth.get(name);
  if (name === undefined || source === undefined) {
    const near = nearest(raw, ['@now', ...[...auth.keys()].map((key) => `@request.auth.${key}`)]);
    const hint =
      near === undefined
        ? 'expected `@now` or a field of `@request.auth` such as `@request.auth.id`'
        : `did you mean \`${near}\`?`;
    report({ code: 'invalid_default', message: `\`${raw}\` is nothing that a default can take; ${hint}`, path: at });
    return undefined;
  }
  if (sameType(source, type)) return { kind: 'auth', name };
  report({
    code: 'invalid_default',
    message: `\`${raw}\` is ${typeName(source)}; expected ${typeName(type)}`,
    path: at,
  });
  return undefined;
}

function sameType(source: ScalarType | { readonly id: string }, type: ScalarType | { readonly id: string }): boolean {
  if (typeof source === 'object') return typeof type === 'object' ? source.id === type.id : type === 'string';
  return source === type;
}

const typeName = (type: ScalarType | { readonly id: string }): string =>
  typeof type === 'object' ? `an identifier of \`${type.id}\`` : type === 'int' ? 'an int' : `a ${type}`;
