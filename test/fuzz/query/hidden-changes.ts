/** Changes of a database that leave all that a caller may see as it was: values, references, links, and whole records. */
import type { Transaction } from '../../../src/database/contract.ts';
import type { CatalogManyToMany, Row } from '../../../src/policy/types.ts';
import type { Collection } from '../../../src/schema/model/model.ts';
import type { Data, Id } from '../../oracle/database.ts';
import { idColumn, idParam, newId } from '../doors/keyed-schema.ts';
import { columnValue, markOfCopy } from '../doors/referring-schema.ts';
import { scalarOf } from '../policies/values.ts';
import type { Random } from '../random.ts';
import type { FuzzCaller, StockedWorld } from './caller.ts';

/** A row is undefined before it is made, and after it is gone. */
export type Change =
  | { readonly kind: 'row'; readonly collection: string; readonly id: Id; readonly row: Row | undefined }
  | {
      readonly kind: 'link';
      readonly collection: string;
      readonly relation: CatalogManyToMany;
      readonly pair: readonly [Id, Id];
      readonly isNew: boolean;
    };

const TRIES = 28;

export class HiddenChanges {
  readonly #world: StockedWorld;
  readonly #caller: FuzzCaller;
  readonly #random: Random;
  /** The records that the changes have made. */
  readonly #made = new Set<string>();

  constructor(world: StockedWorld, caller: FuzzCaller, random: Random) {
    this.#world = world;
    this.#caller = caller;
    this.#random = random;
  }

  /** Each of the changes leaves the view as it was after those before it. */
  make(before: Data): { readonly data: Data; readonly changes: readonly Change[] } {
    const changes: Change[] = [];
    const view = this.#viewOf(before);
    let data = before;
    for (let i = 0; i < TRIES; i++) {
      const change = this.#change(data);
      const other = change && changed(data, change);
      if (other === undefined || this.#viewOf(other) !== view) continue;
      data = other;
      changes.push(change!);
    }
    return { data, changes };
  }

  /** All that the caller may see: readable records, what is left out of each, their links, listed ones, and what may be done with them. */
  #viewOf(data: Data): string {
    const { name } = this.#caller.collection;
    const { seen, everything, listed } = this.#caller.standing(data);
    const { update, remove } = this.#caller.rules;
    const shown = listed.map((row) => [
      seen.masked(name, row),
      seen.hiddenIn(name, row),
      this.#caller.holds(remove, row, everything),
      this.#caller.holds(update, row, everything),
    ]);
    const readable = [...seen.data.rows].map(([collection, rows]) =>
      rows.map((row) => [row, seen.hiddenIn(collection, everything.one(collection, row.id as Id)!)]),
    );
    const sources = new Set([...seen.data.rows.values()].flat().map(({ id }) => id));
    for (const { id } of listed) sources.add(id);
    const links = [...seen.data.links].map(([table, pairs]) => [
      table,
      pairs.filter(([source]) => sources.has(source)),
    ]);
    return JSON.stringify([readable, links, shown]);
  }

  #change(data: Data): Change | undefined {
    const random = this.#random;
    const collections = [...this.#world.stocked.schema.collections.values()].filter(
      ({ kind, managed }) => kind !== 'files' && managed,
    );
    const collection = random.pick(collections);
    const rows = data.rows.get(collection.name)!;
    if (rows.length === 0) return undefined;
    const row = random.pick(rows);
    const roll = random.next();
    if (roll < 0.15) return this.#link(collection, data);
    // The caller is part of the request.
    if (row.id === this.#caller.request.auth!.id) return undefined;
    if (roll < 0.4) return this.#reference(collection, { row, data });
    if (roll < 0.55) return this.#copy(collection, row);
    if (roll < 0.65) return removal(collection, { row, data });
    const fields = [...collection.fields.values()].filter(({ readOnly, unique }) => !readOnly && !unique);
    if (fields.length === 0) return undefined;
    const { name, type } = random.pick(fields);
    return changeOf(collection, { ...row, [name]: scalarOf(type, random) });
  }

