/** A record that contains its related records → the input of predicates: a flat row, and related rows. */
import { present } from '../invariant.ts';
import { KEYS, scalarOf } from '../policy/scalar-types.ts';
import {
  type Catalog,
  type CatalogCollection,
  type CatalogRelation,
  keyOf,
  type Related,
  type Row,
} from '../policy/types.ts';

export interface RecordGraph {
  readonly row: Row;
  /** The result of an update. */
  readonly next: Row;
  /** The caller, with ids in the place of records. */
  readonly auth: Row | null;
  readonly related: Related;
}

/**
 * Throws TypeError for a value that is not of its field's type. Names that the collection does not
 * have are ignored. The related records of both are one database, in which the record has its state
 * before the update.
 */
export function recordGraph(catalog: Catalog, collection: string, { record, next, auth }: GivenUpdate): RecordGraph {
  const graph = new Graph(catalog);
  const row = graph.add(collection, record, '');
  const written = graph.addNext(collection, next, row);
  return { row, next: written, auth: auth && graph.addCaller(auth), related: graph };
}

interface GivenUpdate {
  readonly record: object;
  readonly next: object;
  readonly auth: Row | null;
}
type Id = string | number;
interface GraphRow extends Record<string, unknown> {
  readonly id: Id;
}
interface GivenRecord {
  readonly name: string;
  readonly record: object;
  readonly path: string;
  /** The id of a record that gives none. */
  readonly otherwiseId?: Id;
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
  readonly #rows = new Map<string, GraphRow>();
  /** Elements by collection, id and relation. */
  readonly #elements = new Map<string, readonly Row[]>();
  /** The places of related records that were given as an id alone, which is enough for `contains`. */
  readonly #named = new Map<string, string>();
  /** Its relations are read only as they were given: a caller of a token has none. */
  #caller: string | undefined;
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
    const id = given.has('id')
      ? readGivenId(collection, given.get('id'), `${path}/id`)
      : (otherwiseId ?? this.#newId(collection));
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

  /** The relations of the caller alone; policies read its fields from the request. */
  addCaller(auth: Row): Row {
    const users = this.#catalog.collections.get('users');
    const id = users && KEYS[keyOf(users).kind].readJson(auth.id);
    if (users === undefined || id === undefined) return auth;
    this.#caller = joinedKey('users', id as Id);
    const row: GraphRow = { ...auth, id: id as Id };
    for (const relation of users.relations.values()) {
      const value = auth[relation.name];
      const isGiven = relation.kind !== 'belongs_to' || typeof value === 'object';
      const path = `request.auth.${relation.name}`;
      if (isGiven) this.#addRelation({ from: users, row, relation, value, path });
    }
    return row;
  }

  one(collection: string, id: Id): Row | undefined {
    const key = joinedKey(collection, id);
    return this.#rows.get(key) ?? (this.#named.has(key) ? this.#bareRow(collection, id) : undefined);
  }

  many(collection: string, relation: string, id: Id): readonly Row[] {
    const owner = joinedKey(collection, id);
    const elements = this.#elements.get(joinedKey(collection, id, relation));
    if (elements !== undefined) return elements;
    if (owner === this.#caller)
      throw new TypeError(
        `request.auth.${relation}: the policy reads these records of the caller; give them, or an empty list`,
      );
    if (!this.#rows.has(owner)) this.#requireGiven(collection, id);
    return [];
  }

  #requireGiven(collection: string, id: Id): void {
    const path = this.#named.get(joinedKey(collection, id));
    if (path === undefined) return;
    throw new TypeError(
      `${path}: the policy reads this record of ${collection}; give the record in the place of its id`,
    );
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
  #reference(name: string, value: unknown, path: string): Id {
    if (typeof value === 'object' && value !== null) return this.add(name, value, path).id;
    const id = readGivenId(this.#catalog.collections.get(name)!, value, path);
    this.#named.set(joinedKey(name, id), path);
    return id;
  }

  #element(name: string, value: unknown, path: string): GraphRow {
    const id = this.#reference(name, value, path);
    return this.#rows.get(joinedKey(name, id)) ?? this.#bareRow(name, id);
  }

  /** A row of which only the id is known, unless it is given elsewhere. */
  #bareRow(name: string, id: Id): GraphRow {
    const row: GraphRow = Object.assign(Object.create(null), { id });
    const { fields, relations } = this.#catalog.collections.get(name)!;
    const read = (member: string): unknown => {
      const given = this.#rows.get(joinedKey(name, id));
      if (given === undefined) this.#requireGiven(name, id);
      return given?.[member];
    };
    for (const member of [...fields.keys(), ...relations.keys()])
      Object.defineProperty(row, member, { get: () => read(member) });
    return row;
  }

  /** A record without an id gets one that no other record of this graph has. */
  #newId(collection: CatalogCollection): Id {
    const made = ++this.#made;
    return keyOf(collection).kind === 'int' ? -made : `00000000-0000-4000-8000-${made.toString(16).padStart(12, '0')}`;
  }
}

const joinedKey = (...parts: readonly Id[]): string => parts.join('\u0000');

const EXPECTED_IDS = { uuid: 'a UUID', int: 'a whole number', string: 'a string that is not empty' } as const;

function readGivenId(collection: CatalogCollection, value: unknown, path: string): Id {
  const { kind } = keyOf(collection);
  const id = KEYS[kind].readJson(value);
  if (id === undefined) throw new TypeError(`${path}: expected ${EXPECTED_IDS[kind]}, found ${JSON.stringify(value)}`);
  return id as Id;
}
