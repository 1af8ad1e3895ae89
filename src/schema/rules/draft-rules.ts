/** Rules that no file holds yet, such as those of an editor → policies. They may call the conditions of the file. */

import type { PolicyIssue } from '../../../grammar/policy-error.ts';
import { memoizedBy } from '../../memoized.ts';
import { examineErrors } from '../../policy/check/checker.ts';
import type { Action, Catalog, Policy } from '../../policy/types.ts';
import { policyOf } from '../advice/read-access.ts';
import { readSchemaCatalog } from '../load.ts';
import type { Collection, MemberAction, Schema } from '../model/model.ts';

export interface DraftRule {
  readonly roles?: readonly string[] | undefined;
  readonly when?: string | undefined;
}
interface DraftIssue extends Pick<PolicyIssue, 'code' | 'message'> {
  /** The index of the rule. */
  readonly index: number;
  /** Given for an error in the text of `when`. */
  readonly issue?: PolicyIssue;
}
interface DraftPlace {
  readonly schema: Schema;
  readonly collection: string;
  readonly action: Action;
}

export interface RuleSetName {
  readonly action: Action;
  /** Given for rules of a field or a belongs_to. */
  readonly member?: string | undefined;
}

/** The collection with other rules in one of its sets. */
export function withRules(
  collection: Collection,
  { action, member }: RuleSetName,
  rules: readonly Policy[],
): Collection {
  const { access, memberAccess } = collection;
  if (member === undefined) return { ...collection, access: { ...access, [action]: rules } };
  const own = { ...memberAccess.get(member), [action satisfies Action as MemberAction]: rules };
  return { ...collection, memberAccess: new Map(memberAccess).set(member, own) };
}

/** The names of the served schema, with the conditions of its file. */
export const draftCatalogOf = memoizedBy((schema: Schema): Catalog => {
  const declared = readSchemaCatalog(schema.text, schema.file).catalog;
  return { ...schema, ...(declared?.conditions && { roles: declared.roles, conditions: declared.conditions }) };
});

/** The policies, or every error. */
export function compileDraft(rules: readonly DraftRule[], { schema, collection, action }: DraftPlace) {
  const catalog = draftCatalogOf(schema);
  const issues: DraftIssue[] = [];
  const policies = rules.flatMap(({ roles = [], when }, index): readonly Policy[] => {
    const report = (code: string, message: string): void => void issues.push({ index, code, message });
    if (roles.length === 0 && when === undefined) report('empty_rule', 'a rule needs `roles`, `when` or both');
    for (const role of roles) if (!catalog.roles.has(role)) report('unknown_role', `unknown role \`${role}\``);
    const examined = when === undefined ? undefined : examineErrors(when, { catalog, collection, action });
    for (const issue of examined?.issues ?? []) issues.push({ index, code: issue.code, message: issue.message, issue });
    if (issues.length > 0) return [];
    const condition = examined && { text: when!, checked: examined.checked! };
    return [policyOf([...new Set(roles)], condition, { catalog, action })];
  });
  return { policies, issues };
}
