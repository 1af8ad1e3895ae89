/** Roles that include others. */
import type { Schema } from './model.ts';

/** The same as a session has them: without a second factor, the roles that require one are left out. */
export function rolesOfSession(
  schema: Pick<Schema, 'roles' | 'secondFactorRoles'>,
  given: readonly string[],
  secondFactor: boolean,
): readonly string[] {
  const all = effectiveRoles(schema, given);
  return secondFactor ? all : all.filter((name) => !schema.secondFactorRoles.has(name));
}

/** The given roles and all that they include. A role that the schema no longer declares gives nothing. */
export function effectiveRoles({ roles }: Pick<Schema, 'roles'>, given: readonly string[]): readonly string[] {
  const all = new Set<string>();
  for (const name of given) {
    const role = roles.get(name);
    if (role === undefined) continue;
    all.add(name);
    for (const included of role.includes) all.add(included);
  }
  return [...all];
}
