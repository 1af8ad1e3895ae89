/** A caller's requests to the service about one collection, by every way to a record of it. */
import type { Row } from '../../../src/policy/types.ts';
import type { Data, Id } from '../../oracle/database.ts';
import { newId } from '../doors/keyed-schema.ts';
import { scalarOf } from '../policies/values.ts';
import type { Random } from '../random.ts';
import type { FuzzCaller, StockedWorld } from './caller.ts';
import { aggregationOf, OptionMaker, sortOf } from './options.ts';

export interface Sent {
  readonly method: 'GET' | 'POST';
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: unknown;
  /** The page after it is asked for too. */
  readonly isQuery?: boolean;
}
interface Asking {
  readonly world: StockedWorld;
  readonly random: Random;
  /** The rows of the database after the change. */
  readonly after: Data;
}

const QUERIES = 10;
const AGGREGATES = 3;
const LISTS = 8;
const RECORDS = 12;
const DRY_RUNS = 10;

export class ServiceQuestions {
  readonly #caller: FuzzCaller;
  readonly #asking: Asking;
  readonly #path: string;
  /** Ids of records that exist before the change or after it, and of no record. */
  readonly #ids: readonly Id[];
  readonly #readable: readonly Id[];

  constructor(caller: FuzzCaller, asking: Asking) {
    this.#caller = caller;
    this.#asking = asking;
    this.#path = `/api/${caller.collection.name}`;
    this.#ids = this.#idsOf(caller.collection.name);
    const { rows } = caller.standing(asking.world.data).seen.data;
    this.#readable = [
      ...rows.get(caller.collection.name)!.map(({ id }) => id as Id),
      newId(caller.collection, asking.random),
    ];
  }

  all(): readonly Sent[] {
    const of = (count: number, make: () => Sent): readonly Sent[] => Array.from({ length: count }, make);
    const some = this.#asking.random.shuffled(this.#ids).slice(0, RECORDS);
    return [
      ...of(QUERIES, () => this.#query()),
      ...of(AGGREGATES, () => this.#aggregate()),
      ...of(LISTS, () => this.#list()),
      ...some.flatMap((id) => this.#record(id)),
      ...of(DRY_RUNS, () => this.#dryRun()),
    ];
  }

  #idsOf(collection: string): readonly Id[] {
    const { world, after, random } = this.#asking;
    const all = [world.data, after].flatMap(({ rows }) => rows.get(collection)!.map(({ id }) => id as Id));
    return [...new Set(all), newId(world.stocked.schema.collections.get(collection)!, random)];
  }

  #query(): Sent {
    const { world, random } = this.#asking;
    const { collection } = this.#caller;
    const { schema } = world.stocked;
    const standing = this.#caller.standing(world.data);
    const { body: options } = new OptionMaker(this.#caller, standing, { schema, random }).make();
    const body = {
      ...this.#filter(),
      ...options,
      sort: sortOf(collection, { schema, random }),
      limit: 1 + random.below(8),
      count: random.pick(['none', 'exact', 'estimated']),
      capabilities: random.chance(0.3),
      ...(random.chance(0.15) && { offset: random.below(6) }),
      // An error names parts of the schema, hidden or not.
      ...(random.chance(0.1) && { fields: ['titel', 'id'] }),
    };
    return { method: 'POST', path: `${this.#path}/query`, body, isQuery: true };
  }

  #filter(): Row {
    const filter = this.#asking.random.chance(0.7) ? this.#caller.filter(this.#caller.collection.name) : undefined;
    return filter === undefined ? {} : { filter: filter.text, params: filter.params };
  }

  #aggregate(): Sent {
    const body = { ...this.#filter(), ...aggregationOf(this.#caller.collection, this.#asking.random) };
    return { method: 'POST', path: `${this.#path}/aggregate`, body };
  }

  #list(): Sent {
    const { world, random } = this.#asking;
    const { name, fields, relations } = this.#caller.collection;
    const keys = new URLSearchParams({ limit: String(1 + random.below(30)) });
    const rows = world.data.rows.get(name)!;
    const stored = rows.length === 0 ? {} : random.pick(rows);
    for (const field of fields.keys())
      if (random.chance(0.1) && stored[field] != null) keys.append(field, String(stored[field]));
    for (const relation of relations.values())
      if (random.chance(0.25)) keys.append(relation.name, String(random.pick(this.#idsOf(relation.collection))));
    if (random.chance(0.1)) keys.append('id', String(random.pick(this.#ids)));
    if (random.chance(0.4)) keys.append('expand', [...relations.keys()].join(',') || 'nothing');
    const headers: Record<string, string> = random.chance(0.5) ? { Prefer: 'count=exact' } : {};
    return { method: 'GET', path: `${this.#path}?${keys}`, headers };
  }

  #record(id: Id): readonly Sent[] {
    const expand = [...this.#caller.collection.relations.keys()].join(',');
    return ['', '/can', ...(expand === '' ? [] : [`?expand=${expand}`])].map((more) => ({
      method: 'GET',
      path: `${this.#path}/${encodeURIComponent(id)}${more}`,
    }));
  }

  /**
   * Tries writes of readable records, since everyone may write. Unique values, and a delete that references may prevent, are left
   * out: their errors depend on records that may be hidden.
   */
  #dryRun(): Sent {
    const { random, world } = this.#asking;
    const { name } = this.#caller.collection;
    const isReferenced = [...world.stocked.schema.collections.values()].some(({ relations }) =>
      [...relations.values()].some(
        (each) => each.kind !== 'has_many' && each.kind !== 'has_one' && each.collection === name,
      ),
    );
    const action = random.pick(isReferenced ? ['create', 'update'] : ['create', 'update', 'delete']);
    const id = action === 'create' ? {} : { id: random.pick(this.#readable) };
    const data = action === 'delete' ? {} : { data: this.#data() };
    return { method: 'POST', path: `${this.#path}/can`, body: { action, ...id, ...data } };
  }

  #data(): Row {
    const { random } = this.#asking;
    const { fields, relations } = this.#caller.collection;
    const values = [...fields.values()].flatMap(({ name, type, readOnly, required }) => {
      if (readOnly || random.chance(required ? 0.05 : 0.4)) return [];
      return [[name, random.chance(0.95) ? scalarOf(type, random) : []] as const];
    });
    const references = [...relations.values()].flatMap((relation): (readonly [string, unknown])[] => {
      const ids = this.#idsOf(relation.collection);
      if (relation.kind === 'belongs_to' && !relation.unique && random.chance(0.6))
        return [[relation.name, random.pick(ids)]];
      if (relation.kind === 'many_to_many' && random.chance(0.3))
        return [[relation.name, { set: random.shuffled(ids).slice(0, random.below(3)) }]];
      return [];
    });
    return Object.fromEntries([...values, ...references]);
  }
}
