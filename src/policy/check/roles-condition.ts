/** The `roles` of a rule, as a checked tree. */
import { HOLDS } from '../operators.ts';
import type { Checked } from '../types.ts';
import { ofCaller } from '../visit.ts';

/** A condition in the policy language, and its checked tree, whose spans point into that text. */
export interface RolesCondition {
  readonly text: string;
  readonly checked: Checked;
}

const CALLER_ROLES = '@request.auth.roles';

/**
 * True for a caller who has any of these roles. `start` is added to every span. INVARIANT: there is
 * at least one.
 */
export function hasAnyRole(roles: readonly string[], start = 0): RolesCondition {
  let text = '';
  const items = roles.map((role, i): Checked => {
    if (i > 0) text += ' or ';
    const literal = JSON.stringify(role);
    const at = start + text.length;
    text += `${CALLER_ROLES} ${HOLDS} ${literal}`;
    const end = start + text.length;
    return {
      kind: 'compare',
      op: HOLDS,
      left: { ...ofCaller('roles', { start: at, end: at + CALLER_ROLES.length }), type: 'string', list: true },
      right: { kind: 'literal', value: role, type: 'string', list: false, span: { start: end - literal.length, end } },
      span: { start: at, end },
    };
  });
  const [only] = items;
  const span = { start, end: start + text.length };
  return { text, checked: items.length === 1 && only ? only : { kind: 'or', items, span } };
}
