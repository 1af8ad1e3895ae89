/** Rows and callers of a YAML text, by name → rows as policies see them. */
import { parse } from 'yaml';
import { GUEST_ROW } from '../policy/check/guests.ts';
import { scalarOf } from '../policy/scalar-types.ts';
import type { Related, Row } from '../policy/types.ts';
import { effectiveRoles } from '../schema/model/effective-roles.ts';
import type { Collection, Relation, Schema } from '../schema/model/model.ts';

interface NamedWorldRow {
  readonly name: string;
  readonly row: Row;
}
export interface PlaygroundWorld {
  /** With a guest at the end. */
  readonly callers: readonly NamedWorldRow[];
  readonly rows: ReadonlyMap<string, readonly NamedWorldRow[]>;
  readonly related: Related;
  readonly errors: readonly string[];
}

type GivenMapping = Readonly<Record<string, unknown>>;
const isMapping = (value: unknown): value is GivenMapping =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** An id for each name, in the order of the text. */
const idAt = (index: number): string => `00000000-0000-4000-8000-${(index + 1).toString(16).padStart(12, '0')}`;

export function readWorld(text: string, schema: Schema): PlaygroundWorld {
  try {
    const given: unknown = parse(text) ?? {};
    return new WorldReader(schema, isMapping(given) ? given : {}).read();
  } catch (error) {
    return {
      callers: [GUEST_CALLER],
      rows: new Map(),
      related: new WorldRows(schema, new Map()),
      errors: [String(error)],
    };
  }
}

const GUEST_CALLER: NamedWorldRow = { name: 'guest', row: GUEST_ROW };

class WorldReader {
  readonly #schema: Schema;
  readonly #given: GivenMapping;
  readonly #ids = new Map<string, string>();
  readonly #errors: string[] = [];

  constructor(schema: Schema, given: GivenMapping) {
    this.#schema = schema;
    this.#given = given;
  }

  read(): PlaygroundWorld {
    const callers = this.#mappings(this.#given.callers, 'callers');
    const tables = this.#mappings(this.#given.rows, 'rows').map(
      ([collection, rows]) => [collection, this.#mappings(rows, `rows.${collection}`)] as const,
    );
    // Callers are users, whom rows may name.
    const all = [['users', callers] as const, ...tables];
    for (const [collection, rows] of all) for (const [name] of rows) this.#name(collection, name);
    const rows = new Map<string, NamedWorldRow[]>();
    for (const [collection, named] of all) {
      const known = this.#schema.collections.get(collection);
      if (known === undefined) {
        this.#errors.push(`rows: unknown collection ${collection}`);
        continue;
      }
      const made = named.map(([name, members]) => ({ name, row: this.#row(known, name, members) }));
      rows.set(collection, [...(rows.get(collection) ?? []), ...made]);
    }
    const users = (rows.get('users') ?? []).slice(0, callers.length);
    const related = new WorldRows(this.#schema, rows);
    return { callers: [...users, GUEST_CALLER], rows, related, errors: this.#errors };
  }

  #mappings(given: unknown, place: string): readonly (readonly [string, GivenMapping])[] {
    if (given === undefined || given === null) return [];
    if (isMapping(given)) return Object.entries(given).map(([name, each]) => [name, isMapping(each) ? each : {}]);
    this.#errors.push(`${place}: expected a mapping from names`);
    return [];
  }

  #name(collection: string, name: string): void {
    const key = `${collection} ${name}`;
    if (!this.#ids.has(key)) this.#ids.set(key, idAt(this.#ids.size));
  }

  #row(collection: Collection, name: string, members: GivenMapping): Row {
    const row: Record<string, unknown> = { id: this.#ids.get(`${collection.name} ${name}`) };
    const place = `${collection.name}.${name}`;
    for (const { name: field, default: otherwise } of collection.fields.values())
      row[field] = otherwise?.kind === 'constant' ? otherwise.value : null;
    for (const [member, value] of Object.entries(members)) {
      const [field, relation] = [collection.fields.get(member), collection.relations.get(member)];
      if (member === 'roles' && collection.kind === 'users') row.roles = this.#roles(value, place);
      else if (field !== undefined) row[member] = this.#value(field.type, value, `${place}.${member}`);
      else if (relation !== undefined) row[member] = this.#reference(relation, value, `${place}.${member}`);
      else this.#errors.push(`${place}: unknown member ${member}`);
    }
    if (collection.kind === 'users') row.roles ??= [];
    return row;
  }

  #roles(value: unknown, place: string): readonly string[] {
    const roles = Array.isArray(value) ? value.map(String) : [];
    for (const role of roles) if (!this.#schema.roles.has(role)) this.#errors.push(`${place}: unknown role ${role}`);
    return effectiveRoles(this.#schema, roles);
  }

  #value(type: Parameters<typeof scalarOf>[0], value: unknown, place: string): unknown {
    if (value === null) return null;
    const { readJson, label } = scalarOf(type);
    const read = readJson(value instanceof Date ? value.toISOString() : value);
    if (read === undefined) this.#errors.push(`${place}: expected ${label}`);
    return read ?? null;
  }

  #reference(relation: Relation, value: unknown, place: string): unknown {
    if (relation.kind === 'many_to_many')
      return (Array.isArray(value) ? value : []).flatMap((each) => this.#id(relation, each, place) ?? []);
    return value === null ? null : (this.#id(relation, value, place) ?? null);
  }

  #id({ collection }: Relation, name: unknown, place: string): string | undefined {
    const id = this.#ids.get(`${collection} ${String(name)}`);
    if (id === undefined) this.#errors.push(`${place}: \`${collection}\` has no row ${String(name)}`);
    return id;
  }
}

class WorldRows implements Related {
  readonly #schema: Schema;
  readonly #rows: ReadonlyMap<string, readonly NamedWorldRow[]>;

  constructor(schema: Schema, rows: ReadonlyMap<string, readonly NamedWorldRow[]>) {
    this.#schema = schema;
    this.#rows = rows;
  }

  one(collection: string, id: string): Row | undefined {
    return this.#of(collection).find((row) => row.id === id);
  }

  many(collection: string, name: string, id: string): readonly Row[] {
    const relation = this.#schema.collections.get(collection)!.relations.get(name)!;
    if (relation.kind === 'belongs_to') return [];
    if (relation.kind !== 'many_to_many')
      return this.#of(relation.collection).filter((row) => row[relation.via] === id);
    const ids = (this.one(collection, id)?.[name] ?? []) as readonly string[];
    return ids.map((each) => this.one(relation.collection, each)).filter((row) => row !== undefined);
  }

  #of(collection: string): readonly Row[] {
    return (this.#rows.get(collection) ?? []).map(({ row }) => row);
  }
}
