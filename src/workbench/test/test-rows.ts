/** The rows and callers of a test file, completed by the least values that the schema allows. */
import { hintOf, nearest } from '../../../grammar/suggest.ts';
import { GUEST } from '../../policy/check/guests.ts';
import { keyOf, type Row, RULED_ACTIONS } from '../../policy/types.ts';
import type { Scalar } from '../../policy/values.ts';
import { type RecordKey, recordKeyOf } from '../../records/record-key.ts';
import { isObject, valueOfDefault } from '../../records/write/input.ts';
import { FIELD_KINDS } from '../../schema/fields/index.ts';
import type { DocumentPath, Report } from '../../schema/file/issue.ts';
import { hasCompositeKey, idOfValues } from '../../schema/model/composite-key.ts';
import type { BelongsTo, Collection, Field, Schema } from '../../schema/model/model.ts';

/** The keys of tests, beside collections and callers. */
const TEST_KEYS: readonly string[] = ['as', 'query', 'request', 'expect', 'data', 'now', GUEST, ...RULED_ACTIONS];
export const isCallerName = (name: string): boolean => !TEST_KEYS.includes(name);

/** A row to insert: values by the names of fields and belongs_to; for users, `roles` too. */
export interface TestRow {
  readonly collection: string;
  readonly name: string;
  readonly id: string;
  readonly values: Row;
  /** The names of many_to_many relations → ids. */
  readonly links: ReadonlyMap<string, readonly string[]>;
  readonly path: DocumentPath;
}

/** A row as the file has it. */
interface GivenRow {
  readonly collection: Collection;
  readonly name: string;
  readonly given: Row;
  readonly path: DocumentPath;
}

