/** Guests: callers who are not signed in, of a schema with `guests: true`. */
import { GUEST } from '../../policy/check/guests.ts';
import type { Report } from '../file/issue.ts';
import type { SchemaFile } from '../file/shape.ts';
import type { Role } from './model.ts';

/** The roles that policies may name: with guests, their role too, which is not declared and never given. */
export function rolesOfPolicies(
  { guests }: SchemaFile,
  roles: ReadonlyMap<string, Role>,
  report: Report,
): ReadonlyMap<string, unknown> {
  if (guests !== true) return roles;
  if (roles.has(GUEST)) {
    const message =
      `with \`guests: true\`, \`${GUEST}\` is the role of callers who are not signed in, which is never given; ` +
      'give the declared role another name';
    report({ code: 'reserved_role', message, path: ['guests'] });
  }
  return new Map<string, unknown>([...roles, [GUEST, { name: GUEST }]]);
}
