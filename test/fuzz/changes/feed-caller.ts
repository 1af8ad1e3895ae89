/** A user who subscribes, without a session. */
import type { Permit } from '../../../src/policy/access.ts';
import type { Policy, Row } from '../../../src/policy/types.ts';
import type { AccessContext } from '../../../src/records/records.ts';
import type { Schema } from '../../../src/schema/model/model.ts';
import type { FeedModules } from './feed-modules.ts';

export type CallerAuth = Row & { readonly id: string };

export const callersOf = (
  schema: Schema,
  auths: readonly CallerAuth[],
  decide: FeedModules['decide'],
): readonly FeedCaller[] => auths.map((auth) => new FeedCaller(schema, auth, decide));

export class FeedCaller {
  readonly id: string;
  /** Changes with the roles and the own fields. */
  version = 0;
  readonly #schema: Schema;
  #auth: CallerAuth;
  readonly #decide: FeedModules['decide'];

  constructor(schema: Schema, auth: CallerAuth, decide: FeedModules['decide']) {
    this.#decide = decide;
    this.id = auth.id;
    this.#schema = schema;
    this.#auth = auth;
  }

  get auth(): CallerAuth {
    return this.#auth;
  }

  /** Gives the caller other roles or own fields. */
  become(auth: CallerAuth): void {
    this.#auth = auth;
    this.version++;
  }

  ask(collection: string): AccessContext {
    const { collections } = this.#schema;
    const now = '2026-11-21T09:00:00.000000Z';
    const request = { auth: this.#auth, query: {}, now };
    const known = new Map<readonly Policy[], Permit>();
    const decided = (rules: readonly Policy[]): Permit => {
      const permit = known.get(rules) ?? this.#decide({ rules, request });
      known.set(rules, permit);
      return permit;
    };
    return {
      collection: collections.get(collection)!,
      permit: (name, action) => decided(collections.get(name)!.access[action]),
      member: (name, member, action) => {
        const rules = collections.get(name)!.memberAccess.get(member)?.[action];
        return rules && decided(rules);
      },
      violation: (_, { violated }, action) => decided(violated[action]),
      prospect: () => ({ certain: decided([]), possible: decided([]) }),
      auth: this.#auth,
      kind: 'user',
      principal: this.id,
      now,
    };
  }
}
