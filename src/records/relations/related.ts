/** Loads the related rows that a policy reads, as its needs declare: one statement per relation and level. */
import { invariant } from '../../invariant.ts';
import { MOST_ANCESTORS, type Need, NO_RELATED, type Related, type Row } from '../../policy/types.ts';
import { viaColumns } from '../../schema/model/composite-references.ts';
import type { HasMany, HasOne, ManyToMany, Relation } from '../../schema/model/model.ts';
import { ident, raw, type Sql, sql } from '../../sql.ts';
import type { Reading } from '../access-context.ts';
import { recordKeyIn, recordKeyOf } from '../record-key.ts';
import { type Scope, type ScopedRows, scopeOf } from '../scope.ts';

type RelatedSource = Pick<Reading, 'store' | 'q' | 'tenant'>;

export interface Loading {
  readonly collection: string;
  readonly stored?: Row;
  /** The record that a write produces, which holds the ids of its partners and members itself. */
  readonly written?: Row;
  /** The id of a record to leave out, as if the database did not have it. */
  readonly without?: string;
  readonly needs: readonly Need[];
  /** Records whose ids come from the request. */
  readonly requested?: readonly RequestedRecord[];
}
interface RequestedRecord {
  readonly collection: string;
  readonly id: string;
  readonly needs: readonly Need[];
}
export interface RequestedRecords extends Omit<RequestedRecord, 'id'> {
  readonly ids: readonly string[];
}

export async function loadRelated(source: RelatedSource, loading: Loading): Promise<Related> {
  const { collection, stored, written, without, needs, requested = [] } = loading;
  if (needs.length + requested.length === 0) return NO_RELATED;
  const loader = new Loader(source, without);
  if (stored) await loader.load(collection, { rows: [stored], isWritten: false, needs });
  if (written) await loader.load(collection, { rows: [written], isWritten: true, needs });
  for (const { id, ...each } of requested) await loader.loadRequested({ ...each, ids: [id] });
  return loader;
}

export interface LoadedRows {
  readonly collection: string;
  readonly rows: readonly Row[];
  readonly needs: readonly Need[];
}

/** The related rows of many records, each level of which is one statement, and the records that requests name. */
export async function loadRelatedRows(
  source: RelatedSource,
  all: readonly LoadedRows[],
  requested: readonly RequestedRecords[],
): Promise<Related> {
  const wanted = all.filter(({ rows, needs }) => rows.length > 0 && needs.length > 0);
  if (wanted.length + requested.length === 0) return NO_RELATED;
  const loader = new Loader(source, undefined);
  for (const { collection, ...level } of wanted) await loader.load(collection, { ...level, isWritten: false });
  for (const each of requested) await loader.loadRequested(each);
  return loader;
}

/**
 * The partners and members of a stored record by relation. With its row, this is the record as an
 * empty write would produce it.
 */
export async function heldBy(source: RelatedSource, collection: string, record: Row): Promise<Row> {
  const { store } = source;
  const loader = new Loader(source, undefined);
  const held: Record<string, unknown> = {};
  for (const relation of store.shape(collection).collection.relations.values()) {
    if (relation.kind !== 'has_one' && relation.kind !== 'many_to_many') continue;
    await loader.load(collection, {
      rows: [record],
      isWritten: false,
      needs: [{ relation: relation.name, needs: [] }],
    });
    const ids = loader.many(collection, relation.name, String(record.id)).map(({ id }) => id);
    held[relation.name] = relation.kind === 'has_one' ? (ids[0] ?? null) : ids;
  }
  return held;
}

interface Level {
  readonly rows: readonly Row[];
  readonly isWritten: boolean;
  readonly needs: readonly Need[];
}

class Loader implements Related {
  readonly #source: RelatedSource;
  readonly #without: string | undefined;
  /** Rows by collection, then by id: each decision would join another key. */
  readonly #ones = new Map<string, Map<string, Row>>();
  /** Rows by collection, by relation, then by the id of the record that has it. */
  readonly #manys = new Map<string, Map<string, Map<string, readonly Row[]>>>();

  constructor(source: RelatedSource, without: string | undefined) {
    this.#source = source;
    this.#without = without;
  }

  // An id that is an int is a number in rows.
  one(collection: string, id: string): Row | undefined {
    return this.#ones.get(collection)?.get(String(id));
  }

  many(collection: string, relation: string, id: string): readonly Row[] {
    return this.#manys.get(collection)?.get(relation)?.get(String(id)) ?? NONE_FOUND;
  }

  async load(collection: string, { rows, isWritten, needs }: Level): Promise<void> {
    for (const need of needs) {
      const relation = this.#source.store.shape(collection).collection.relations.get(need.relation);
      invariant(relation !== undefined, `${collection} has the relation ${need.relation}`);
      if (need.isFollowed) {
        const above = await this.#loadAbove(relation, rows);
        if (above.length > 0) await this.load(collection, { rows: above, isWritten: false, needs: need.needs });
        continue;
      }
      const isHeld = relation.kind === 'belongs_to' || (isWritten && relation.kind !== 'has_many');
      const found = isHeld ? await this.#loadHeld(relation, rows) : await this.#loadMany(collection, relation, rows);
      if (found.length > 0) await this.load(relation.collection, { rows: found, isWritten: false, needs: need.needs });
    }
  }

