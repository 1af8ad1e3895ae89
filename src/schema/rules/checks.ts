/** `checks:` of a collection, and `transitions:` of its fields → the rules of the records that fail them. */
import { hintOf, nearest } from '../../../grammar/suggest.ts';
import { examineErrors } from '../../policy/check/checker.ts';
import type { WarningCode } from '../../policy/check/warnings/warning-list.ts';
import { compileChecked } from '../../policy/compile.ts';
import type { Checked, Policy } from '../../policy/types.ts';
import { readsNext } from '../../policy/visit.ts';
import { type AccessReading, readWhen } from '../advice/read-access.ts';
import type { DocumentPath } from '../file/issue.ts';
import type { CheckShape, CollectionShape } from '../file/shape.ts';
import type { Bare } from '../model/collections.ts';
import { type Check, nameOfTransitions, type Transitions, type WriteAction } from '../model/model.ts';

export function readChecks(
  collection: Bare,
  shape: CollectionShape | undefined,
  context: AccessReading,
): readonly Check[] {
  const ofFields = Object.keys(shape?.fields ?? {}).flatMap(
    (name) => readTransitions(name, { ...context, collection, shape }) ?? [],
  );
  const own = Object.entries(shape?.checks ?? {}).flatMap(([name, check]) => {
    const path = checkPath(collection.name, name).slice(0, -1);
    const fields = (check.fields ?? []).filter((field, i) =>
      isKnownMember(field, collection, { ...context, path: [...path, 'fields', i] }),
    );
    return readCheck(check, { ...context, collection: collection.name, name, fields, path }) ?? [];
  });
  return [...ofFields, ...own];
}

/** The path of the condition of a check. */
const checkPath = (collection: string, name: string): DocumentPath => [
  'collections',
  collection,
  'checks',
  name,
  'when',
];

/** The path of the condition of a check, or of the transitions of a field. */
export const pathOfCheck = (collection: string, { name, transitions }: Check): DocumentPath =>
  transitions === undefined
    ? checkPath(collection, name)
    : ['collections', collection, 'fields', transitions.field, 'transitions'];

interface CheckPlace extends AccessReading {
  readonly collection: string;
  readonly name: string;
  readonly fields: readonly string[];
  readonly path: DocumentPath;
}

/** A check decides on the record, and not on the caller: what is unknown passes, and everyone is held to it. */
const WARNINGS_OF_RULES: readonly WarningCode[] = [
  'next_alone',
  'no_caller',
  'guests_write',
  'guests_pass',
  'query_decides',
  'null_in_body',
  'negation_of_nullable',
  'needle_from_request',
  'anonymous_only',
  'all_of_none',
];
const warns = (code: string): boolean => !WARNINGS_OF_RULES.some((each) => each === code);

function readCheck({ when, message }: CheckShape, place: CheckPlace): Check | undefined {
  const { name, fields, source, collection, path } = place;
  const at = [...path, 'when'];
  const text = String(when);
  const rule = { ...place, collection, action: 'update', path: at, roles: [], isOfMember: true, warns } as const;
  const condition = readWhen(text, rule);
  if (condition === undefined) return undefined;
  const { checked } = condition;
  if (!readsNext(checked)) {
    const message =
      'a check is about the record that a write makes, and this one does not name `@next`; ' +
      'write `@next` for the record after the write, and `@record` only for its state before an update';
    return source.report({ code: 'check_without_next', message, path: at });
  }
  const violated = (action: WriteAction): readonly Policy[] => [violationOf(checked, text, place, action)];
  return { name, message, when: text, fields, violated: { create: violated('create'), update: violated('update') } };
}

/** A policy allows where its condition is true, so `not` leaves out what is unknown: null passes. */
function violationOf(
  checked: Checked,
  text: string,
  { catalog }: Pick<AccessReading, 'catalog'>,
  action: WriteAction,
): Policy {
  return compileChecked({ checked: negatedCheck(checked), text, catalog, action });
}

