/**
 * A walk over a collection that changes between its pages: records come and go, and move in the order. Every record that stayed in its
 * place is met exactly once, and in its place.
 */
import type { Row } from '../../../src/policy/types.ts';
import type { Data, Id } from '../../oracle/database.ts';
import { inOrder, keysOf } from '../../oracle/order.ts';
import { readAll } from '../doors/doors-world.ts';
import { newId } from '../doors/keyed-schema.ts';
import { markOfCopy } from '../doors/referring-schema.ts';
import { scalarOf } from '../policies/values.ts';
import type { Random } from '../random.ts';
import type { FuzzCaller, StockedWorld } from './caller.ts';
import { type Change, HiddenChanges } from './hidden-changes.ts';
import { sortOf } from './options.ts';

interface Walked {
  /** The present rows of the database. */
  readonly data: Data;
  /** In words. */
  readonly found?: string;
}
/** The records that the query finds at one moment, in their order, with all that they show. */
type Moment = ReadonlyMap<Id, string>;

const MOST_WRITES = 4;

export class ChangingWalk {
  readonly #world: StockedWorld;
  readonly #caller: FuzzCaller;
  readonly #random: Random;

  constructor(world: StockedWorld, caller: FuzzCaller, random: Random) {
    this.#world = world;
    this.#caller = caller;
    this.#random = random;
  }

  async run(): Promise<Walked> {
    const { collection } = this.#caller;
    const { schema } = this.#world.stocked;
    const sort = sortOf(collection, { schema, random: this.#random });
    const filter = this.#random.chance(0.5) ? this.#caller.filter(collection.name) : undefined;
    const asked = { sort, ...(filter && { filter: filter.text, params: filter.params }) };
    const momentOf = (data: Data): Moment => {
      const { listed, seen, visible } = this.#caller.standing(data);
      const shown = listed.map((row) => seen.masked(collection.name, row));
      const found = filter === undefined ? shown : shown.filter((row) => filter.finds(row, visible));
      const ordering = { catalog: schema, collection: collection.name, related: visible };
      const keyed = (row: Row) => [row.id as Id, JSON.stringify(keysOf(row, sort, ordering))] as const;
      return new Map(inOrder(found, sort, ordering).map(keyed));
    };
    let { data } = this.#world;
    const moments = [momentOf(data)];
    const met: Id[] = [];
    let cursor: string | undefined;
    try {
      do {
        const page = await this.#page({ ...asked, limit: 1 + this.#random.below(6), ...(cursor && { cursor }) });
        met.push(...page.ids);
        cursor = page.nextCursor;
        if (cursor === undefined) break;
        data = await this.#write(data);
        moments.push(momentOf(data));
      } while (moments.length < 60);
    } catch (error) {
      if ((error as { readonly code?: string }).code !== 'query_too_expensive') throw error;
      return { data };
    }
    if (cursor !== undefined) return { data };
    const expected = stayed(moments);
    const isStayed = new Set(expected);
    const walked = met.filter((id) => isStayed.has(id));
    if (JSON.stringify(walked) === JSON.stringify(expected)) return { data };
    const lines = [
      `DISAGREEMENT: a walk over ${collection.name}, which changes between its pages`,
      `  body        ${JSON.stringify(asked)}`,
      `  expected    ${JSON.stringify(expected)}`,
      `  found       ${JSON.stringify(walked)}`,
    ];
    return { data, found: lines.join('\n') };
  }

  async #page(body: Row): Promise<{ readonly ids: readonly Id[]; readonly nextCursor: string | undefined }> {
    const { doors, stocked } = this.#world;
    const records = doors.createRecords(stocked.db, stocked.schema);
    const request = doors.queryRequestOf(body, stocked.schema, this.#caller.collection);
    const { json, nextCursor } = await records.list(this.#caller.access(), request);
    return { ids: (JSON.parse(String(json)) as readonly Row[]).map(({ id }) => id as Id), nextCursor };
  }

  // -------------------------------------------------------------- writes

  async #write(before: Data): Promise<Data> {
    const world = { ...this.#world, data: before };
    const writer = new HiddenChanges(world, this.#caller, this.#random);
    const known = new Set<Id>();
    for (let i = this.#random.below(MOST_WRITES + 1); i > 0; i--) {
      const change = this.#change(before);
      if (change.kind !== 'row' || known.has(change.id)) continue;
      known.add(change.id);
      await writer.perform(change).catch((error: unknown) => {
        // A record that others reference stays.
        if ((error as { readonly kind?: string }).kind !== 'foreign_key') throw error;
      });
    }
    return known.size === 0 ? before : readAll(this.#world.stocked);
  }

  /** Changes, copies or deletes a record of the walked collection. */
  #change(data: Data): Change {
    const random = this.#random;
    const { name, kind, fields, relations } = this.#caller.collection;
    const row = random.pick(data.rows.get(name)!);
    const own = [...fields.values()].filter(({ readOnly, unique }) => !readOnly && !unique);
    const some = own
      .filter(() => random.chance(0.4))
      .map((field) => [field.name, scalarOf(field.type, random)] as const);
    const values = { ...row, ...Object.fromEntries(some) };
    const roll = random.next();
    if (roll < 0.4) return { kind: 'row', collection: name, id: row.id as Id, row: values };
    if (roll < 0.6) return { kind: 'row', collection: name, id: row.id as Id, row: undefined };
    const id = newId(this.#caller.collection, random);
    const unique = [...relations.values()].flatMap((each) =>
      each.kind === 'belongs_to' && each.unique ? [[each.name, null] as const] : [],
    );
    const copy = {
      ...values,
      id,
      ...Object.fromEntries(unique),
      ...markOfCopy(id, this.#caller.collection),
      ...(kind === 'users' && { email: `${id}@example.org` }),
    };
    return { kind: 'row', collection: name, id, row: copy };
  }
}

/** The records that were found at every moment with the same keys, in their order. */
function stayed([first, ...others]: readonly Moment[]): readonly Id[] {
  return [...first!].filter(([id, keys]) => others.every((moment) => moment.get(id) === keys)).map(([id]) => id);
}
