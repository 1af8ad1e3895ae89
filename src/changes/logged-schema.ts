/** The schema as the readers of the log know it: the shapes of its tables, and digests of the rules that decide. */

import { memoizedBy } from '../memoized.ts';
import { canonical, canonicalKey } from '../policy/analyse/canonical.ts';
import type { Policy } from '../policy/types.ts';
import { feedGrounds, loggedTablesOf } from '../schema/model/logged-tables.ts';
import type { Collection, Schema } from '../schema/model/model.ts';
import { loggedShape, shortDigest } from '../schema/model/stored-names.ts';
import type { FeedRequest } from './subscriber.ts';

/** The shapes by source. An entry of another shape was written under another schema. */
export const loggedShapesOf = (schema: Schema): ReadonlyMap<string, string> =>
  new Map([...loggedTablesOf(schema).values()].map((each) => [each.source, loggedShape(each)]));

/** The text of a rule only names the conditions that it calls. */
const meaningOf = (rules: readonly Policy[]): readonly string[] =>
  rules.map(({ checked }) => canonicalKey(canonical(checked)));

/** Changes with every rule that decides which records of the collection, and which of their members, a caller sees. */
const rulesDigestOf = memoizedBy(({ access, memberAccess }: Collection): string => {
  const ofMembers = [...memberAccess].map(([member, { read = [] }]) => [member, meaningOf(read)]);
  return shortDigest(JSON.stringify([meaningOf(access.list), meaningOf(access.read), ofMembers]));
});

type RuledFeed = Pick<FeedRequest, 'collection' | 'filters'>;

/** The digests of what feeds depend on: the events before and after a change of one show different records. */
export class FeedRules {
  readonly #schema: Schema;
  readonly #shapes: ReadonlyMap<string, string>;
  /** Digests of feeds without a filter, by collection. */
  readonly #known = new Map<string, string>();

  /** @param shapes by source */
  constructor(schema: Schema, shapes: ReadonlyMap<string, string>) {
    this.#schema = schema;
    this.#shapes = shapes;
  }

  /** Changes with every rule that decides what the feed shows, and with the shape of every table that it reads. */
  digestOf({ collection, filters }: RuledFeed): string {
    if (filters.length > 0) return this.#made({ collection, filters });
    const known = this.#known.get(collection.name);
    if (known !== undefined) return known;
    const made = this.#made({ collection, filters });
    this.#known.set(collection.name, made);
    return made;
  }

  #made({ collection, filters }: RuledFeed): string {
    const { owners, tables } = feedGrounds(collection, filters, this.#schema);
    const rules = [...owners].map((name) => [name, rulesDigestOf(this.#schema.collections.get(name)!)]);
    const sources = new Set(tables.map(({ source }) => source));
    const shapes = [...sources].map((source) => [source, this.#shapes.get(source)]);
    return shortDigest(JSON.stringify([rules, shapes]));
  }
}