export const negatedCheck = (checked: Checked): Checked => ({ kind: 'not', item: checked, span: checked.span });

function isKnownMember(
  name: string,
  { fields, relations, name: collection }: Bare,
  { source, broken, path }: AccessReading & { readonly path: DocumentPath },
): boolean {
  if (fields.has(name) || relations.has(name)) return true;
  if (broken.has(name)) return false;
  const near = nearest(name, [...fields.keys(), ...relations.keys()]);
  const message = `\`${collection}\` has no field or relation \`${name}\`${hintOf(near)}`;
  source.report({ code: 'unknown_field', message, path, replacement: near });
  return false;
}

// ---------------------------------------------------------------- transitions

interface FieldOfCollection extends AccessReading {
  readonly collection: Bare;
  readonly shape: CollectionShape | undefined;
}

/** Undefined: the field has none, or they are wrong. */
function readTransitions(name: string, place: FieldOfCollection): Check | undefined {
  const { collection, shape, source, catalog } = place;
  const given = shape?.fields?.[name];
  const written = typeof given === 'object' ? given.transitions : undefined;
  const field = collection.fields.get(name);
  if (written === undefined || field === undefined) return undefined;
  const path = ['collections', collection.name, 'fields', name, 'transitions'];
  const { enum: values } = field;
  if (values === undefined) {
    const message = '`transitions` are between the values of an `enum`, and the field has none; add `enum`';
    return source.report({ code: 'transitions_of_enum', message, path, at: 'key' });
  }
  const possible = new Map<string, readonly (string | number)[]>();
  for (const [from, following] of Object.entries(written)) {
    const isKnown = isOfEnum(from, values, { source, path: [...path, from], at: 'key' });
    const to = following.filter((value, i) =>
      isOfEnum(value, values, { source, path: [...path, from, i], at: 'value' }),
    );
    if (isKnown) possible.set(from, to);
  }
  const text = transitionsText(name, possible, values);
  const { checked, issues } = examineErrors(text, { catalog, collection: collection.name, action: 'update' });
  if (checked === undefined || issues.length > 0) {
    const message = `the transitions are too many for a policy: ${issues[0]?.message}`;
    return source.report({ code: 'transitions_too_many', message, path, at: 'key' });
  }
  return {
    name: nameOfTransitions(name),
    message: `\`${name}\` cannot change to this value`,
    when: text,
    fields: [name],
    violated: { create: [], update: [violationOf(checked, text, place, 'update')] },
    transitions: { field: name, possible },
  };
}

/** A first value may be any. INVARIANT: false, and not unknown, where a value is replaced by null. */
export function transitionsText(
  name: string,
  possible: Transitions['possible'],
  values: readonly (string | number)[],
): string {
  const literal = (value: string | number): string => JSON.stringify(value);
  const each = [...possible].flatMap(([from, to]) => {
    const value = values.find((one) => String(one) === from);
    if (value === undefined || to.length === 0) return [];
    return [`(@record.${name} = ${literal(value)} and @next.${name} in [${to.map(literal).join(', ')}])`];
  });
  const follows = each.length === 0 ? '' : ` or (@next.${name} is not null and (${each.join(' or ')}))`;
  return `not changed(@record.${name}) or @record.${name} is null${follows}`;
}

interface ValuePlace extends Pick<AccessReading, 'source'> {
  readonly path: DocumentPath;
  readonly at: 'key' | 'value';
}

function isOfEnum(
  value: string | number,
  values: readonly (string | number)[],
  { source, path, at }: ValuePlace,
): boolean {
  const names = values.map(String);
  if (names.includes(String(value))) return true;
  const near = nearest(String(value), names);
  const hint = near === undefined ? `; expected one of ${names.map((name) => `\`${name}\``).join(', ')}` : hintOf(near);
  const message = `the enum does not have the value \`${value}\`${hint}`;
  source.report({ code: 'enum_unknown', message, path, at, replacement: near });
  return false;
}
