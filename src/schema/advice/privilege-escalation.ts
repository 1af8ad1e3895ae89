/**
 * Policies that trust a field of the caller which that caller may set: users could grant themselves
 * what it gives.
 */
import { canonical } from '../../policy/analyse/canonical.ts';
import { provenPins } from '../../policy/analyse/routing.ts';
import { ACTIONS, type Checked, type Policy } from '../../policy/types.ts';
import { allOperandsOf, everyBranch, isOfCaller, memberName } from '../../policy/visit.ts';
import type { DocumentPath } from '../file/issue.ts';
import type { Collection } from '../model/model.ts';
import { type AdviceContext, memberRulePlace, type PlacedPolicy, rulePlace } from './read-access.ts';

export function warnOfPrivilegeEscalation(collections: ReadonlyMap<string, Collection>, context: AdviceContext): void {
  const users = collections.get('users');
  if (users === undefined) return;
  for (const collection of collections.values()) {
    for (const { policy, path } of placedPolicies(collection, context)) {
      const names = [...trustedFields(policy.checked)].filter((name) => isChosenByUser(name, users));
      const tenants = tenantFields(policy.checked, collection);
      for (const name of names) reportEscalation(name, { ...context, path, isTenant: tenants.has(name) });
    }
  }
}

/** The rules of the records, then those of their members. The rules of a `view` come once. */
export function* placedPolicies(
  { name, access, memberAccess, softDelete }: Collection,
  context: AdviceContext,
): Iterable<PlacedPolicy> {
  for (const action of ACTIONS) {
    // A `view` is one list of rules for both.
    if (action === 'read' && access.read === access.list) continue;
    for (const [index, policy] of access[action].entries())
      yield { policy, path: rulePlace({ collection: name, action, index }, context) };
  }
  for (const [index, policy] of (softDelete?.restore ?? []).entries())
    yield { policy, path: rulePlace({ collection: name, action: 'restore', index }, context) };
  for (const [member, { read = [], update = [] }] of memberAccess) {
    for (const [index, policy] of read.entries())
      yield { policy, path: memberRulePlace({ collection: name, member, key: 'read', index }, context) };
    for (const [index, policy] of update.entries())
      yield { policy, path: memberRulePlace({ collection: name, member, key: 'write', index }, context) };
  }
}

/** The fields of the caller by which the rule finds the tenant of a distributed collection. */
function tenantFields(checked: Checked, { tenantLayout }: Collection): ReadonlySet<string> {
  if (tenantLayout?.kind !== 'by') return new Set();
  const pins = provenPins(checked, tenantLayout.by);
  return new Set(pins.flatMap((pin) => (isOfCaller(pin) ? [pin.name] : [])));
}

interface EscalationPlace extends AdviceContext {
  readonly path: DocumentPath;
  /** The field says which tenant's records are meant. */
  readonly isTenant: boolean;
}

function reportEscalation(name: string, { source, path, isTenant }: EscalationPlace): void {
  const effect = isTenant ? ', so that they choose the tenant whose records it gives' : '';
  const message =
    `this rule trusts \`@request.auth.${name}\`, which users may change themselves${effect}; let the update rule of \`users\` ` +
    `keep it (\`@next.${name} = @record.${name}\`), or require a role`;
  const severity = isTenant ? 'error' : 'warning';
  source.report({ code: 'self_chosen', severity, message, path: source.conditionPath(path) });
}

/**
 * Some update rule of `users` lets a user without a certain role set it, and does not check the new
 * value.
 */
function isChosenByUser(name: string, users: Collection): boolean {
  const member = users.fields.get(name) ?? users.relations.get(name);
  if (member === undefined || ('readOnly' in member && member.readOnly)) return false;
  const isOpen = ({ checked }: Policy): boolean => !everyBranch(checked, comparesRoles) && !looksAtNext(name, checked);
  const own = users.memberAccess.get(name)?.update;
  return users.access.update.some(isOpen) && (own === undefined || own.some(isOpen));
}

const comparesRoles = (part: Checked): boolean => part.kind === 'compare' && trustedFields(part).has('roles');

/** `@next.level = …`, `not changed(@record.level)` */
function looksAtNext(name: string, checked: Checked): boolean {
  return (
    everyBranch(canonical(checked), (part) => keeps(name, part)) ||
    allOperandsOf(checked).some(
      (operand) =>
        operand.kind === 'column' &&
        operand.scope.kind === 'next' &&
        operand.column.kind !== 'id' &&
        memberName(operand.column) === name,
    )
  );
}

/** Requires that the member stays as it is. */
const keeps = (name: string, part: Checked): boolean =>
  part.kind === 'changed' && part.unchanged && part.members.some((member) => memberName(member) === name);

const trustedFields = (checked: Checked): ReadonlySet<string> =>
  new Set(
    allOperandsOf(checked)
      .filter(isOfCaller)
      .map(({ name }) => name),
  );
