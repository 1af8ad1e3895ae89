/** Questions that a page and the service both answer: policies of the fuzz, their callers and their records. */
import { GUEST_ROW } from '../../src/policy/check/guests.ts';
import { ACTIONS, type Action, type Catalog } from '../../src/policy/types.ts';
import { METHOD_OF } from '../../src/routes/explain/request-method.ts';
import { misspelt } from '../fuzz/frontend/frontend.ts';
import { PolicyMaker } from '../fuzz/policies/policies.ts';
import { spell } from '../fuzz/policies/speller.ts';
import { ROLES } from '../fuzz/policies/world.ts';
import type { Random } from '../fuzz/random.ts';
import { type AnsweredRecords, NestedRecords } from './nested-records.ts';

type Json = Readonly<Record<string, unknown>>;

/** As the service is asked, and as a policy sees the caller. */
interface DrawnCaller {
  readonly asked: unknown;
  readonly auth: Json;
  readonly kind: 'user' | 'guest';
}
export interface DrawnQuestion {
  readonly collection: string;
  readonly action: Action;
  readonly text: string;
  readonly callers: readonly DrawnCaller[];
  readonly facts: { readonly ip: string; readonly method: string };
  /** Empty for a text that is spoilt. */
  readonly records: readonly Json[];
}

const LONGEST_TEXT = 4096;
/** A chain of ancestors below another one has a thousand records, and more. */
const MOST_CHARACTERS = 100_000;

export class QuestionMaker {
  readonly #catalog: Catalog;
  readonly #records: AnsweredRecords;
  readonly #nested: NestedRecords;
  readonly #random: Random;

  constructor(catalog: Catalog, records: AnsweredRecords, random: Random) {
    this.#catalog = catalog;
    this.#records = records;
    this.#nested = new NestedRecords(catalog, records);
    this.#random = random;
  }

  policies(count: number): readonly DrawnQuestion[] {
    return Array.from({ length: count }, () => this.#policy());
  }

  /** Texts of policies with random changes: most have errors. */
  spoilt(count: number): readonly DrawnQuestion[] {
    return this.policies(count).map((question) => ({
      ...question,
      text: misspelt(question.text, () => this.#random.next()).slice(0, LONGEST_TEXT),
      records: [],
    }));
  }

  #policy(): DrawnQuestion {
    const random = this.#random;
    const collection = random.pick([...this.#records.keys()]);
    const action = random.pick(ACTIONS);
    const ids = new Map([...this.#catalog.collections.keys()].map((name) => [name, this.#idsOf(name)]));
    const maker = new PolicyMaker({ catalog: this.#catalog, collection, action }, { random, ids });
    for (;;) {
      const expr = maker.make();
      const text = spell(expr, random, random.chance(0.5));
      const records = this.#nested.of(collection, expr);
      if (records === undefined || text.length > LONGEST_TEXT) continue;
      if (JSON.stringify(records).length > MOST_CHARACTERS) continue;
      const facts = { ip: '127.0.0.1', method: METHOD_OF[action] };
      return { collection, action, text, callers: this.#callers(), facts, records };
    }
  }

  /** The ids of the records, and one of none. */
  #idsOf(collection: string): readonly string[] {
    return [...(this.#records.get(collection) ?? []).map(({ id }) => String(id)), this.#random.uuid()];
  }

  #callers(): readonly DrawnCaller[] {
    const random = this.#random;
    const users = random.shuffled(this.#nested.alone('users')).slice(0, 2);
    const rows = users.map(({ created_at: _at, updated_at: _later, ...members }) => ({
      second_factor: random.chance(0.5),
      ...members,
      roles: ROLES.filter(() => random.chance(0.4)),
    }));
    const role = random.pick(ROLES);
    return [
      ...rows.map((row): DrawnCaller => ({ asked: row, auth: row, kind: 'user' })),
      { asked: role, auth: { second_factor: false, roles: [role] }, kind: 'user' },
      { asked: 'guest', auth: GUEST_ROW, kind: 'guest' },
    ];
  }
}
