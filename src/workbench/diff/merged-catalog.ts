/** Two schemas as one catalog: their policies are compared over records that have the members of both. */

import type { RulesPlace } from '../../policy/analyse/solve/solve.ts';
import { CALLER } from '../../policy/check/resolve.ts';
import { compileChecked } from '../../policy/compile.ts';
import type {
  Catalog,
  CatalogBelongsTo,
  CatalogCollection,
  CatalogField,
  CatalogRelation,
  Checked,
  ColumnOperand,
  ElementsRelation,
  Policy,
} from '../../policy/types.ts';
import type { Collection, Schema, SoftDelete } from '../../schema/model/model.ts';

type Mutable = CatalogCollection & {
  readonly fields: Map<string, CatalogField>;
  readonly relations: Map<string, CatalogRelation>;
  softDelete?: SoftDelete | undefined;
};
/** The names of the old schema, as the new one has them. */
interface Renames {
  readonly collections: ReadonlyMap<string, string>;
  readonly members: ReadonlyMap<string, ReadonlyMap<string, string>>;
}

/** As `collection.member`, or `collection.member.path` for a part of json. */
interface ChangedMembers {
  /** Members whose type or target is another in the new schema. */
  readonly members: Set<string>;
  /** Members that get another value in the new schema if a body leaves them out. */
  readonly defaults: Set<string>;
}

export class MergedCatalog {
  readonly catalog: Catalog;
  readonly #renames: Renames;
  readonly #changed: ChangedMembers = { members: new Set(), defaults: new Set() };

  constructor(old: Schema, changed: Schema) {
    this.#renames = renamesOf(old, changed);
    const collections = new Map<string, Mutable>();
    for (const collection of changed.collections.values()) collections.set(collection.name, copied(collection));
    for (const collection of old.collections.values()) this.#add(collection, collections);
    const roles = new Map([...old.roles, ...changed.roles]);
    this.catalog = { collections, roles, timezone: changed.timezone };
  }

  /** The new name of an old collection. */
  nameOf(collection: string): string {
    return this.#renames.collections.get(collection) ?? collection;
  }

  memberOf(collection: string, member: string): string {
    return this.#renames.members.get(collection)?.get(member) ?? member;
  }

