/** Warns of checks of `users` that no registration passes: it has the address and the defaults alone. */
import { GUEST_ROW } from '../../policy/check/guests.ts';
import { NO_RELATED, type Policy, type PolicyRequest, type Row, STAMPS } from '../../policy/types.ts';
import { datetimeOf } from '../../policy/values.ts';
import { allOperandsOf, memberName } from '../../policy/visit.ts';
import type { Collection, Schema } from '../model/model.ts';
import { pathOfCheck } from '../rules/checks.ts';
import type { AdviceContext } from './read-access.ts';

/** Members whose values are of the registration itself. */
const OF_REGISTRATION: ReadonlySet<string> = new Set(['id', 'email', ...STAMPS]);

export function warnOfClosedRegistration(
  collections: ReadonlyMap<string, Collection>,
  register: Schema['register'],
  { source }: AdviceContext,
): void {
  const users = collections.get('users');
  if (users === undefined || !register.open || register.roles.length === 0) return;
  const visitor = { auth: GUEST_ROW, kind: 'guest', query: {}, now: datetimeOf(new Date()) } as const;
  const user = registeredUser(users, register.roles);
  for (const check of users.checks) {
    if (!check.violated.create.some((violation) => holdsFor(violation, user, visitor))) continue;
    const message =
      'nobody can register: a registration has the address and the defaults alone, from a caller who is not signed in, ' +
      'and fails this check; let null pass, give the fields a default, or set `open: false` in `register`';
    source.report({ code: 'registration_closed', severity: 'warning', message, path: pathOfCheck('users', check) });
  }
}

/** Returns true if the violation holds for every address, id and time. */
function holdsFor(violation: Policy, user: Row, visitor: PolicyRequest): boolean {
  const reads = allOperandsOf(violation.checked).some(
    (operand) =>
      operand.kind === 'column' &&
      operand.steps.length === 0 &&
      (operand.column.kind === 'id' || !Object.hasOwn(user, memberName(operand.column))),
  );
  if (reads) return false;
  const { verdict, test } = violation.specialise(visitor);
  return verdict === 'allow' || (verdict === 'depends' && test(user, NO_RELATED));
}

/** The members with one value in every registration. */
function registeredUser({ fields, relations }: Collection, roles: readonly string[]): Row {
  const user: Record<string, unknown> = { roles, email_verified: false };
  for (const { name, default: value } of fields.values())
    if (value?.kind !== 'now' && !OF_REGISTRATION.has(name) && name !== 'email_verified')
      user[name] = value?.kind === 'constant' ? value.value : null;
  for (const { name, kind } of relations.values()) user[name] = kind === 'many_to_many' ? [] : null;
  return user;
}
