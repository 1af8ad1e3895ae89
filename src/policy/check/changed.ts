/** `changed(@record.f, …)` and `changed_only(@record.f, …)`: which members of the record they name. */
import { replacing } from '../../../grammar/policy-error.ts';
import { hintOf, nearest } from '../../../grammar/suggest.ts';
import type { Call, Name, Operand } from '../../../grammar/syntax.ts';
import { CHANGE_CALLS, isChangeCall } from '../../../grammar/tokens.ts';
import { type CatalogCollection, type CheckedChanged, type Member, STAMPS } from '../types.ts';
import { memberName } from '../visit.ts';
import type { CheckerPlace, CheckIssue } from './place.ts';
import { findRelation, membersNamed, relationNames } from './unknown-names.ts';

/** A caller's write never sets these. */
const NEVER_SET: ReadonlySet<string> = new Set(['id', ...STAMPS]);

const [, CHANGED_ONLY] = CHANGE_CALLS;

export const isChange = ({ name }: Call): boolean => isChangeCall(name.name);

export function checkChange(call: Call, place: CheckerPlace): CheckedChanged | undefined {
  const { name, args, span } = call;
  const collection = place.catalog.collections.get(place.collection);
  if (place.isBody || collection === undefined) return place.report(inBody(call));
  if (place.action !== 'update') return place.report(misplacedChange(call, place));
  if (args.length === 0) {
    const message = `\`${name.name}()\` names nothing; expected fields or relations, such as \`${name.name}(@record.title)\``;
    return place.report({ code: 'argument_count', message, span });
  }
  const named = args.map((argument) => changedMember(argument, { call, collection, place }));
  const known = named.filter((member) => member !== undefined);
  if (known.length < named.length) return undefined;
  const names = new Set(known.map(memberName));
  const unchanged = name.name === CHANGED_ONLY;
  const members = changeableMembers(collection).filter((member) => names.has(memberName(member)) !== unchanged);
  return { kind: 'changed', unchanged, collection: collection.name, members, span };
}

const spellings = (member: Member): readonly string[] =>
  member.kind === 'field' ? [member.field.name] : relationNames([member.relation]);

function changeableMembers({ fields, relations }: CatalogCollection): readonly Member[] {
  const members: Member[] = [...fields.values()]
    .filter(({ name }) => !NEVER_SET.has(name))
    .map((field) => ({ kind: 'field', field }));
  for (const relation of relations.values())
    if (relation.kind !== 'has_many') members.push({ kind: 'relation', relation });
  return members;
}

interface Argument {
  readonly call: Call;
  readonly collection: CatalogCollection;
  readonly place: CheckerPlace;
}

function changedMember(argument: Operand, { call, collection, place }: Argument): Member | undefined {
  const expected = `expected fields and relations of the record, such as \`@record.title\``;
  const refuse = (message: string): undefined =>
    place.report({ code: 'change_argument', message: `${message}; ${expected}`, span: argument.span });
  if (argument.kind !== 'path' || argument.root !== 'record')
    return refuse(`\`${call.name.name}\` takes no such value`);
  const [step, further] = argument.steps;
  if (step === undefined || further !== undefined)
    return refuse('only the record itself is compared, not what it refers to');
  const { name } = step;
  if (NEVER_SET.has(name)) return refuse(`\`${name}\` is never set by a caller`);
  const field = collection.fields.get(name);
  if (field !== undefined) return { kind: 'field', field };
  const relation = findRelation(collection, name);
  if (relation?.kind === 'has_many') return refuse(`the records of \`${name}\` are written by themselves`);
  if (relation !== undefined) return { kind: 'relation', relation };
  place.onUnknown?.(name, membersNamed(changeableMembers(collection).flatMap(spellings), collection));
  return place.report(unknownChangedMember(step, collection));
}

function unknownChangedMember({ name, span }: Name, collection: CatalogCollection): CheckIssue {
  const near = nearest(name, changeableMembers(collection).map(memberName));
  const message = `\`${collection.name}\` has no \`${name}\`${hintOf(near)}`;
  return { code: 'name_unknown', message, span, ...replacing(span, near) };
}

function inBody({ name, span }: Call): CheckIssue {
  const message = `\`${name.name}\` in a named condition, which names no record; use it in the rule`;
  return { code: 'condition_scope', message, span };
}

function misplacedChange({ name, span }: Call, { action }: CheckerPlace): CheckIssue {
  const message = `\`${name.name}\` in a rule for ${action}; only update has a record before and after`;
  return { code: 'change_misplaced', message, span };
}
