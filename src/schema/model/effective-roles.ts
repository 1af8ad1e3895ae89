/** Roles that include others. */
import type { Schema } from './model.ts';

/** The given roles and all that they include. A role that the schema no longer declares gives nothing. */
export function effectiveRoles({ roles }: Schema, given: readonly string[]): readonly string[] {
  const all = new Set<string>();
  for (const name of given) {
    const role = roles.get(name);
    if (role === undefined) continue;
    all.add(name);
    for (const included of role.includes) all.add(included);
  }
  return [...all];
}
