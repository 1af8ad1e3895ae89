/** Loads the related rows that a policy reads, as its needs declare: one statement per relation and level. */

import { type Cells, ROWS_TOO_LARGE } from '../../database/contract.ts';
import { invariant } from '../../invariant.ts';
import { MOST_ANCESTORS, type Need, NO_RELATED, type Related, type Row } from '../../policy/types.ts';
import { TooMuchWork } from '../../policy/work-budget.ts';
import { viaColumns } from '../../schema/model/composite-references.ts';
import type { HasMany, HasOne, ManyToMany, Relation } from '../../schema/model/model.ts';
import { ident, raw, Sql, sql } from '../../sql.ts';
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
  /** The rows are those of a caller's filter, of which there may be too many: `TooMuchWork`. */
  readonly isOfFilter?: boolean;
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
  const { collection, stored, written, without, needs, requested = [], isOfFilter = false } = loading;
  if (needs.length + requested.length === 0) return NO_RELATED;
  const loader = new Loader(source, without);
  const load = async (): Promise<void> => {
    if (stored) await loader.load(collection, { rows: [stored], isWritten: false, needs });
    if (written) await loader.load(collection, { rows: [written], isWritten: true, needs });
    for (const { id, ...each } of requested) await loader.loadRequested({ ...each, ids: [id] });
  };
  if (!isOfFilter) await load();
  else if ((await loader.within(FILTER_BYTES, load)) === undefined) throw new TooMuchWork();
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
  return (await loadBounded(source, { all, requested, ofFilters: [] })).related;
}

interface AskedRelated {
  readonly all: readonly LoadedRows[];
  readonly requested: readonly RequestedRecords[];
  /** Rows that only the filters of callers read. */
  readonly ofFilters: readonly LoadedRows[];
}

/** The ids of records whose related rows are more than a filter may read, by the need. */
type ExcessRows = ReadonlyMap<Need, ReadonlySet<unknown>>;

interface BoundedRows {
  readonly related: Related;
  readonly excess: ExcessRows;
}

/** The same. The rows of each need of a filter have a budget. */
export async function loadBounded(
  source: RelatedSource,
  { all, requested, ofFilters }: AskedRelated,
): Promise<BoundedRows> {
  const isWanted = ({ rows, needs }: LoadedRows): boolean => rows.length > 0 && needs.length > 0;
  const [wanted, asked] = [all.filter(isWanted), ofFilters.filter(isWanted)];
  const excess = new Map<Need, ReadonlySet<unknown>>();
  if (wanted.length + asked.length + requested.length === 0) return { related: NO_RELATED, excess };
  const loader = new Loader(source, undefined);
  for (const { collection, ...level } of wanted) await loader.load(collection, { ...level, isWritten: false });
  for (const each of requested) await loader.loadRequested(each);
  for (const { collection, rows, needs } of asked)
    for (const need of needs) {
      const ids = await loadNeed(loader, { collection, rows, needs: [need] });
      if (ids.size > 0) excess.set(need, ids);
    }
  return { related: loader, excess };
}

/** If the rows of all records are too many, those of each record count: a record with many decides nothing about others. */
async function loadNeed(loader: Loader, { collection, rows, needs }: LoadedRows): Promise<ReadonlySet<unknown>> {
  const excess = new Set<unknown>();
  const load = (some: readonly Row[], bytes: number): Promise<number | undefined> =>
    loader.within(bytes, () => loader.load(collection, { rows: some, isWritten: false, needs }));
  let left = await load(rows, FILTER_BYTES);
  if (left !== undefined) return excess;
  left = FILTER_BYTES;
  for (const [id, states] of Map.groupBy(rows, (row) => row.id)) {
    const next: number | undefined = await load(states, left);
    if (next === undefined) excess.add(id);
    else left = next;
  }
  return excess;
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

/** Bytes of the rows that the filter of a caller reads, as those of a page of the change log. */
const FILTER_BYTES = 8_388_608;

class Loader implements Related {
  readonly #source: RelatedSource;
  readonly #without: string | undefined;
  /** The bytes that rows may still have. Undefined: any. */
  #bytes: number | undefined;
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

  /** @returns the bytes that are left; undefined: the rows have more. */
  async within(bytes: number, load: () => Promise<void>): Promise<number | undefined> {
    this.#bytes = bytes;
    try {
      await load();
      return this.#bytes;
    } catch (error) {
      if (error instanceof TooMuchWork) return undefined;
      throw error;
    } finally {
      this.#bytes = undefined;
    }
  }

  async #rows(statement: Sql): Promise<readonly Cells[]> {
    const { q } = this.#source;
    if (this.#bytes === undefined) return q.rows(statement);
    const rowBytes = { most: this.#bytes, read: 0 };
    const rows = await q.rows(new Sql(statement.shape, statement.params, rowBytes));
    this.#bytes -= rowBytes.read;
    if (rows === ROWS_TOO_LARGE || this.#bytes < 0) throw new TooMuchWork();
    return rows;
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
    const ids = await this.#rows(sql`
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
    const cells = await this.#rows(sql`
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
    const cells = await this.#rows(sql`
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
