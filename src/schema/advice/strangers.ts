/** The access of strangers: callers without an account, and those who have just registered. */
import { GUEST, roleTest } from '../../policy/check/guests.ts';
import type { Checked, CheckedCompare } from '../../policy/types.ts';
import type { Collection, Schema } from '../model/model.ts';

/** The roles of a caller who registers, or has no account. */
export function registeredRoles({ roles, register }: Pick<Schema, 'roles' | 'register'>): ReadonlySet<string> {
  return new Set([GUEST, ...register.roles.flatMap((name) => [name, ...(roles.get(name)?.includes ?? [])])]);
}

/** Strangers can read some of its records; a reference to any other is rejected. */
export const isPublic = ({ access }: Collection, roles: ReadonlySet<string>): boolean =>
  access.read.some(({ checked }) => opensTo(checked, roles, true));

/**
 * True if the roles of registration are sufficient; the rest of the rule counts as met.
 * @param isUnrelated the record is unrelated to the caller, which decides a part of the rest
 */
export function opensTo(checked: Checked, roles: ReadonlySet<string>, isUnrelated = false): boolean {
  switch (checked.kind) {
    case 'const':
      return checked.value;
    case 'and':
      return checked.items.every((item) => opensTo(item, roles, isUnrelated));
    case 'or':
      return checked.items.some((item) => opensTo(item, roles, isUnrelated));
    case 'compare':
      return roleTest(checked, roles) ?? !(isUnrelated && tiesCaller(checked));
    case 'quantified':
      if (!isUnrelated || checked.quantifier !== 'any') return true;
      // Records in the caller's own relations are related.
      return checked.path.scope.kind !== 'request' && opensTo(checked.condition, roles, isUnrelated);
    case 'not':
    case 'is null':
    case 'changed':
      return true;
  }
}

/** The caller is compared with the record. */
function tiesCaller({ op, left, right }: CheckedCompare): boolean {
  if (op !== '=' && op !== 'in' && op !== 'contains') return false;
  const kinds = [left, right].map((operand) => (operand.kind === 'request' ? operand.source : operand.kind));
  return kinds.includes('auth') && kinds.includes('column');
}
