/** The access of a role by its rules alone. */
import type { ServedCollection, ServedRule, ServedSchema } from '../../data/schema-answer.ts';
import type { PolicyTools } from '../../editor/load-editor.ts';
import type { RoleVerdict } from '../../editor/policy-tools.ts';
import type { RuleAction } from '../policies/rule-sets.ts';

export interface RoleAccess {
  readonly verdict: RoleVerdict;
  /** The conditions of the rules that the record decides. */
  readonly conditions: readonly string[];
}
export interface AskedRole {
  readonly name: string;
  /** With what it includes; empty: a guest. */
  readonly roles: readonly string[];
}

export function askedRoles({ roles = [], catalog }: ServedSchema): readonly AskedRole[] {
  const named = roles.map(({ name, includes }) => ({ name, roles: [name, ...includes] }));
  return [...named, ...(catalog?.guests === true ? [{ name: 'guest', roles: [] }] : [])];
}

interface AccessQuestion {
  readonly served: ServedSchema;
  readonly collection: ServedCollection;
  readonly action: RuleAction;
}

export function roleAccess(
  tools: PolicyTools,
  { roles }: AskedRole,
  { served, collection, action }: AccessQuestion,
): RoleAccess {
  const rules = collection.rules?.[action] ?? [];
  const found = rules
    .filter((rule) => isForRole(rule, roles))
    .map(({ when }) => ({ when, verdict: verdictOfRule(when) }));
  if (found.some(({ verdict }) => verdict === 'allow')) return { verdict: 'allow', conditions: [] };
  const open = found.filter(({ verdict }) => verdict === 'depends');
  return { verdict: open.length === 0 ? 'deny' : 'depends', conditions: open.flatMap(({ when = '' }) => when) };

  function verdictOfRule(when: string | undefined): RoleVerdict {
    if (when === undefined) return 'allow';
    return tools.verdictOf(when, roles, { catalog: served.catalog!, collection: collection.name, action });
  }
}

const isForRole = (rule: ServedRule, roles: readonly string[]): boolean =>
  rule.roles.length === 0 ||
  rule.roles.some((role) => roles.includes(role) || (role === 'guest' && roles.length === 0));
