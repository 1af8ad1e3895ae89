/** A random caller with random rules for every collection, and what the caller may see of a database. */
import type { Permit } from '../../../src/policy/access.ts';
import type { PolicyRequest, Related, Row } from '../../../src/policy/types.ts';
import type { AccessContext } from '../../../src/records/access-context.ts';
import type { Collection } from '../../../src/schema/model/model.ts';
import { type Data, type Id, relatedOf } from '../../oracle/database.ts';
import { hide, type Seen } from '../../oracle/hide.ts';
import { interpret } from '../../oracle/interpret.ts';
import { PLAIN, type Stocked } from '../doors/doors-world.ts';
import { allIds } from '../doors/keyed-schema.ts';
import { OWNED } from '../doors/owned-schema.ts';
import { callerOr, randomRequest } from '../policies/requests.ts';
import type { World } from '../policies/world.ts';
import type { Random } from '../random.ts';
import { filterOf, fitted } from './client-filters.ts';
import { meantBy, permitOf, type Rule, RuleMaker, type RuleSet } from './read-rules.ts';
import type { QueryDoors } from './store-modules.ts';

export interface StockedWorld {
  readonly stocked: Stocked;
  readonly data: Data;
  readonly doors: QueryDoors;
}

/** A database as the caller may see it. */
export interface Standing {
  readonly data: Data;
  readonly everything: Related;
  readonly seen: Seen;
  readonly visible: Related;
  /** The records that the list rule shows, as they are stored. */
  readonly listed: readonly Row[];
}

export class FuzzCaller {
  readonly collection: Collection;
  readonly rules: RuleSet;
  readonly request: PolicyRequest;
  readonly #world: StockedWorld;
  readonly #random: Random;
  readonly #maker: RuleMaker;
  readonly #ids: readonly Id[];

  constructor(world: StockedWorld, random: Random, request?: PolicyRequest) {
    const { data, doors, stocked } = world;
    const { schema } = stocked;
    this.#world = world;
    this.#random = random;
    const owned = schema.collections.has('parts') ? OWNED : [];
    this.collection = schema.collections.get(random.pick(['users', ...PLAIN, ...PLAIN, ...owned]))!;
    const ids = allIds(schema, data);
    this.#ids = [...ids.values()].flat();
    this.#maker = new RuleMaker({ catalog: schema, ids, random, compiler: doors.compiler });
    const { name } = this.collection;
    this.rules = this.#maker.make(name, (of) => [...schema.collections.get(of)!.memberAccess.keys()]);
    this.request = request ?? this.randomRequest();
  }

  randomRequest(): PolicyRequest {
    const { data, stocked } = this.#world;
    const setting = { catalog: stocked.schema, collection: this.collection.name, action: 'list' } as const;
    const world = { catalog: stocked.schema, data } as unknown as World;
    const request = randomRequest(world, setting, this.#random);
    return { ...request, ...callerOr(request, this.#random.pick(data.rows.get('users')!)) };
  }

  standing(data: Data): Standing {
    const { schema } = this.#world.stocked;
    const everything = relatedOf(schema, data);
    const seen = hide(schema, data, { rules: meantBy(this.rules), request: this.request });
    const listed = data.rows
      .get(this.collection.name)!
      .filter((record) => this.holds(this.rules.list, record, everything));
    return { data, everything, seen, visible: relatedOf(schema, seen.data), listed };
  }

  holds(rule: Rule, record: Row, related: Related): boolean {
    return rule.some(({ meant }) => interpret(meant, { record, related, request: this.request }) === true);
  }

  /** Undefined where no params were found that fit. */
  filter(collection: string) {
    const { stocked, doors } = this.#world;
    const written = filterOf(this.#maker.maker(collection).make());
    if (written === undefined || written.text.length > 4096) return undefined;
    const place = { catalog: stocked.schema, collection };
    const made = fitted(written, { random: this.#random, ids: this.#ids, compiler: doors.compiler, place });
    if (made === undefined) return undefined;
    const { text, params, checked } = made;
    const { auth, kind, now } = this.request;
    const request = { auth, kind, query: {}, params, now };
    const finds = (record: Row, related: Related): boolean => interpret(checked, { record, related, request }) === true;
    return { text, params, finds };
  }

  access(request = this.request): AccessContext {
    const { decide, updateBoundsOf } = this.#world.doors;
    const { schema } = this.#world.stocked;
    const { list, records, members, update, remove } = this.rules;
    const byAction: Readonly<Record<string, Rule>> = { list, delete: remove };
    const permit = (collection: string, action: string): Permit =>
      permitOf(action === 'read' ? records.get(collection)! : (byAction[action] ?? []), request, decide);
    const updateBounds = update.map(({ generated }) => updateBoundsOf(generated, schema));
    const of = (half: 'certain' | 'possible'): Permit =>
      decide({ rules: updateBounds.map((each) => each[half]), request });
    return {
      collection: this.collection,
      permit,
      member: (collection, name, action) => {
        const rule = action === 'read' ? members.get(collection)!.get(name) : undefined;
        return rule && permitOf(rule, request, decide);
      },
      violation: (_, { violated }, action) => decide({ rules: violated[action], request: request }),
      prospect: () => ({ certain: of('certain'), possible: of('possible') }),
      auth: request.auth!,
      kind: request.kind ?? 'user',
      principal: String(request.auth!.id),
      now: request.now,
    };
  }
}
