/** A record that contains its related records → the input of predicates: a flat row, and related rows. */
import { present } from '../invariant.ts';
import { scalarOf } from '../policy/scalar-types.ts';
import type { Catalog, CatalogCollection, CatalogRelation, Related, Row } from '../policy/types.ts';
import { parseUuid } from '../policy/values.ts';

export interface RecordGraph {
  readonly row: Row;
  /** The result of an update. */
  readonly next: Row;
  readonly related: Related;
}

/**
 * Throws TypeError for a value that is not of its field's type. Names that the collection does not
 * have are ignored. The related records of both are one database, in which the record has its state
 * before the update.
 */
export function recordGraph(catalog: Catalog, collection: string, { record, next }: GivenUpdate): RecordGraph {
  const graph = new Graph(catalog);
  const row = graph.add(collection, record, '');
  return { row, next: graph.addNext(collection, next, row), related: graph };
}

interface GivenUpdate {
  readonly record: object;
  readonly next: object;
}
interface GraphRow extends Record<string, unknown> {
  readonly id: string;
}
interface GivenRecord {
  readonly name: string;
  readonly record: object;
  readonly path: string;
  /** The id of a record that gives none. */
  readonly otherwiseId?: string;
}
interface GivenRelation {
  readonly from: CatalogCollection;
  readonly row: GraphRow;
  readonly relation: CatalogRelation;
  readonly value: unknown;
  readonly path: string;
}

class Graph implements Related {
  readonly #catalog: Catalog;
  /** Rows by collection and id. */
  readonly #rows = new Map<string, Row>();
  /** Elements by collection, id and relation. */
  readonly #elements = new Map<string, readonly Row[]>();
  /** Elements that were given as an id alone, which is enough for `contains`. */
  readonly #elementRows = new Map<string, Row>();
  /** Related records that were given as an id alone. */
  readonly #named = new Map<string, string>();
  #made = 0;

  constructor(catalog: Catalog) {
    this.#catalog = catalog;
  }

  add(name: string, record: object, path: string): GraphRow {
    const row = this.#read({ name, record, path });
    this.#rows.set(joinedKey(name, row.id), row);
    return row;
  }

  /** Paths that return to the record reach the stored row, never this one. */
  addNext(name: string, record: object, stored: GraphRow): GraphRow {
    return this.#read({ name, record, path: '', otherwiseId: stored.id });
  }

  #read({ name, record, path, otherwiseId }: GivenRecord): GraphRow {
    const collection = present(this.#catalog.collections.get(name), `collection ${name}`);
    const given = new Map(Object.entries(record));
    const id = given.has('id') ? recordId(given.get('id'), `${path}/id`) : (otherwiseId ?? this.#newId());
    const row: GraphRow = Object.assign(Object.create(null), { id });
    for (const { name: field, type } of collection.fields.values()) {
      const value = given.get(field);
      if (value === undefined || value === null) continue;
      row[field] = scalarOf(type).readJson(value);
      if (row[field] === undefined)
        throw new TypeError(`${path}/${field}: expected ${type}, found ${JSON.stringify(value)}`);
    }
    for (const relation of collection.relations.values()) {
      const value = given.get(relation.name);
      this.#addRelation({ from: collection, row, relation, value, path: `${path}/${relation.name}` });
    }
    return row;
  }

  one(collection: string, id: string): Row | undefined {
    const row = this.#rows.get(joinedKey(collection, id));
    const path = this.#named.get(joinedKey(collection, id));
    if (row === undefined && path !== undefined) {
      throw new TypeError(
        `${path}: the policy reads this record of ${collection}; give the record in the place of its id`,
      );
    }
    return row ?? this.#elementRows.get(joinedKey(collection, id));
  }

  many(collection: string, relation: string, id: string): readonly Row[] {
    return this.#elements.get(joinedKey(collection, id, relation)) ?? [];
  }

  #addRelation({ from, row, relation, value, path }: GivenRelation): void {
    const { kind, name, collection } = relation;
    if (value === undefined || value === null) return;
    if (kind === 'belongs_to') {
      row[name] = this.#reference(collection, value, path);
      return;
    }
    const values = kind === 'has_one' ? [value] : value;
    if (!Array.isArray(values)) throw new TypeError(`${path}: expected a list of records`);
    const rows = values.map((element, i) =>
      this.#element(collection, element, kind === 'has_one' ? path : `${path}/${i}`),
    );
    // A written record itself has the ids of its partner and its members.
    const ids = rows.map(({ id }) => id);
    if (kind !== 'has_many') row[name] = kind === 'has_one' ? ids[0] : ids;
    const place = joinedKey(from.name, row.id, name);
    if (!this.#elements.has(place)) this.#elements.set(place, rows);
  }

  /** → the id of the reference. */
  #reference(collection: string, value: unknown, path: string): string {
    if (typeof value === 'object' && value !== null) return this.add(collection, value, path).id;
    const id = recordId(value, path);
    this.#named.set(joinedKey(collection, id), path);
    return id;
  }

  #element(collection: string, value: unknown, path: string): Row {
    if (typeof value === 'object' && value !== null) return this.add(collection, value, path);
    const id = recordId(value, path);
    const row = { id };
    this.#elementRows.set(joinedKey(collection, id), row);
    return row;
  }

  /** A record without an id gets one that no other record of this graph has. */
  #newId(): string {
    return `00000000-0000-4000-8000-${(++this.#made).toString(16).padStart(12, '0')}`;
  }
}

const joinedKey = (...parts: readonly string[]): string => parts.join('\u0000');

function recordId(value: unknown, path: string): string {
  const id = typeof value === 'string' ? parseUuid(value) : undefined;
  if (id === undefined) throw new TypeError(`${path}: expected a UUID, found ${JSON.stringify(value)}`);
  return id;
}
