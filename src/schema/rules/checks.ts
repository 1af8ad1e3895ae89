/** `checks:` of a collection → the rules of the records that fail them. Errors are reported at their characters. */
import { hintOf, nearest } from '../../../grammar/suggest.ts';
import type { WarningCode } from '../../policy/check/warnings/warning-list.ts';
import { compileChecked } from '../../policy/compile.ts';
import type { Checked, Policy } from '../../policy/types.ts';
import { readsNext } from '../../policy/visit.ts';
import { type AccessReading, readWhen } from '../advice/read-access.ts';
import type { Path } from '../file/issue.ts';
import type { CheckShape, CollectionShape } from '../file/shape.ts';
import type { Bare } from '../model/collections.ts';
import type { Check, WriteAction } from '../model/model.ts';

export function readChecks(
  collection: Bare,
  shape: CollectionShape | undefined,
  context: AccessReading,
): readonly Check[] {
  return Object.entries(shape?.checks ?? {}).flatMap(([name, check]) => {
    const path = checkPath(collection.name, name).slice(0, -1);
    const fields = (check.fields ?? []).filter((field, i) =>
      isMember(field, collection, { ...context, path: [...path, 'fields', i] }),
    );
    return readCheck(check, { ...context, collection: collection.name, name, fields, path }) ?? [];
  });
}

/** The path of the condition of a check. */
export const checkPath = (collection: string, name: string): Path => [
  'collections',
  collection,
  'checks',
  name,
  'when',
];

interface CheckPlace extends AccessReading {
  readonly collection: string;
  readonly name: string;
  readonly fields: readonly string[];
  readonly path: Path;
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
  const violated = (action: WriteAction): readonly [Policy] => [violationOf(checked, text, place, action)];
  return { name, message, when: text, fields, violated: { create: violated('create'), update: violated('update') } };
}

/** A policy allows where its condition is true, so `not` leaves out what is unknown: null passes. */
function violationOf(checked: Checked, text: string, { catalog }: CheckPlace, action: WriteAction): Policy {
  const not: Checked = { kind: 'not', item: checked, span: checked.span };
  return compileChecked({ checked: not, text, catalog, action });
}

function isMember(
  name: string,
  { fields, relations, name: collection }: Bare,
  { source, broken, path }: AccessReading & { readonly path: Path },
): boolean {
  if (fields.has(name) || relations.has(name)) return true;
  if (broken.has(name)) return false;
  const near = nearest(name, [...fields.keys(), ...relations.keys()]);
  const message = `\`${collection}\` has no field or relation \`${name}\`${hintOf(near)}`;
  source.report({ code: 'unknown_field', message, path, replacement: near });
  return false;
}
