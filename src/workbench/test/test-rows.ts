/** The rows and callers of a test file, completed by the least values that the schema allows. */
import { hintOf, nearest } from '../../../grammar/suggest.ts';
import type { Row } from '../../policy/types.ts';
import type { Scalar } from '../../policy/values.ts';
import { isObject, valueOfDefault } from '../../records/write/input.ts';
import { FIELD_KINDS } from '../../schema/fields/index.ts';
import type { Path, Report } from '../../schema/file/issue.ts';
import type { BelongsTo, Collection, Field, Schema } from '../../schema/model/model.ts';

/** A row to insert: values by the names of fields and belongs_to; for users, `roles` too. */
export interface TestRow {
  readonly collection: string;
  readonly name: string;
  readonly id: string;
  readonly values: Row;
  /** The names of many_to_many relations → ids. */
  readonly links: ReadonlyMap<string, readonly string[]>;
  readonly path: Path;
}

/** A row as the file has it. */
interface GivenRow {
  readonly collection: Collection;
  readonly name: string;
  readonly given: Row;
  readonly path: Path;
}

/** The same in every run, so that failures can be compared. Pages have no synchronous SHA-256. */
function idOfName(collection: string, name: string): string {
  const hex = MULTIPLIERS.map((multiplier) => hashOf(`${collection}/${name}`, multiplier)).join('');
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-7${hex.slice(13, 16)}-8${hex.slice(17, 20)}-${hex.slice(20, 32)}`;
}

const MULTIPLIERS = [0x01000193, 0x9e3779b1, 0x85ebca77, 0xc2b2ae3d];

/** FNV-1a with this multiplier, and the last steps of MurmurHash3, in hexadecimal. */
function hashOf(text: string, multiplier: number): string {
  let hash = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), multiplier);
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return ((hash ^ (hash >>> 16)) >>> 0).toString(16).padStart(8, '0');
}

/** The names of rows, by collection. */
export class RowNames {
  readonly #ids = new Map<string, Map<string, string>>();
  readonly #names = new Map<string, string>();

  add(collection: string, name: string): void {
    const id = idOfName(collection, name);
    const known = this.#ids.get(collection) ?? new Map();
    this.#ids.set(collection, known.set(name, id));
    this.#names.set(id, name);
  }

  idOf(collection: string, name: string): string | undefined {
    return this.#ids.get(collection)?.get(name);
  }

  of(collection: string): readonly string[] {
    return [...(this.#ids.get(collection)?.keys() ?? [])];
  }

  nameOf(id: string): string | undefined {
    return this.#names.get(id);
  }

  /** The text with names in place of ids. */
  readable(text: string): string {
    return text.replaceAll(ANY_ID, (id) => this.#names.get(id) ?? id);
  }

  /** Reports an unknown name. */
  referenced(relation: { readonly collection: string }, given: unknown, place: NamePlace): string | undefined {
    const { collection } = relation;
    const id = typeof given === 'string' ? this.idOf(collection, given) : undefined;
    if (id !== undefined) return id;
    const hint = hintOf(nearest(String(given), this.of(collection)));
    const message = `\`rows\` has no \`${String(given)}\` of \`${collection}\`${hint}`;
    return place.report({ code: 'unknown_row', message, path: place.path });
  }
}
export interface NamePlace {
  readonly report: Report;
  readonly path: Path;
}
const ANY_ID = /\b[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-8[0-9a-f]{3}-[0-9a-f]{12}/g;

interface RowsPlace {
  readonly schema: Schema;
  readonly now: string;
  readonly names: RowNames;
  readonly report: Report;
}

/** Names all rows first, because they may refer to each other in any order. */
export function readRows(raw: Row, place: RowsPlace): readonly TestRow[] {
  const written = [...callersIn(raw.as, place), ...rowsIn(raw.rows, place)];
  for (const { collection, name } of written) place.names.add(collection.name, name);
  return written.map((row) => completedRow(row, place));
}

function callersIn(given: unknown, { schema, report }: RowsPlace): readonly GivenRow[] {
  const users = schema.collections.get('users')!;
  return namedEntries(given, ['as'], report).flatMap(([name, row]) => {
    const path = ['as', name];
    if (name === 'guest') {
      report({ code: 'reserved_name', message: '`guest` is always there; choose another name', path, at: 'key' });
      return [];
    }
    return isObject(row) ? [{ collection: users, name, given: row, path }] : notAnObject(report, path);
  });
}

function rowsIn(given: unknown, { schema, report }: RowsPlace): readonly GivenRow[] {
  return namedEntries(given, ['rows'], report).flatMap(([name, rows]) => {
    const collection = schema.collections.get(name);
    const path = ['rows', name];
    if (collection === undefined) {
      const message = `unknown collection \`${name}\`${hintOf(nearest(name, schema.collections.keys()))}`;
      report({ code: 'unknown_collection', message, path, at: 'key' });
      return [];
    }
    return namedEntries(rows, path, report).flatMap(([row, values]) => {
      const at = [...path, row];
      const members = values ?? {};
      return isObject(members) ? [{ collection, name: row, given: members, path: at }] : notAnObject(report, at);
    });
  });
}

function namedEntries(given: unknown, path: Path, report: Report): readonly (readonly [string, unknown])[] {
  if (given === undefined || given === null) return [];
  return isObject(given) ? Object.entries(given) : notAnObject(report, path);
}

function notAnObject(report: Report, path: Path): never[] {
  report({ code: 'not_an_object', message: 'expected a mapping of names', path });
  return [];
}

function completedRow(row: GivenRow, place: RowsPlace): TestRow {
  const { collection, name, given, path } = row;
  const values: Record<string, unknown> = {};
  const links = new Map<string, readonly string[]>();
  for (const [key, value] of Object.entries(given)) readMember(row, { key, value, values, links }, place);
  for (const field of collection.fields.values())
    if (!Object.hasOwn(given, field.name)) values[field.name] = defaultOrLeast(field, row, place);
  for (const relation of collection.relations.values()) {
    if (relation.kind !== 'belongs_to' || Object.hasOwn(given, relation.name)) continue;
    values[relation.name] = null;
    if (relation.required) requireReference(relation, row, place);
  }
  if (collection.kind === 'users') {
    values.roles = rolesOfRow(row, place);
    if (!Object.hasOwn(given, 'email')) values.email = `${name.toLowerCase()}@example.com`;
  }
  return { collection: collection.name, name, id: place.names.idOf(collection.name, name)!, values, links, path };
}

function requireReference({ name, collection }: BelongsTo, row: GivenRow, { report }: RowsPlace): void {
  const message = `\`${row.collection.name}\` requires \`${name}\`; name a row of \`${collection}\``;
  report({ code: 'required', message, path: row.path, at: 'key' });
}

function rolesOfRow({ given, path }: GivenRow, { schema, report }: RowsPlace): readonly string[] {
  const roles = given.roles ?? [];
  if (!Array.isArray(roles)) {
    report({ code: 'wrong_type', message: 'expected a list of roles', path: [...path, 'roles'] });
    return [];
  }
  for (const [i, role] of roles.entries()) {
    if (schema.roles.has(role)) continue;
    const message = `unknown role \`${String(role)}\`${hintOf(nearest(String(role), schema.roles.keys()))}`;
    report({ code: 'unknown_role', message, path: [...path, 'roles', i] });
  }
  return roles;
}

interface MemberOfRow {
  readonly key: string;
  readonly value: unknown;
  readonly values: Record<string, unknown>;
  readonly links: Map<string, readonly string[]>;
}

function readMember({ collection, path }: GivenRow, member: MemberOfRow, { names, report }: RowsPlace): void {
  const { key, value, values, links } = member;
  const at: Path = [...path, key];
  const field = collection.fields.get(key);
  const relation = collection.relations.get(key);
  if (key === 'roles' && collection.kind === 'users') return;
  if (field !== undefined) {
    values[key] = value === null ? null : fieldValue(field, value, { report, path: at });
  } else if (relation?.kind === 'belongs_to') {
    values[key] = value === null ? null : names.referenced(relation, value, { report, path: at });
  } else if (relation?.kind === 'many_to_many') {
    if (!Array.isArray(value))
      return void report({ code: 'wrong_type', message: 'expected a list of names', path: at });
    const ids = value.map((each, i) => names.referenced(relation, each, { report, path: [...at, i] }));
    links.set(
      key,
      ids.filter((id) => id !== undefined),
    );
  } else if (relation !== undefined) {
    const message = `\`${key}\` is written from the other side: by \`${relation.via}\` of \`${relation.collection}\``;
    report({ code: 'read_only', message, path: at, at: 'key' });
  } else {
    const known = [...collection.fields.keys(), ...collection.relations.keys()];
    const message = `\`${collection.name}\` has no field \`${key}\`${hintOf(nearest(key, known))}`;
    report({ code: 'unknown_field', message, path: at, at: 'key' });
  }
}

function fieldValue(field: Field, value: unknown, { report, path }: NamePlace): Scalar | undefined {
  const read = FIELD_KINDS[field.type].fromJson(value, field);
  return read.error === undefined ? read.value : report({ code: read.error.code, message: read.error.detail, path });
}

function defaultOrLeast(field: Field, row: GivenRow, { now, report }: RowsPlace): Scalar | null {
  const value = valueOfDefault(field.default, now);
  if (value !== undefined) return value;
  if (!field.required) return null;
  const least = leastOf(field, row.name);
  if (least !== undefined) return least;
  const message = `\`${row.collection.name}\` requires \`${field.name}\``;
  report({ code: 'required', message, path: row.path, at: 'key' });
  return null;
}

/** Values that are the least of some type. */
const LEAST = [false, 0, '0', '1970-01-01T00:00:00Z', '1970-01-01', '00:00:00', idOfName('', ''), 'AA=='];

/** The first of an enum, the lower bound, the name of the row, or the least value of the type. */
function leastOf(field: Field, name: string): Scalar | undefined {
  const { min, max, enum: allowed = [] } = field;
  const kind = FIELD_KINDS[field.type];
  const bounds = kind.bounds === 'value' ? [min, max] : [];
  const text = kind.bounds === 'length' ? name.padEnd(Number(min ?? 0), '-').slice(0, Number(max ?? Infinity)) : name;
  const candidates = [allowed[0], bounds[0], text, ...LEAST, bounds[1]];
  for (const candidate of candidates) {
    const read = candidate === undefined ? undefined : kind.fromJson(candidate, field);
    if (read !== undefined && read.error === undefined) return read.value;
  }
  return undefined;
}