  /** The given rows and those above them, as far as they count, and the next, which shows that a chain goes on. */
  async #loadAbove(relation: Relation, rows: readonly Row[]): Promise<readonly Row[]> {
    invariant(relation.kind === 'belongs_to', 'ancestors follow a belongs_to');
    const { collection, column } = relation;
    const scope = scopeOf(this.#source);
    const key = scope.key(collection);
    const above = scope.from(collection, 'x').beside(raw('chain'));
    const own = ident('x', column);
    // Both parts of a recursion have one collation, which no comparison with a column prefers to the column's own.
    const next = key.type === 'text' ? sql`${own}::text COLLATE "default"` : own;
    const conditions = [
      sql`${key.of('x')} = chain.id`,
      sql`${own} IS NOT NULL`,
      sql`chain.place <= ${raw(String(MOST_ANCESTORS))}`,
    ];
    const first = rows.map(({ id }) => id);
    // A statement outside of transactions begins with SELECT.
    const ids = await this.#source.q.rows(sql`
      SELECT DISTINCT found.id::text
        FROM (
             WITH RECURSIVE chain (id, place) AS (
               SELECT unnest(${key.list(first)}), 1
                UNION
               SELECT ${next}, chain.place + 1
                 FROM ${above.where(...conditions)}
             )
             SELECT id FROM chain
             ) AS found`);
    return this.#loadIds(
      collection,
      ids.map(([id]) => String(id)),
    );
  }

  async loadRequested({ collection, ids, needs }: RequestedRecords): Promise<void> {
    const rows = await this.#loadIds(collection, ids);
    if (rows.length > 0) await this.load(collection, { rows, isWritten: false, needs });
  }

  /** The rows whose ids the given rows hold, one or a list of them. */
  async #loadHeld({ name, collection }: Relation, rows: readonly Row[]): Promise<readonly Row[]> {
    const held = rows.flatMap((row) => row[name]).filter((id) => id != null);
    return this.#loadIds(collection, held.map(String));
  }

  async #loadIds(collection: string, held: readonly string[]): Promise<readonly Row[]> {
    const ids = new Set(held.filter((id) => id !== this.#without));
    if (ids.size === 0) return [];
    const shape = this.#source.store.shape(collection);
    const isHeld = recordKeyOf(shape.collection).isAmong('x', [...ids]);
    const cells = await this.#source.q.rows(sql`
      SELECT ${shape.columns('x')}
        FROM ${scopeOf(this.#source).from(collection, 'x').where(isHeld)}`);
    const found = cells.map((row) => shape.row(row));
    const known = mapAt(this.#ones, collection);
    for (const row of found) known.set(String(row.id), row);
    return found;
  }

  async #loadMany(collection: string, relation: Relation, rows: readonly Row[]): Promise<readonly Row[]> {
    const shape = this.#source.store.shape(relation.collection);
    invariant(relation.kind !== 'belongs_to', 'a belongs_to leads to one record');
    const { key, rows: related } = relatedBy(scopeOf(this.#source), relation, collection);
    const owners = rows.map(({ id }) => String(id)).filter((id) => id !== this.#without);
    const { schema } = this.#source.store;
    const ownKey = recordKeyIn(schema, collection);
    const columns = viaColumns(schema, relation)?.map((column) => ident('x', column));
    const isOwned =
      columns === undefined ? sql`${key} = ANY(${ownKey.list(owners)})` : ownKey.holdOneOf(columns, owners);
    const cells = await this.#source.q.rows(sql`
      SELECT ${key}, ${shape.columns('x')}
        FROM ${related.where(isOwned)}`);
    const others = cells.filter((row) => row[1] !== this.#without);
    const found = new Map<string, Row[]>();
    const all = others.map((row) => {
      const one = shape.row(row, 1);
      const own = found.get(row[0]!);
      if (own === undefined) found.set(row[0]!, [one]);
      else own.push(one);
      return one;
    });
    // Another root may have reached the same records: the last read of them counts.
    const known = mapAt(mapAt(this.#manys, collection), relation.name);
    for (const [owner, own] of found) known.set(owner, own);
    return all;
  }
}

const NONE_FOUND: readonly Row[] = [];

function mapAt<K, V>(maps: Map<string, Map<K, V>>, key: string): Map<K, V> {
  const known = maps.get(key) ?? new Map<K, V>();
  maps.set(key, known);
  return known;
}

interface RelatedRows {
  readonly rows: ScopedRows;
  /** Equals the id of the record that the row is related to. */
  readonly key: Sql;
}

/**
 * The rows that a relation finds, under the alias `x`, each with the id of the record that it is related to.
 *
 * @param owner the collection that has the relation
 */
export function relatedBy(scope: Scope, relation: HasOne | HasMany | ManyToMany, owner: string): RelatedRows {
  if (relation.kind !== 'many_to_many')
    return { rows: scope.from(relation.collection, 'x'), key: ident('x', relation.viaColumn) };
  const links = scope.links(relation, owner, 'l');
  const members = links.related.from(relation.collection, 'x');
  return {
    rows: links.join(members, scope.key(relation.collection).isIn('x', ident('l', relation.targetColumn))),
    key: ident('l', relation.sourceColumn),
  };
}
