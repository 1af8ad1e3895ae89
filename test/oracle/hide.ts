/** The visible part of a database: hidden records are missing, and masked members of the others are null. */
import type { Catalog, Checked, PolicyRequest, Row } from '../../src/policy/types.ts';
import { type Data, relatedOf } from './database.ts';
import { interpret } from './interpret.ts';

/** A record is readable where one of its rules is true. */
export interface ReadRules {
  readonly records: ReadonlyMap<string, readonly Checked[]>;
  /** Collection → member → its rules, for members that have some. */
  readonly members: ReadonlyMap<string, ReadonlyMap<string, readonly Checked[]>>;
}
export interface Seen {
  /** The readable records and members. */
  readonly data: Data;
  /** A record as the caller sees it, where it is shown for another reason than the read rule. */
  masked(collection: string, row: Row): Row;
  /** The members of a record that the caller may not read. */
  hiddenIn(collection: string, row: Row): readonly string[];
}

export function hide(
  catalog: Catalog,
  stored: Data,
  { rules, request }: { rules: ReadRules; request: PolicyRequest },
): Seen {
  const related = relatedOf(catalog, stored);
  const allows = (policies: readonly Checked[], record: Row): boolean =>
    policies.some((policy) => interpret(policy, { record, related, request }) === true);
  const hiddenIn = (collection: string, row: Row): readonly string[] =>
    [...(rules.members.get(collection) ?? [])].flatMap(([name, policies]) => (allows(policies, row) ? [] : [name]));
  const masked = (collection: string, row: Row): Row => ({
    ...row,
    ...Object.fromEntries(hiddenIn(collection, row).map((member) => [member, null])),
  });
  const readable =
    (collection: string) =>
    (row: Row): boolean =>
      allows(rules.records.get(collection) ?? [], row);
  const rows = new Map(
    [...stored.rows].map(([name, all]) => [name, all.filter(readable(name)).map((row) => masked(name, row))] as const),
  );
  const links = new Map<string, (readonly [string, string])[]>();
  for (const { relations } of catalog.collections.values()) {
    for (const relation of relations.values()) {
      if (relation.kind !== 'many_to_many') continue;
      const targets = new Set(rows.get(relation.collection)!.map(({ id }) => id));
      const pairs = stored.links.get(relation.linkTable)!;
      links.set(
        relation.linkTable,
        pairs.filter(([, target]) => targets.has(target)),
      );
    }
  }
  return { data: { rows, links }, masked, hiddenIn };
}
