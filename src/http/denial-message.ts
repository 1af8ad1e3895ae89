/** The messages of rules, for callers whom they deny an action: of the only rule that could have allowed it. */
import type { Policy, PolicyRequest } from '../policy/types.ts';

/**
 * Undefined: several rules could have allowed it, or the only one has no message. If the request alone denies every rule,
 * rules for other roles than the caller's count only where all rules are.
 */
export function denialMessage(rules: readonly Policy[], request: PolicyRequest): string | undefined {
  const open = rules.filter((rule) => rule.specialise(request).verdict !== 'deny');
  const ofRoles = rules.filter((rule) => isForRoles(rule, request));
  const [only, other] = [open, ofRoles, rules].find((some) => some.length > 0) ?? [];
  return other === undefined ? only?.message : undefined;
}

function isForRoles({ parts: { roles } }: Policy, { auth }: PolicyRequest): boolean {
  const own = auth?.roles;
  return roles.length === 0 || (Array.isArray(own) && roles.some((role) => own.includes(role)));
}
