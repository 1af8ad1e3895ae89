/**
 * Role assignment: `roles: { set, add, remove }` of a user. For each role given or taken the caller
 * needs a role that assigns it; update rules play no part.
 */
import { hintOf, nearest } from '../../../grammar/suggest.ts';
import type { Transaction } from '../../database/contract.ts';
import type { Row } from '../../policy/types.ts';
import { type ErrorDetail, echo } from '../../problem.ts';
import { forbidden } from '../../refusal.ts';
import type { Schema } from '../../schema/model/model.ts';
import { param, sql, uuid } from '../../sql.ts';
import type { Reading } from '../access-context.ts';

export interface RolesChange {
  readonly set: readonly string[] | undefined;
  readonly add: readonly string[];
  readonly remove: readonly string[];
  readonly pointer: string;
}

export function readRolesChange(
  operation: Readonly<Record<string, unknown>>,
  pointer: string,
  errors: ErrorDetail[],
): RolesChange {
  const list = (key: string): readonly string[] | undefined => {
    const value = operation[key];
    if (value === undefined) return undefined;
    if (Array.isArray(value) && value.every((item) => typeof item === 'string')) return value;
    errors.push({ pointer: `${pointer}/${key}`, code: 'wrong_type', detail: 'expected a list of role names' });
    return [];
  };
  return { set: list('set'), add: list('add') ?? [], remove: list('remove') ?? [], pointer };
}

/**
 * Errors for names that are not roles of the schema. A role that was dropped from the schema can
 * still be removed.
 */
export function unknownRoles(schema: Schema, { set, add, pointer }: RolesChange): readonly ErrorDetail[] {
  const errors = (names: readonly string[], key: string) =>
    names.flatMap((name, i) => unknownRole(schema, name, `${pointer}/${key}/${i}`));
  return [...errors(set ?? [], 'set'), ...errors(add, 'add')];
}

/** The error of a name at `pointer` that is not a role of the schema. */
export function unknownRole({ roles }: Schema, name: string, pointer: string): readonly ErrorDetail[] {
  if (roles.has(name)) return [];
  const detail = `unknown role \`${echo(name)}\`${hintOf(nearest(name, roles.keys()))}`;
  return [{ pointer, code: 'unknown_role', detail }];
}

/** True if the body of an update of a user assigns roles. */
export const asksForRoles = (data: Row): boolean => Object.hasOwn(data, 'roles');
/** Such an update needs no update rule. */
export const asksForRolesAlone = (data: Row): boolean => asksForRoles(data) && Object.keys(data).length === 1;

/** True if the caller has any role that assigns one. */
export function mayAssignSome(schema: Schema, auth: Row): boolean {
  return ownRolesOf(auth).some((name) => name === 'admin' || (schema.roles.get(name)?.assigns.length ?? 0) > 0);
}

/** True if the caller has the role that may see and assign all. */
export const isAdministrator = (auth: Row): boolean => ownRolesOf(auth).includes('admin');

const ownRolesOf = (user: Row): readonly string[] => (Array.isArray(user.roles) ? user.roles : []);

/** @param auth the caller */
export function mayAssign(schema: Schema, auth: Row, role: string): boolean {
  return ownRolesOf(auth).some((name) => name === 'admin' || schema.roles.get(name)?.assigns.includes(role));
}

/** The roles after the change. Throws `forbidden` if the caller may not assign one that changes. */
export function rolesAfter(
  { store: { schema }, access }: Pick<Reading, 'store' | 'access'>,
  before: readonly string[],
  change: RolesChange,
): readonly string[] {
  const after = new Set([...(change.set ?? before), ...change.add]);
  for (const role of change.remove) after.delete(role);
  const changed = [...after.symmetricDifference(new Set(before))];
  if (!changed.every((role) => mayAssign(schema, access.auth, role))) throw forbidden();
  return [...after].sort();
}

export async function writeRoles(tx: Transaction, userId: string, roles: readonly string[]): Promise<void> {
  await tx.run(sql`
    UPDATE users
       SET roles = ${param('text[]', roles)}
     WHERE id = ${uuid(userId)}`);
}
