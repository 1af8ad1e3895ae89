/** The unique field of an upsert, and its access to records. Not a route. */
import { type Admit, forbiddenProblem } from '../../http/gate.ts';
import { Problem, problemOfError } from '../../problem.ts';
import type { UpsertAccess } from '../../records/write/upsert.ts';
import { FIELD_KINDS, type FieldKind, keyKindIn } from '../../schema/fields/index.ts';
import {
  type Collection,
  type Schema,
  takesWrite,
  type UniqueField,
  uniqueFieldsOf,
} from '../../schema/model/model.ts';

/** Undefined: the collection has no such unique field. */
export const uniqueFieldOf = (collection: Collection, name: string): UniqueField | undefined =>
  uniqueFieldsOf(collection).find((field) => field.name === name);

/** Such as ``expected `slug` or `code` ``. */
export function expectedFields(collection: Collection): string {
  const names = uniqueFieldsOf(collection).map(({ name }) => `\`${name}\``);
  return names.length === 0 ? `\`${collection.name}\` has no unique field` : `expected ${names.join(' or ')}`;
}

const kindOfUnique = (field: UniqueField, schema: Schema): FieldKind =>
  'kind' in field ? keyKindIn(schema, field.collection) : FIELD_KINDS[field.type];

/** The value of the field as JSON has it. Throws `invalid_parameter`. */
export function valueInPath(field: UniqueField, text: string, schema: Schema): unknown {
  const kind = kindOfUnique(field, schema);
  const value = kind.fromQuery(text);
  if (value !== undefined) return value;
  const detail = `expected a value of \`${field.name}\`: ${kind.expected}`;
  throw problemOfError('invalid_parameter', { parameter: 'value', code: 'invalid_value', detail });
}

/** True of two JSON values that a body stores as the same value of the field. */
export function isSameValue(field: UniqueField, [one, other]: readonly [unknown, unknown], schema: Schema): boolean {
  if (one === other) return true;
  const kind = kindOfUnique(field, schema);
  const limits = 'kind' in field ? {} : field;
  const [read, otherRead] = [kind.fromJson(one, limits), kind.fromJson(other, limits)];
  return !read.error && !otherRead.error && read.value === otherRead.value;
}

/** Throws `forbidden` where the caller may neither create nor update, and `method_not_allowed` of a table that takes no such write. */
export function upsertAccessOf(admit: Admit, collection: Collection): UpsertAccess {
  for (const action of ['create', 'update'] as const) {
    if (!takesWrite(collection, action))
      throw new Problem('method_not_allowed', `the database takes no ${action} of \`${collection.name}\``);
  }
  const admitted = (action: 'read' | 'create' | 'update') => {
    try {
      return admit(collection, action);
    } catch (error) {
      if (error instanceof Problem && error.code === 'forbidden') return undefined;
      throw error;
    }
  };
  const [read, create, update] = [admitted('read'), admitted('create'), admitted('update')];
  if (create === undefined && update === undefined) throw forbiddenProblem();
  const accessTo = (admission: typeof create, data: Readonly<Record<string, unknown>>) => {
    if (admission === undefined) throw forbiddenProblem();
    return admission.access(data);
  };
  return {
    read: accessOrNone(read),
    create: (data) => accessTo(create, data),
    update: (data) => accessTo(update, data),
  };
}

function accessOrNone(read: ReturnType<Admit> | undefined): UpsertAccess['read'] {
  try {
    return read?.access();
  } catch (error) {
    if (error instanceof Problem && error.code === 'forbidden') return undefined;
    throw error;
  }
}
