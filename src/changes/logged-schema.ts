/** The schema as the readers of the log know it: the shapes of its tables, and a digest of the rules that decide. */
import { canonical, canonicalKey } from '../policy/analyse/canonical.ts';
import type { Policy } from '../policy/types.ts';
import { loggedTablesOf } from '../schema/model/logged-tables.ts';
import type { Schema } from '../schema/model/model.ts';
import { loggedShape, shortDigest } from '../schema/model/stored-names.ts';

/** The shapes by source. An entry of another shape was written under another schema. */
export const loggedShapesOf = (schema: Schema): ReadonlyMap<string, string> =>
  new Map([...loggedTablesOf(schema).values()].map((each) => [each.source, loggedShape(each)]));

/** The text of a rule only names the conditions that it calls. */
const meaningOf = (rules: readonly Policy[]): readonly string[] =>
  rules.map(({ checked }) => canonicalKey(canonical(checked)));

/** Changes with every rule of the feeds, and with the shape of the tables. */
export function feedRulesDigest({ collections }: Schema, shapes: ReadonlyMap<string, string>): string {
  const rules = [...collections.values()].map(({ name, access, memberAccess, feed }) => [
    name,
    feed !== undefined,
    meaningOf(access.list),
    meaningOf(access.read),
    [...memberAccess].map(([member, { read = [] }]) => [member, meaningOf(read)]),
  ]);
  return shortDigest(JSON.stringify([rules, [...shapes]]));
}