  #reference({ relations, ...collection }: Collection, { row, data }: Standing): Change | undefined {
    const own = [...relations.values()].flatMap((each) => (each.kind === 'belongs_to' && !each.unique ? [each] : []));
    if (own.length === 0) return undefined;
    const { name, collection: target, required } = this.#random.pick(own);
    const id = !required && this.#random.chance(0.2) ? null : this.#random.pick(data.rows.get(target)!).id;
    return changeOf(collection, { ...row, [name]: id });
  }

  #link({ name, relations }: Collection, { rows, links }: Data): Change | undefined {
    const own = [...relations.values()].flatMap((each) => (each.kind === 'many_to_many' ? [each] : []));
    if (own.length === 0) return undefined;
    const relation = this.#random.pick(own);
    const pairs = links.get(relation.linkTable)!;
    if (pairs.length > 0 && this.#random.chance(0.5))
      return { kind: 'link', collection: name, relation, pair: this.#random.pick(pairs), isNew: false };
    const [source, target] = [name, relation.collection].map((each) => this.#random.pick(rows.get(each)!).id as Id);
    if (pairs.some(([from, to]) => from === source && to === target)) return undefined;
    return { kind: 'link', collection: name, relation, pair: [source!, target!], isNew: true };
  }

  #copy({ name, kind, fields, relations }: Collection, row: Row): Change {
    const id = newId(this.#world.stocked.schema.collections.get(name)!, this.#random);
    const unique = [...relations.values()].flatMap((each) =>
      each.kind === 'belongs_to' && each.unique ? [each.name] : [],
    );
    const cleared = Object.fromEntries(unique.map((relation) => [relation, null]));
    const values = { ...row, id, ...cleared, ...markOfCopy(id, { fields }) };
    return {
      kind: 'row',
      collection: name,
      id,
      row: kind === 'users' ? { ...values, email: `${id}@example.org` } : values,
    };
  }

  async perform(change: Change): Promise<void> {
    const { doors, stocked } = this.#world;
    const { sql, ident } = doors.compiler.sql;
    const { db, schema } = stocked;
    if (change.kind === 'link') {
      const { linkTable, sourceColumn, targetColumn } = change.relation;
      const ends = [change.collection, change.relation.collection].map((name) => schema.collections.get(name)!);
      const [source, target] = change.pair.map((id, i) => idParam({ doors, collection: ends[i]! }, id));
      await db.run(
        change.isNew
          ? sql`INSERT INTO ${ident(linkTable)} (${ident(sourceColumn)}, ${ident(targetColumn)}) VALUES (${source!}, ${target!})`
          : sql`DELETE FROM ${ident(linkTable)} WHERE ${ident(sourceColumn)} = ${source!} AND ${ident(targetColumn)} = ${target!}`,
      );
      return;
    }
    const { collection: name, id, row } = change;
    const collection = schema.collections.get(name)!;
    const keyed = { doors, collection };
    const gone = sql`DELETE FROM ${ident(collection.table)} WHERE ${idColumn(keyed)} = ${idParam(keyed, id)}`;
    const isThere = this.#made.has(`${name} ${id}`) || this.#world.data.rows.get(name)!.some((each) => each.id === id);
    if (row === undefined) await db.run(gone);
    else if (isThere) await this.#update(name, row);
    else {
      this.#made.add(`${name} ${id}`);
      const store = new doors.Store(db, schema);
      const values = { ...row, id: String(id) };
      const insert = (tx: Transaction) => doors.system.insertSystem(store, tx, { collection: name, values });
      await db.transaction(insert, { unlimited: true });
    }
  }

  /** Past the store, so that neither `updated_at` nor the version moves: they can be seen. */
  async #update(name: string, row: Row): Promise<void> {
    const { doors, stocked } = this.#world;
    const { sql, ident, join, param } = doors.compiler.sql;
    const { collections } = stocked.schema;
    const collection = collections.get(name)!;
    const { table, fields, relations } = collection;
    const own = [...fields.values()].filter(({ readOnly }) => !readOnly);
    const references = [...relations.values()].flatMap((each) => (each.kind === 'belongs_to' ? [each] : []));
    const cells = [
      ...own.map(({ name: field, column, type }) => sql`${ident(column)} = ${param(TYPES[type], row[field])}`),
      ...references.map((each) => {
        const value = columnValue(doors, each, collections.get(each.collection)!, row[each.name]);
        return sql`${ident(each.column)} = ${value}`;
      }),
    ];
    if (cells.length === 0) return;
    const keyed = { doors, collection };
    const where = sql`${idColumn(keyed)} = ${idParam(keyed, row.id)}`;
    await stocked.db.run(sql`UPDATE ${ident(table)} SET ${join(cells, ', ')} WHERE ${where}`);
  }
}

const TYPES = {
  json: 'jsonb',
  point: 'point',
  'string[]': 'text[]',
  'int[]': 'int8[]',
  'float[]': 'float8[]',
  'bool[]': 'bool[]',
  'date[]': 'date[]',
  'datetime[]': 'timestamptz[]',
  string: 'text',
  int: 'int8',
  float: 'float8',
  bool: 'bool',
  datetime: 'timestamptz',
  date: 'date',
  decimal: 'numeric',
  uuid: 'uuid',
  bytes: 'bytea',
  bigint: 'int8',
  time: 'time',
} as const;

interface Standing {
  readonly row: Row;
  readonly data: Data;
}

const changeOf = ({ name }: Pick<Collection, 'name'>, row: Row): Change => ({
  kind: 'row',
  collection: name,
  id: row.id as Id,
  row,
});

/** Deletes a record that no other references. */
function removal({ name, relations }: Collection, { row, data }: Standing): Change | undefined {
  const isUsed =
    [...data.rows.values()].some((rows) => rows.some((each) => each !== row && Object.values(each).includes(row.id))) ||
    [...data.links.values()].some((pairs) => pairs.some((pair) => pair.includes(row.id as Id)));
  return isUsed || relations.size === 0
    ? undefined
    : { kind: 'row', collection: name, id: row.id as Id, row: undefined };
}

/** The rows of the database after a change. */
function changed({ rows, links }: Data, change: Change): Data {
  if (change.kind === 'link') {
    const { relation, pair, isNew } = change;
    const rest = links.get(relation.linkTable)!.filter(([source, target]) => source !== pair[0] || target !== pair[1]);
    return { rows, links: new Map(links).set(relation.linkTable, isNew ? [...rest, pair] : rest) };
  }
  const { collection, id, row } = change;
  const before = rows.get(collection)!;
  const isKnown = before.some((each) => each.id === id);
  const rest = row === undefined ? before.filter((each) => each.id !== id) : before;
  const after = isKnown ? rest.map((each) => (each.id === id ? row! : each)) : [...rest, row!];
  return { rows: new Map(rows).set(collection, after), links };
}
