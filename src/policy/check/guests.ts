/** The view of guests: callers with one role and nothing else, whom a schema may admit. */
import { OPERATORS } from '../operators.ts';
import type { Checked, CheckedCompare } from '../types.ts';
import { isOfCaller, isRolesOfCaller } from '../visit.ts';
import { type Outcomes, outcomes } from './outcomes.ts';

/** The role of every guest. */
export const GUEST = 'guest';
/** The caller that policies see of every guest. */
export const GUEST_ROW = Object.freeze({ roles: Object.freeze([GUEST]) });
const GUEST_ROLES: ReadonlySet<string> = new Set([GUEST]);

/** The possible results of a condition for a guest: never too few, sometimes too many. */
export const outcomesForGuest = (checked: Checked): Outcomes =>
  outcomes(withRoles(checked, GUEST_ROLES), {
    isAbsent: (operand) => isOfCaller(operand) && operand.name !== 'roles',
    isBounded: false,
  });

/** Replaces each test of a role by its result for a caller who has exactly these. */
function withRoles(checked: Checked, roles: ReadonlySet<string>): Checked {
  switch (checked.kind) {
    case 'and':
    case 'or':
      return { ...checked, items: checked.items.map((item) => withRoles(item, roles)) };
    case 'not':
      return { ...checked, item: withRoles(checked.item, roles) };
    case 'quantified':
      return { ...checked, condition: withRoles(checked.condition, roles) };
    case 'compare': {
      const value = roleTest(checked, roles);
      return value === undefined ? checked : { kind: 'const', value, span: checked.span };
    }
    case 'const':
    case 'is null':
    case 'changed':
      return checked;
  }
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

/** The tests that a guest passes for lack of a role, such as `not (@request.auth.roles contains "x")`. */
export function passedByGuests(checked: Checked, negated = false): readonly Checked[] {
  switch (checked.kind) {
    case 'and':
    case 'or':
      return checked.items.flatMap((item) => passedByGuests(item, negated));
    case 'not':
      return passedByGuests(checked.item, !negated);
    case 'quantified':
      return passedByGuests(checked.condition, negated !== (checked.quantifier === 'none'));
    case 'compare': {
      const isOther = testedRole(checked) !== GUEST;
      return isOther && roleTest(checked, GUEST_ROLES) === !negated ? [checked] : [];
    }
    case 'const':
    case 'is null':
    case 'changed':
      return [];
  }
}
