/** Random list rules for the feeds, by the generators of the other fuzzes. */

import { parse } from '../../../grammar/parser.ts';
import type { Row } from '../../../src/policy/types.ts';
import type { Schema } from '../../../src/schema/model/model.ts';
import { PolicyMaker } from '../policies/policies.ts';
import { spell } from '../policies/speller.ts';
import { BranchyRules } from '../query/branchy-rules.ts';
import type { Random } from '../random.ts';
import type { FeedModules } from './feed-modules.ts';
import { COLLECTION, feedSchema } from './feed-schema.ts';

/** The values that rules compare with, which random writes store too. */
const VALUES: Readonly<Record<string, readonly Row[]>> = {
  memberships: ['full', 'banned'].map((kind) => ({ kind })),
  tags: ['a', 'b', 'c'].map((name) => ({ name })),
  [COLLECTION]: [0, 1, 2, 3, 4, 5].map((n) => ({ n, label: ['a', 'b', 'bc'][n % 3], secret: n > 2 ? 's1' : 's2' })),
};

export class RandomPolicies {
  readonly #parseSchema: FeedModules['parseSchema'];
  readonly #schema: Schema;
  readonly #ids: ReadonlyMap<string, readonly string[]>;
  readonly #random: Random;

  /** @param ids the records that rules may name */
  constructor({ parseSchema }: FeedModules, ids: Readonly<Record<string, readonly string[]>>, random: Random) {
    this.#parseSchema = parseSchema;
    this.#schema = parseSchema(feedSchema(['true'])).schema!;
    this.#random = random;
    this.#ids = new Map(
      [...this.#schema.collections.keys()].map((name) => [name, ids[name] ?? [random.uuid(), random.uuid()]]),
    );
  }

  make(count: number): readonly string[] {
    return Array.from({ length: count }, () => this.#one());
  }

  /** Draws again where the schema refuses the rule. */
  #one(): string {
    for (let left = 300; left > 0; left--) {
      const policy = this.#random.chance(0.6) ? this.#branchy() : this.#any();
      if (this.#isAccepted(policy)) return policy;
    }
    throw new Error('the schema of the feeds refuses each random policy');
  }

  /** Time alone makes no event, so a copy does not follow a rule about `@now`. No write changes `created_at`. */
  #isAccepted(policy: string): boolean {
    return !/@now|_at is null/.test(policy) && this.#parseSchema(feedSchema([policy])).schema !== undefined;
  }

  #branchy(): string {
    const rows = [...this.#schema.collections.keys()].map((name) => {
      const ids = this.#ids.get(name)!;
      return [
        name,
        (VALUES[name] ?? ids.map(() => ({}))).map((row, i) => ({ id: ids[i % ids.length], ...row })),
      ] as const;
    });
    const data = { rows: new Map(rows), links: new Map() };
    return new BranchyRules(this.#schema, data, this.#random).make(COLLECTION);
  }

  #any(): string {
    const setting = { catalog: this.#schema, collection: COLLECTION, action: 'list' } as const;
    const made = new PolicyMaker(setting, { random: this.#random, ids: this.#ids }).make();
    const text = spell(made, this.#random, true);
    return parse(text).expr === undefined ? this.#any() : text;
  }
}
