/** The rules of a question that the schema does not have, such as those of an editor: of an action, or of a member. */
import type { Action, Policy } from '../policy/types.ts';
import { echo, textPlace } from '../problem.ts';
import { type Data, isObject } from '../records/write/input.ts';
import type { Collection, Schema } from '../schema/model/model.ts';
import { compileDraft, type DraftRule, type RuleSetName } from '../schema/rules/draft-rules.ts';
import type { ReportAsked } from './principal.ts';

interface DraftedRulesPlace {
  readonly schema: Schema;
  readonly collection: Collection;
  readonly action: Action;
}

/** `rules`: an expression, or a list of rules. Undefined: the question has none, or an error was reported. */
export function readDraftedRules(
  { rules }: Data,
  { schema, collection: { name }, action }: DraftedRulesPlace,
  report: ReportAsked,
): readonly Policy[] | undefined {
  const given = typeof rules === 'string' ? [{ when: rules }] : rules;
  if (given === undefined) return undefined;
  if (!Array.isArray(given) || !given.every(isDraftRule))
    return report('/rules', 'wrong_type', 'expected an expression, or a list of {"roles": […], "when": "…"}');
  const { policies, issues } = compileDraft(given, { schema, collection: name, action });
  for (const { index, code, message, issue } of issues) {
    const pointer = typeof rules === 'string' ? '/rules' : `/rules/${index}`;
    if (issue === undefined) report(pointer, code, message);
    else report(typeof rules === 'string' ? pointer : `${pointer}/when`, code, message, textPlace(issue));
  }
  return issues.length > 0 ? undefined : policies;
}

const isDraftRule = (given: unknown): given is DraftRule =>
  isObject(given) &&
  Object.keys(given).every((key) => key === 'roles' || key === 'when') &&
  (given.when === undefined || typeof given.when === 'string') &&
  (given.roles === undefined || (Array.isArray(given.roles) && given.roles.every((role) => typeof role === 'string')));

/** `member`: a field or a belongs_to, which is read or updated by rules of its own. */
export function readRuleSetName(
  { member }: Data,
  { collection, action }: DraftedRulesPlace,
  report: ReportAsked,
): RuleSetName {
  if (member === undefined) return { action };
  if (!hasMember(collection, member)) report('/member', 'unknown_member', unknownMemberText(collection, member));
  if (action !== 'read' && action !== 'update') report('/action', 'unexpected_key', 'a member is read or updated');
  return { action, member: String(member) };
}

export function reportUnknownMembers(
  members: readonly string[],
  { collection, action }: DraftedRulesPlace,
  report: ReportAsked,
): void {
  for (const [i, member] of members.entries())
    if (!hasMember(collection, member))
      report(`/members/${i}`, 'unknown_member', unknownMemberText(collection, member));
  if (members.length > 0 && (action === 'create' || action === 'delete'))
    report('/action', 'unexpected_key', `a ${action} decides about whole records`);
}

const hasMember = ({ fields, relations }: Collection, member: unknown): boolean =>
  typeof member === 'string' && (fields.has(member) || relations.get(member)?.kind === 'belongs_to');

const unknownMemberText = ({ name }: Collection, member: unknown): string =>
  `\`${name}\` has no field or belongs_to \`${echo(String(member))}\``;
