/** The rows of a test file in memory, for predicates. Runs without Node. */
import { GUEST, GUEST_ROW } from '../../policy/check/guests.ts';
import { livingName } from '../../policy/deleted-names.ts';
import type { Related, Row } from '../../policy/types.ts';
import type { Scalar } from '../../policy/values.ts';
import { recordKeyIn } from '../../records/record-key.ts';
import { rolesOfSession } from '../../schema/model/effective-roles.ts';
import type { Collection, ManyToMany, Schema } from '../../schema/model/model.ts';
import type { PolicyTests } from './read-tests.ts';

const textOf = (id: unknown): string | undefined => (id == null ? undefined : String(id));

export class TestWorld implements Related {
  readonly #schema: Schema;
  readonly #rows: ReadonlyMap<string, ReadonlyMap<string, Row>>;
  readonly #links = new Map<string, readonly string[]>();
  readonly #found = new Map<string, ReadonlyMap<string | undefined, readonly Row[]>>();
  readonly #names: PolicyTests['names'];

  /** @param stored the rows by collection and id, as a database gives them */
  constructor(schema: Schema, tests: PolicyTests, stored: ReadonlyMap<string, ReadonlyMap<string, Row>>) {
    this.#schema = schema;
    this.#names = tests.names;
    this.#rows = stored;
    for (const { collection, id, links } of tests.rows)
      for (const [relation, ids] of links) this.#links.set(`${collection}/${relation}/${id}`, ids);
  }

  /** The rows as the file has them, without a database. */
  static ofFile(schema: Schema, tests: PolicyTests): TestWorld {
    const byCollection = Map.groupBy(tests.rows, ({ collection }) => collection);
    const stored = [...byCollection].map(
      ([name, rows]) =>
        [
          name,
          new Map(rows.map(({ id, values }) => [id, { ...values, id: recordKeyIn(schema, name).value(id) }])),
        ] as const,
    );
    return new TestWorld(schema, tests, new Map(stored));
  }

  row(collection: string, name: string): Row {
    return this.#rows.get(collection)!.get(this.#names.idOf(collection, name)!)!;
  }

  /** The caller as policies see it. */
  caller(name: string, secondFactor: boolean): Row {
    if (name === GUEST) return GUEST_ROW;
    const row = this.row('users', name);
    return { ...row, roles: rolesOfSession(this.#schema, row.roles as readonly string[], secondFactor) };
  }

  /** Policies have the ids of int keys as numbers. */
  one(collection: string, id: string): Row | undefined {
    return this.#rows.get(collection)?.get(String(id));
  }

  many(from: string, name: string, id: string): readonly Row[] {
    const relation = this.#schema.collections.get(from)!.relations.get(name)!;
    if (relation.kind === 'many_to_many') return this.#linked(from, relation, id);
    if (relation.kind === 'belongs_to') return [];
    const key = `${relation.collection}.${relation.via}`;
    const found: ReadonlyMap<string | undefined, readonly Row[]> =
      this.#found.get(key) ??
      Map.groupBy(this.#rows.get(relation.collection)?.values() ?? [], (row) => textOf(row[relation.via]));
    this.#found.set(key, found);
    return found.get(String(id)) ?? [];
  }

  /** The rows beside a record that is deleted. */
  without({ name }: Collection, id: Scalar): Related {
    return {
      one: (collection, other) =>
        collection === name && other === String(id) ? undefined : this.one(collection, other),
      many: (from, relation, owner) => {
        const found = this.many(livingName(from), relation, owner);
        const target = this.#schema.collections.get(livingName(from))!.relations.get(relation)!.collection;
        return target === name ? found.filter((row) => row.id !== id) : found;
      },
    };
  }

  /** The partners and members of a stored record, as an empty write would produce them. */
  heldBy({ name, relations }: Collection, id: string): Row {
    const held: Record<string, unknown> = {};
    for (const relation of relations.values()) {
      if (relation.kind !== 'has_one' && relation.kind !== 'many_to_many') continue;
      const ids = this.many(name, relation.name, id).map((row) => row.id);
      held[relation.name] = relation.kind === 'has_one' ? (ids[0] ?? null) : ids;
    }
    return held;
  }

  #linked(from: string, { name, collection }: ManyToMany, id: string): readonly Row[] {
    const ids = this.#links.get(`${from}/${name}/${id}`) ?? [];
    return ids.map((each) => this.one(collection, each)).filter((row) => row !== undefined);
  }
}
