import { readdirSync } from 'node:fs';

/** The names of the policy tests in the folder of a schema. */
export const policyTestsIn = (folder: string): readonly string[] =>
  readdirSync(folder)
    .filter((name) => name.endsWith('.policy.yaml'))
    .toSorted();