  #add(old: Collection, collections: Map<string, Mutable>): void {
    const name = this.nameOf(old.name);
    const found = collections.get(name) ?? { ...copied(old), name, fields: new Map(), relations: new Map() };
    collections.set(name, found);
    found.softDelete ??= old.softDelete;
    for (const field of old.fields.values()) {
      const own = this.memberOf(old.name, field.name);
      const other = found.fields.get(own);
      if (other === undefined && !found.relations.has(own)) found.fields.set(own, { ...field, name: own });
      else if (other === undefined || other.type !== field.type) this.#changed.members.add(`${name}.${own}`);
      else this.#merge(found, field, other);
    }
    for (const relation of old.relations.values()) this.#addRelation(found, old.name, relation);
  }

  #merge({ name, fields }: Mutable, old: CatalogField, changed: CatalogField): void {
    const place = `${name}.${changed.name}`;
    fields.set(changed.name, widerField(old, changed));
    for (const [path, { type }] of old.paths ?? [])
      if (changed.paths?.get(path)?.type !== type) this.#changed.members.add(`${place}.${path}`);
    if (defaultInJson(old) !== defaultInJson(changed)) this.#changed.defaults.add(place);
  }

  #addRelation(found: Mutable, from: string, relation: CatalogRelation): void {
    const own = this.memberOf(from, relation.name);
    const target = this.nameOf(relation.collection);
    const moved = { ...relation, name: own, collection: target };
    if ('via' in moved) Object.assign(moved, { via: this.memberOf(relation.collection, moved.via) });
    const other = found.relations.get(own);
    if (other === undefined && !found.fields.has(own)) found.relations.set(own, moved);
    else if (other?.kind !== moved.kind || other.collection !== target)
      this.#changed.members.add(`${found.name}.${own}`);
    else if (other.kind === 'belongs_to' && moved.kind === 'belongs_to') {
      found.relations.set(own, widerReference(moved, other));
      if (defaultInJson(moved) !== defaultInJson(other)) this.#changed.defaults.add(`${found.name}.${own}`);
    }
  }

  /**
   * The policy over the merged catalog, or over the deleted records of it. Undefined: it reads a member that the schemas declare
   * differently, or the local time of another time zone than that of the new schema.
   */
  policy(policy: Policy, { catalog, action, collection }: RulesPlace, isOld: boolean): Policy | undefined {
    const renames = isOld ? this.#renames : NO_RENAMES;
    const moved = new Moving(catalog, { renames, changed: this.#changed, collection });
    const checked = moved.tree(policy.checked) as Checked;
    const { text, source, parts } = policy;
    return moved.isLost ? undefined : compileChecked({ checked, text, source, parts, catalog, action });
  }
}

const NO_RENAMES: Renames = { collections: new Map(), members: new Map() };

const copied = (collection: Collection): Mutable => ({
  ...collection,
  tenantLayout: null,
  fields: new Map(collection.fields),
  relations: new Map(collection.relations),
});

function renamesOf(old: Schema, changed: Schema): Renames {
  const collections = new Map<string, string>();
  const members = new Map<string, ReadonlyMap<string, string>>();
  for (const { name, was, fields, relations } of changed.collections.values()) {
    const former = was !== undefined && old.collections.has(was) ? was : name;
    if (former !== name) collections.set(former, name);
    const renamed = [...fields.values(), ...relations.values()].flatMap((member) => {
      const before = (member as { readonly was?: string }).was;
      return before === undefined ? [] : [[before, member.name] as const];
    });
    members.set(former, new Map(renamed));
  }
  return { collections, members };
}

/** The default of a field or belongs_to: the members of schemas have it, those of other catalogs do not. */
const defaultInJson = (member: object): string | undefined =>
  JSON.stringify((member as { readonly default?: unknown }).default);

type MemberWithKey = Pick<CatalogField, 'uniqueWithin' | 'uniqueKey'>;

const haveOneKey = (a: MemberWithKey, b: MemberWithKey): boolean =>
  JSON.stringify([a.uniqueWithin, a.uniqueKey]) === JSON.stringify([b.uniqueWithin, b.uniqueKey]);

function withoutKey<T extends MemberWithKey>(member: T): Omit<T, keyof MemberWithKey> {
  const { uniqueWithin: _, uniqueKey: __, ...rest } = member;
  return rest;
}

/** References of either relation. */
function widerReference(a: CatalogBelongsTo, b: CatalogBelongsTo): CatalogBelongsTo {
  const isUnique = (relation: CatalogBelongsTo & { readonly unique?: boolean }): boolean => relation.unique === true;
  const merged = { ...b, required: a.required && b.required, ...(isUnique(b) && { unique: isUnique(a) }) };
  return haveOneKey(a, b) ? merged : withoutKey(merged);
}

/** The digits of a decimal that has the values of either. */
function digitsOfBoth(a: CatalogField, b: CatalogField): Pick<CatalogField, 'precision' | 'scale'> {
  if (a.scale === undefined || b.scale === undefined) return {};
  const scale = Math.max(a.scale, b.scale);
  if (a.precision === undefined || b.precision === undefined) return { scale };
  return { scale, precision: scale + Math.max(a.precision - a.scale, b.precision - b.scale) };
}

/** Values of either field. */
function widerField(a: CatalogField, b: CatalogField): CatalogField {
  const both = <T>(x: T | undefined, y: T | undefined): T | undefined =>
    x === undefined || y === undefined ? undefined : x;
  const { enum: names, min, max, scale, precision, ...rest } = haveOneKey(a, b) ? b : withoutKey(b);
  const isLess = (x: number | string, y: number | string): boolean =>
    typeof x === 'number' && typeof y === 'number' ? x < y : Number.isFinite(Number(x)) ? Number(x) < Number(y) : x < y;
  const least = both(a.min, min) !== undefined ? (isLess(a.min!, min!) ? a.min! : min!) : undefined;
  const most = both(a.max, max) !== undefined ? (isLess(a.max!, max!) ? max! : a.max!) : undefined;
  return {
    ...rest,
    required: a.required && b.required,
    unique: a.unique && b.unique,
    search: a.search === true || b.search === true,
    ...(both(a.enum, names) && { enum: [...new Set([...a.enum!, ...names!])] }),
    ...digitsOfBoth(a, b),
    ...(least !== undefined && { min: least }),
    ...(most !== undefined && { max: most }),
  };
}

interface MovedPlace {
  readonly renames: Renames;
  readonly changed: ChangedMembers;
  readonly collection: string;
}

const formerName = ({ collections }: Renames, name: string): string =>
  [...collections].find(([, now]) => now === name)?.[0] ?? name;

/** Puts the collections and members of the merged catalog into a checked tree. */
class Moving {
  readonly #catalog: Catalog;
  readonly #renames: Renames;
  readonly #changed: ChangedMembers;
  /** The collection of the rule, whose members a body has. */
  readonly #body: string;
  isLost = false;

  constructor(catalog: Catalog, { renames, changed, collection }: MovedPlace) {
    this.#catalog = catalog;
    this.#renames = renames;
    this.#changed = changed;
    this.#body = formerName(renames, collection);
  }

  /** Any part of a tree: the keys show which nodes name collections and members. */
  tree(node: unknown, within = ''): unknown {
    if (Array.isArray(node)) return node.map((each) => this.tree(each, within));
    if (typeof node !== 'object' || node === null) return node;
    const record = node as Readonly<Record<string, unknown>>;
    this.#readClock(record);
    if (record.kind === 'column') return this.#column(node as ColumnOperand);
    if (record.kind === 'request' && (record.source === 'auth' || record.source === 'data'))
      return this.#request(record);
    const from = collectionOf(record) ?? within;
    const entries = Object.entries(record).map(([key, value]) => [key, this.#part(key, value, from)]);
    return Object.fromEntries(entries);
  }

  /** Days and hours of two time zones begin at different instants, which a search does not all try. */
  #readClock({ kind, zone, name, detail }: Readonly<Record<string, unknown>>): void {
    const read = kind === 'now' ? zone : kind === 'request' && String(name).startsWith('now.') ? detail : undefined;
    if (read !== undefined && read !== this.#catalog.timezone) this.isLost = true;
  }

  #part(key: string, value: unknown, from: string): unknown {
    if (key === 'collection' || key === 'from' || key === 'id') return this.#collection(value);
    if (key === 'relation' || key === 'via') return this.#relation(value, from);
    if (key === 'field') return this.#field(value, from);
    return key === 'span' ? value : this.tree(value, from);
  }

  #collection = (name: unknown): unknown =>
    typeof name === 'string' ? (this.#renames.collections.get(name) ?? name) : name;

  #member(collection: string, name: string): string {
    const own = this.#renames.members.get(collection)?.get(name) ?? name;
    if (this.#changed.members.has(`${this.#collection(collection)}.${own}`)) this.isLost = true;
    return own;
  }

  #column(operand: ColumnOperand): ColumnOperand {
    const end = operand.steps.at(-1)?.relation.collection ?? operand.collection;
    const { column } = operand;
    const moved =
      column.kind === 'id' || column.kind === 'element'
        ? column
        : column.kind === 'field'
          ? { ...column, field: this.#field(column.field, end) }
          : { ...column, relation: this.#relation(column.relation, end) };
    return {
      ...operand,
      collection: this.#collection(operand.collection),
      scope: this.tree(operand.scope),
      steps: operand.steps.map(({ from, relation }) => ({
        from: this.#collection(from),
        relation: this.#relation(relation, from),
      })),
      column: moved,
      type: this.tree(operand.type),
    } as ColumnOperand;
  }

  #request(record: Readonly<Record<string, unknown>>): unknown {
    const name = String(record.name);
    const from = record.source === 'auth' ? 'users' : this.#body;
    const own = CALLER.has(name) && from === 'users' ? name : this.#member(from, name);
    // A search takes any value for the default of a member that a body leaves out.
    if (record.source === 'data' && this.#changed.defaults.has(`${this.#collection(from)}.${own}`)) this.isLost = true;
    return { ...record, name: own, type: this.tree(record.type) };
  }

  #field(field: unknown, from: string): unknown {
    const { name, part } = field as CatalogField;
    const own = this.#member(from, part?.member ?? name);
    const whole = this.#catalog.collections.get(this.#collection(from) as string)?.fields.get(own);
    if (part === undefined) return whole ?? field;
    const path = name.slice(part.member.length + 1);
    this.#member(from, `${own}.${path}`);
    return whole?.paths?.get(path) ?? field;
  }

  #elements(relation: ElementsRelation, from: string): unknown {
    const field = this.#field(relation.field, from) as CatalogField;
    return { ...relation, name: field.name, field };
  }

  #relation(relation: unknown, from: string): unknown {
    const { name, kind } = relation as { readonly name: string; readonly kind: string };
    if (kind === 'ancestors') return this.tree(relation, from);
    if (kind === 'elements') return this.#elements(relation as ElementsRelation, from);
    const own = this.#member(from, name);
    return this.#catalog.collections.get(this.#collection(from) as string)?.relations.get(own) ?? relation;
  }
}

/** The collection whose members a node names. */
function collectionOf({ from, collection }: Readonly<Record<string, unknown>>): string | undefined {
  if (typeof from === 'string') return from;
  return typeof collection === 'string' ? collection : undefined;
}