/** The same in every run, so that failures can be compared. Pages have no synchronous SHA-256. */
function idOfName(collection: string, name: string): string {
  const hex = MULTIPLIERS.map((multiplier) => seededHash(`${collection}/${name}`, multiplier)).join('');
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-7${hex.slice(13, 16)}-8${hex.slice(17, 20)}-${hex.slice(20, 32)}`;
}

const MULTIPLIERS = [0x01000193, 0x9e3779b1, 0x85ebca77, 0xc2b2ae3d];

/** FNV-1a with this multiplier, and the last steps of MurmurHash3, in hexadecimal. */
function seededHash(text: string, multiplier: number): string {
  let hash = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), multiplier);
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return ((hash ^ (hash >>> 16)) >>> 0).toString(16).padStart(8, '0');
}

/** A name that an int key can have as its value. */
const INT_NAME = /^[1-9][0-9]{0,14}$/;

/** The ids of rows by their names: derived from them, or for int keys the least ones that no row of the collection names. */
function idsOfNames(collection: Collection, names: readonly string[]): ReadonlyMap<string, string> {
  const taken = new Set(names);
  let last = 0;
  const least = (): string => {
    do last++;
    while (taken.has(String(last)));
    return String(last);
  };
  const makers = {
    uuid: (name: string) => idOfName(collection.name, name),
    int: (name: string) => (INT_NAME.test(name) ? name : least()),
    string: (name: string) => name,
  };
  return new Map(names.map((name) => [name, makers[keyOf(collection).kind](name)]));
}

interface NamedRows {
  readonly key: RecordKey;
  readonly ids: Map<string, string>;
  readonly names: Map<string, string>;
}

/** The names of rows, by collection. */
export class RowNames {
  readonly #collections = new Map<string, NamedRows>();
  /** The names of UUIDs, which texts can hold. */
  readonly #uuids = new Map<string, string>();

  add(collection: Collection, ids: ReadonlyMap<string, string>): void {
    const { name: of } = collection;
    const rows = this.#collections.get(of) ?? { key: recordKeyOf(collection), ids: new Map(), names: new Map() };
    this.#collections.set(of, rows);
    for (const [name, id] of ids) {
      rows.ids.set(name, id);
      rows.names.set(id, name);
      this.#uuids.set(id, name);
    }
  }

  idOf(collection: string, name: string): string | undefined {
    return this.#collections.get(collection)?.ids.get(name);
  }

  of(collection: string): readonly string[] {
    return [...(this.#collections.get(collection)?.ids.keys() ?? [])];
  }

  nameOf(collection: string, id: string): string | undefined {
    return this.#collections.get(collection)?.names.get(id);
  }

  /** The text with names in place of ids that are UUIDs. */
  readable(text: string): string {
    return text.replaceAll(ANY_ID_IN_ROWS, (id) => this.#uuids.get(id) ?? id);
  }

  /** The id as bodies and policies have it. Reports an unknown name. */
  referenced(relation: { readonly collection: string }, given: unknown, place: NamePlace): Scalar | undefined {
    const { collection } = relation;
    const isName = typeof given === 'string' || typeof given === 'number';
    const id = isName ? this.idOf(collection, String(given)) : undefined;
    if (id !== undefined) return this.#collections.get(collection)!.key.value(id);
    const hint = hintOf(nearest(String(given), this.of(collection)));
    const message = `\`rows\` has no \`${String(given)}\` of \`${collection}\`${hint}`;
    return place.report({ code: 'unknown_row', message, path: place.path });
  }
}
export interface NamePlace {
  readonly report: Report;
  readonly path: DocumentPath;
}
const ANY_ID_IN_ROWS = /\b[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-8[0-9a-f]{3}-[0-9a-f]{12}/g;

interface RowsPlace {
  readonly schema: Schema;
  readonly now: string;
  readonly names: RowNames;
  readonly report: Report;
}

/** Names all rows first, because they may refer to each other in any order. */
export function readRows(raw: Row, place: RowsPlace): readonly TestRow[] {
  const written = [...callersIn(raw.as, place), ...rowsIn(raw.rows, place)];
  for (const row of written) checkCallerName(row, place);
  const byCollection = Map.groupBy(written, ({ collection }) => collection);
  for (const [collection, rows] of byCollection)
    if (!hasCompositeKey(collection)) {
      const names = rows.map(({ name }) => name);
      place.names.add(collection, idsOfNames(collection, names));
    }
  // The parts of these keys refer to rows that have their ids now.
  for (const [collection, rows] of byCollection)
    if (hasCompositeKey(collection)) {
      const ids = rows.map((row) => [row.name, compositeIdOf(row, place)] as const);
      place.names.add(collection, new Map(ids));
    }
  return written.map((row) => completedRow(row, place));
}

/** A table of callers could not name this one. */
function checkCallerName({ collection, name, path }: GivenRow, { report }: RowsPlace): void {
  if (collection.kind !== 'users' || isCallerName(name)) return;
  const reason = name === GUEST ? `\`${name}\` is always there` : `\`${name}\` is a key of tests`;
  report({ code: 'reserved_name', message: `${reason}; choose another name`, path, at: 'key' });
}

/** The id that the members of the row make; incomplete ones are reported with the row. */
function compositeIdOf(row: GivenRow, place: RowsPlace): string {
  const silent: NamePlace = { report: () => undefined, path: [] };
  const { fields, relations, key } = row.collection;
  const members = [...fields.values(), ...relations.values()].filter((member) => 'column' in member);
  const values = (key?.parts ?? []).map(({ column }) => {
    const member = members.find((each) => each.column === column)!;
    const given = row.given[member.name];
    if ('kind' in member) return given == null ? undefined : place.names.referenced(member, given, silent);
    return given == null ? defaultOrLeast(member, row, { ...place, ...silent }) : fieldValue(member, given, silent);
  });
  return values.includes(undefined) || values.includes(null) ? row.name : idOfValues(values as readonly Scalar[]);
}

function callersIn(given: unknown, { schema, report }: RowsPlace): readonly GivenRow[] {
  const users = schema.collections.get('users')!;
  return namedEntries(given, ['as'], report).flatMap(([name, row]) => {
    const path = ['as', name];
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

function namedEntries(given: unknown, path: DocumentPath, report: Report): readonly (readonly [string, unknown])[] {
  if (given === undefined || given === null) return [];
  return isObject(given) ? Object.entries(given) : notAnObject(report, path);
}

function notAnObject(report: Report, path: DocumentPath): never[] {
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
  completeReferences(row, values, place);
  if (collection.kind === 'users') {
    values.roles = rolesOfRow(row, place);
    if (!Object.hasOwn(given, 'email')) values.email = `${name.toLowerCase()}@example.com`;
  }
  return { collection: collection.name, name, id: place.names.idOf(collection.name, name)!, values, links, path };
}

function completeReferences(row: GivenRow, values: Record<string, unknown>, place: RowsPlace): void {
  const { collection, given } = row;
  const references = [...collection.relations.values()].filter((relation) => relation.kind === 'belongs_to');
  for (const relation of references) {
    if (relation.columns !== undefined || Object.hasOwn(given, relation.name)) continue;
    values[relation.name] = null;
    if (relation.needed) requireReference(relation, row, place);
  }
  for (const { name, columns } of references)
    if (columns !== undefined) values[name] = idInColumns(collection, columns, values);
}

/** A reference of several columns has the values of their members. */
function idInColumns({ fields, relations }: Collection, columns: readonly string[], values: Row): string | null {
  const members = [...fields.values(), ...relations.values()];
  const held = columns.map((column) => {
    const member = members.find((each) => 'column' in each && each.column === column)!;
    return (values[member.name] ?? null) as Scalar | null;
  });
  return held.includes(null) ? null : idOfValues(held as readonly Scalar[]);
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
  const at: DocumentPath = [...path, key];
  const field = collection.fields.get(key);
  const relation = collection.relations.get(key);
  if (key === 'roles' && collection.kind === 'users') return;
  if (field !== undefined) {
    values[key] = value === null ? null : fieldValue(field, value, { report, path: at });
  } else if (relation?.kind === 'belongs_to' && relation.columns !== undefined) {
    const message = `\`${key}\` has the values of other members; give these`;
    report({ code: 'read_only', message, path: at, at: 'key' });
  } else if (relation?.kind === 'belongs_to') {
    values[key] = value === null ? null : names.referenced(relation, value, { report, path: at });
  } else if (relation?.kind === 'many_to_many') {
    if (!Array.isArray(value))
      return void report({ code: 'wrong_type', message: 'expected a list of names', path: at });
    const ids = value.map((each, i) => names.referenced(relation, each, { report, path: [...at, i] }));
    links.set(key, ids.filter((id) => id !== undefined).map(String));
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
  if (!field.needed) return null;
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
