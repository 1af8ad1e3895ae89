/** The view of guests: callers with one role and nothing else, whom a schema may admit. */
import { OPERATORS } from '../operators.ts';
import type { Checked, CheckedCompare } from '../types.ts';
import { isOfCaller, isRolesOfCaller, partsOf } from '../visit.ts';
import { type Outcomes, outcomes } from './outcomes.ts';

/** The role of every guest. */
export const GUEST = 'guest';
/** The caller that policies see of every guest, beside `guest`, the id of the session, which a publishable key has not. */
export const GUEST_ROW = Object.freeze({ roles: Object.freeze([GUEST]), second_factor: false });
const GUEST_ROLES: ReadonlySet<string> = new Set([GUEST]);

/** The possible results of a condition for a guest: never too few, sometimes too many. */
export const outcomesForGuest = (checked: Checked): Outcomes =>
  outcomes(checked, {
    isAbsent: (operand) => isOfCaller(operand) && operand.name !== GUEST && !Object.hasOwn(GUEST_ROW, operand.name),
    decide: guestTest,
    isBounded: false,
  });

/** The result of a test of roles, or of the second factor, for a guest; undefined: the comparison is another one. */
function guestTest(compare: CheckedCompare): boolean | undefined {
  const { op, left, right } = compare;
  if (!isOfCaller(left) || left.name !== 'second_factor' || right.kind !== 'literal')
    return roleTest(compare, GUEST_ROLES);
  return OPERATORS[op].holds(GUEST_ROW.second_factor, right.value, left.type);
}

/** The result of a test of the caller's roles for a literal; undefined: the comparison is another one. */
export function roleTest(compare: CheckedCompare, roles: ReadonlySet<string>): boolean | undefined {
  const role = testedRole(compare);
  return role === undefined ? undefined : roles.has(role) !== (OPERATORS[compare.op].negative === true);
}

/** The role that a list test looks for among those of the caller. */
function testedRole({ left, right }: CheckedCompare): string | undefined {
  const element = isRolesOfCaller(left) ? right : isRolesOfCaller(right) ? left : undefined;
  return element?.kind === 'literal' && typeof element.value === 'string' ? element.value : undefined;
}

/** The tests that a guest passes for lack of a role or a second factor, such as `not (@request.auth.roles contains "x")`. */
export function passedByGuests(checked: Checked, negated = false): readonly Checked[] {
  if (checked.kind === 'compare') {
    const isOther = testedRole(checked) !== GUEST;
    return isOther && guestTest(checked) === !negated ? [checked] : [];
  }
  const negates = checked.kind === 'not' || (checked.kind === 'quantified' && checked.quantifier === 'none');
  return partsOf(checked).flatMap((part) => passedByGuests(part, negated !== negates));
}
