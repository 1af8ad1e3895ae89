/** Rows that a predicate walks to, loaded as its needs declare: a statement for each relation of each level. */
import { type Need, NO_RELATED, type Related, type Row } from '../../policy/types.ts';
import type { Relation } from '../../schema/model.ts';
import { ident, param, raw, type Sql, sql } from '../../sql.ts';
import type { Queryable } from '../database/contract.ts';
import type { Store } from './access-context.ts';

export async function loadRelated(
  { store, q }: { readonly store: Store; readonly q: Queryable },
  { collection, record, needs }: { readonly collection: string; readonly record: Row; readonly needs: readonly Need[] },
): Promise<Related> {
  if (needs.length === 0) return NO_RELATED;
  const loader = new Loader(store, q);
  await loader.load(collection, { rows: [record], needs });
  return loader;
}

interface Level {
  readonly rows: readonly Row[];
  readonly needs: readonly Need[];
}

class Loader implements Related {
  readonly #store: Store;
  readonly #q: Queryable;
  readonly #ones = new Map<string, Row>();
  readonly #manys = new Map<string, Row[]>();

  constructor(store: Store, q: Queryable) {
    this.#store = store;
    this.#q = q;
  }

  one(collection: string, id: string): Row | undefined {
    return this.#ones.get(`${collection}/${id}`);
  }

  many(collection: string, relation: string, id: string): readonly Row[] {
    return this.#manys.get(`${collection}/${relation}/${id}`) ?? [];
  }

  async load(collection: string, { rows, needs }: Level): Promise<void> {
    for (const need of needs) {
      const relation = this.#store.shape(collection).collection.relations.get(need.relation);
      if (!relation) throw new Error(`no relation ${collection}.${need.relation}`);
      const found =
        relation.kind === 'belongs_to'
          ? await this.#loadOne(relation, rows)
          : await this.#loadMany(collection, { relation, rows });
      if (found.length > 0) await this.load(relation.collection, { rows: found, needs: need.needs });
    }
  }

  async #loadOne({ name, collection }: Relation, rows: readonly Row[]): Promise<readonly Row[]> {
    const ids = new Set(rows.flatMap((row) => (typeof row[name] === 'string' ? [row[name]] : [])));
    if (ids.size === 0) return [];
    const shape = this.#store.shape(collection);
    const cells = await this.#q.rows(
      sql`SELECT ${shape.columns('x')} FROM ${this.#store.from(collection, raw('x'))} WHERE x.id = ANY(${param('uuid[]', [...ids])})`,
    );
    const found = cells.map((row) => shape.row(row));
    for (const row of found) this.#ones.set(`${collection}/${row.id}`, row);
    return found;
  }

  async #loadMany(
    collection: string,
    { relation, rows }: { readonly relation: Relation; readonly rows: readonly Row[] },
  ): Promise<readonly Row[]> {
    const shape = this.#store.shape(relation.collection);
    const { key, source } = this.#hangingOn(relation);
    const cells = await this.#q.rows(
      sql`SELECT ${key}, ${shape.columns('x')} FROM ${source} WHERE ${key} = ANY(${param(
        'uuid[]',
        rows.map(({ id }) => id),
      )})`,
    );
    return cells.map((row) => {
      const found = shape.row(row, 1);
      const place = `${collection}/${relation.name}/${row[0]}`;
      const known = this.#manys.get(place);
      if (known) known.push(found);
      else this.#manys.set(place, [found]);
      return found;
    });
  }

  #hangingOn(relation: Relation): { readonly key: Sql; readonly source: Sql } {
    const target = this.#store.from(relation.collection, raw('x'));
    if (relation.kind !== 'many_to_many') {
      if (relation.kind === 'belongs_to') throw new Error('a belongs_to leads to one record');
      return { key: sql`x.${ident(relation.viaColumn)}`, source: target };
    }
    const { linkTable, sourceColumn, targetColumn } = relation;
    return {
      key: sql`l.${ident(sourceColumn)}`,
      source: sql`${ident(linkTable)} AS l JOIN ${target} ON x.id = l.${ident(targetColumn)}`,
    };
  }
}
