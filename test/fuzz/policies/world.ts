/** A random schema with its rows, in memory and as tables. */
import { memoizedBy } from '../../../src/memoized.ts';
import { jsonPartsOf } from '../../../src/policy/emit/json-parts.ts';
import type {
  Catalog,
  CatalogBelongsTo,
  CatalogCollection,
  CatalogField,
  CatalogManyToMany,
  CatalogRelation,
  KeyKind,
  ReferencedColumn,
  Row,
  ScalarType,
} from '../../../src/policy/types.ts';
import { type Data, type Id, relatedOf } from '../../oracle/database.ts';
import type { Random } from '../random.ts';
import { INTS, JSON_PATHS, LIST_TYPES, scalarOf, TEXTS } from './values.ts';

export interface World {
  readonly catalog: Catalog;
  readonly data: Data;
  /** The result of an update of each row, in the order of the rows. */
  readonly updated: Written;
  /** The records of creates. */
  readonly created: Written;
}
/** Collection → rows that name their partners and members themselves. */
type Written = ReadonlyMap<string, readonly Row[]>;
interface Mutable extends CatalogCollection {
  readonly fields: Map<string, CatalogField>;
  readonly relations: Map<string, CatalogRelation>;
}

export const TYPES: readonly ScalarType[] = [
  'string',
  'int',
  'float',
  'bool',
  'datetime',
  'date',
  'time',
  'bigint',
  'uuid',
  'bytes',
  'decimal',
];
const FIELD_NAMES = [
  'title',
  'body',
  'score',
  'rank',
  'pinned',
  'due',
  'and',
  'not',
  'any',
  'is',
  'in',
  'null',
  'true',
];
const MORE_NAMES = [
  'constructor',
  'now',
  'select',
  'order',
  'user',
  'contains',
  'starts',
  'x',
  'n',
  'value',
  'class',
  'path',
  'next',
  'place',
  'total',
  'when',
  'code',
  'blob',
  'key',
  'at',
];
const COLLECTIONS = ['users', 'docs', 'teams', 'tags'];
/** Zones in which the day is often another one than in UTC. */
const ZONES = [undefined, 'UTC', 'Pacific/Kiritimati', 'America/St_Johns', 'Pacific/Pago_Pago'];
export const ROLES = ['admin', 'member', 'editor'];
/** Few rows for many policies, many rows for many decisions by each. */
export const FEW_ROWS = 96;
export const MANY_ROWS = 1200;

/** `most`: rows of a collection. */
const KEY_KINDS: readonly KeyKind[] = ['uuid', 'int', 'string'];

/** The share of references by another unique column than the key. */
const BY_CODE = 0.2;

/** The share of worlds with tables of other owners, and of the references there that no foreign key ensures. */
const OF_OWNERS = 0.3;
const MAY_BE_LOST = 0.6;
/** The share of such references to records that are gone. */
const LOST = 0.3;

interface WorldOptions {
  /** Rows of a collection. */
  readonly most?: number | undefined;
  readonly kinds?: readonly KeyKind[];
  readonly byCode?: number;
  /** Tables of other owners are drawn, too. */
  readonly hasOwners?: boolean;
}

export function randomWorld(random: Random, options: WorldOptions = {}): World {
  const { most = FEW_ROWS, kinds = KEY_KINDS, byCode = BY_CODE, hasOwners = false } = options;
  const collections = new Map<string, Mutable>();
  const names = COLLECTIONS.slice(0, 2 + random.below(3));
  for (const name of names) collections.set(name, randomCollection(name, kinds, random));
  const counts = new Map(names.map((name) => [name, countOf(most, random)]));
  for (const name of names) addRelations(collections, { from: name, counts, random, byCode });
  if (hasOwners && random.chance(OF_OWNERS)) loseReferences(collections, random);
  const catalog: Catalog = {
    collections,
    roles: new Map(ROLES.map((role) => [role, {}])),
    timezone: random.pick(ZONES),
  };
  const ids = new Map(names.map((name) => [name, randomIds(collections.get(name)!, counts.get(name)!, random)]));
  ids.get('users')![0] = '00000000-0000-4000-8000-000000000000';
  ids.get('users')!.splice(-1, 1, 'ffffffff-ffff-ffff-ffff-ffffffffffff');
  const data = randomData({ catalog, ids }, random);
  return { catalog, data, ...randomWrites({ catalog, data, ids }, random) };
}

/** Numbers and strings that fields have too. */
function randomIds({ key }: Pick<CatalogCollection, 'key'>, count: number, random: Random): Id[] {
  const ids = new Set<Id>();
  while (ids.size < count) ids.add(randomId(key?.kind ?? 'uuid', random));
  return [...ids];
}

function randomId(kind: KeyKind, random: Random): Id {
  if (kind === 'uuid') return random.uuid();
  if (kind === 'int') return (random.chance(0.3) ? random.pick(INTS) : random.below(2 ** 40)) as unknown as Id;
  const text = random.pick(TEXTS);
  return random.chance(0.3) && text !== '' ? text : `${text}${random.below(2 ** 20)}`;
}

/** Sometimes one of few rows has all rows of another as its elements, unless there are so many that nested quantifiers never end. */
function countOf(most: number, random: Random): number {
  if (most > FEW_ROWS) return most / 2 + random.below(most / 2);
  return random.chance(0.3) ? 1 + random.below(12) : 24 + random.below(most - 24);
}

interface Stored {
  readonly catalog: Catalog;
  readonly data: Data;
  readonly ids: ReadonlyMap<string, readonly Id[]>;
}

/** Writes each collection: an update of every row, and creates of similar rows. */
function randomWrites({ catalog, data, ids }: Stored, random: Random): Pick<World, 'updated' | 'created'> {
  const other = randomData({ catalog, ids }, random);
  const related = relatedOf(catalog, data);
  const updated = new Map<string, readonly Row[]>();
  const created = new Map<string, readonly Row[]>();
  for (const [name, { key, relations }] of catalog.collections) {
    const stored = data.rows.get(name)!;
    const make = (row: Row, i: number, isNew: boolean): Row => {
      const values = {
        ...row,
        ...someOf(other.rows.get(name)![i]!, random),
        id: isNew ? randomId(key?.kind ?? 'uuid', random) : row.id,
      };
      const held = [...relations.values()].flatMap((relation): [string, unknown][] => {
        if (relation.kind !== 'has_one' && relation.kind !== 'many_to_many') return [];
        const before = related.many(name, relation.name, row.id as Id).map(({ id }) => id as Id);
        const after = relation.kind === 'has_one' ? partnerAfter : membersAfter;
        return [[relation.name, after(before, { random, targets: ids.get(relation.collection)! })]];
      });
      return { ...values, ...Object.fromEntries(held) };
    };
    updated.set(
      name,
      stored.map((row, i) => make(row, i, false)),
    );
    created.set(
      name,
      stored.map((row, i) => make(row, i, true)),
    );
  }
  return { updated, created };
}

/** None, one, some or all of the members of a row: a patch. */
function someOf(row: Row, random: Random): Row {
  const share = random.pick([0, 0.1, 0.5, 1]);
  return Object.fromEntries(Object.entries(row).filter(([key]) => key !== 'id' && random.chance(share)));
}

interface Targets {
  readonly random: Random;
  readonly targets: readonly Id[];
}

/** Unchanged, null, or a record that may be another one's partner. */
function partnerAfter([before = null]: readonly (Id | null)[], { random, targets }: Targets): Id | null {
  const roll = random.next();
  return roll < 0.4 ? before : roll < 0.6 ? null : random.pick(targets);
}

/** As they were, a new set, or the old one with some gone and some more. */
function membersAfter(before: readonly Id[], { random, targets }: Targets): readonly Id[] {
  const more = Array.from({ length: random.below(4) }, () => random.pick(targets));
  const roll = random.next();
  if (roll < 0.3) return before;
  const kept = roll < 0.5 ? [] : before.filter(() => random.chance(0.6));
  return [...new Set([...kept, ...more])];
}

function randomCollection(name: string, kinds: readonly KeyKind[], random: Random): Mutable {
  const fields = new Map<string, CatalogField>();
  const add = (field: string, type: ScalarType, required: boolean) => {
    const column = random.chance(0.2) ? `c_${field}` : field;
    const search = type === 'string' && random.chance(0.5);
    fields.set(field, { name: field, type, required, column, unique: false, index: random.chance(0.3), search });
  };
  if (name === 'users') {
    add('email', 'string', true);
    add('email_verified', 'bool', true);
  }
  const names = random.shuffled([...FIELD_NAMES, ...MORE_NAMES]);
  for (const type of TYPES) {
    add(names.pop()!, type, false);
    if (random.chance(0.9)) add(names.pop()!, type, true);
  }
  add(names.pop()!, random.pick(LIST_TYPES), false);
  add(names.pop()!, random.pick(LIST_TYPES), true);
  const json = names.pop()!;
  add(json, 'json', random.chance(0.3));
  if (random.chance(0.7)) fields.set(json, { ...fields.get(json)!, paths: jsonPartsOf(fields.get(json)!, JSON_PATHS) });
  // The solver decides no distance.
  if (kinds.length > 1) add(names.pop()!, 'point', random.chance(0.3));
  add('created_at', 'datetime', true);
  add('updated_at', 'datetime', true);
  const kind = name === 'users' ? 'uuid' : random.pick(kinds);
  const key = { kind, column: random.chance(0.3) && kind !== 'uuid' ? 'no' : 'id' };
  return { name, table: random.chance(0.2) ? `t_${name}` : name, key, fields, relations: new Map() };
}

interface Adding {
  readonly from: string;
  readonly counts: ReadonlyMap<string, number>;
  readonly random: Random;
  readonly byCode: number;
}

function addRelations(collections: Map<string, Mutable>, { from, counts, random, byCode }: Adding): void {
  const names = [...collections.keys()];
  const own = collections.get(from)!;
  for (const relation of random.shuffled(['owner', 'parent', 'team']).slice(0, 1 + random.below(3))) {
    const target = random.chance(0.25) ? from : random.pick(names);
    const other = collections.get(target)!;
    const inverse = random.below(4);
    const isOne = inverse === 0;
    const isByCode = random.chance(byCode);
    // Tables of other owners have no folded copies.
    if (isByCode) for (const [name, field] of own.fields) own.fields.set(name, { ...field, search: false });
    const canBeRequired = !isOne || counts.get(target)! >= counts.get(from)!;
    const required = canBeRequired && random.chance(0.5);
    own.relations.set(relation, {
      kind: 'belongs_to',
      name: relation,
      collection: target,
      required,
      column: `${relation}_id`,
      ...(isByCode && { references: referencedBy(other) }),
    });
    const back = { collection: from, via: relation, viaColumn: `${relation}_id` };
    const name = `${isOne ? 'one' : 'many'}_${from}_${relation}`;
    if (isOne) other.relations.set(name, { kind: 'has_one', name, ...back });
    else if (inverse < 3) other.relations.set(name, { kind: 'has_many', name, ...back });
  }
  if (random.chance(0.6)) {
    const target = random.pick(names);
    const name = `linked_${target}`;
    const linkTable = `${from}_${name}`;
    const columns = random.chance(0.5) ? ['source_id', 'target_id'] : ['a', 'b'];
    own.relations.set(name, {
      kind: 'many_to_many',
      name,
      collection: target,
      linkTable,
      sourceColumn: columns[0]!,
      targetColumn: columns[1]!,
    });
  }
}

/** As the schema of tables of other owners has them. */
function loseReferences(collections: ReadonlyMap<string, Mutable>, random: Random): void {
  for (const { relations } of collections.values())
    for (const [name, relation] of relations) {
      if (relation.kind !== 'belongs_to' && relation.kind !== 'many_to_many') continue;
      if ('references' in relation || !random.chance(MAY_BE_LOST)) continue;
      relations.set(name, { ...relation, mayBeLost: true, ...(relation.kind === 'belongs_to' && { required: false }) });
    }
}

/** Neither its column nor its name is one of the fields: each record has a value. */
const referencedBy = ({ table, key }: CatalogCollection): ReferencedColumn => ({
  field: '_code',
  table,
  column: '_code',
  key: key?.column ?? 'id',
});

/** The has_one of another collection that makes this belongs_to unique. */
function isUnique(catalog: Catalog, from: string, { name, collection }: CatalogBelongsTo): boolean {
  const others = catalog.collections.get(collection)!.relations.values();
  return others.some((other) => other.kind === 'has_one' && other.collection === from && other.via === name);
}

function randomData(
  { catalog, ids }: { catalog: Catalog; ids: ReadonlyMap<string, readonly Id[]> },
  random: Random,
): Data {
  const rows = new Map<string, Row[]>();
  const links = new Map<string, (readonly [Id, Id])[]>();
  const anyId = () => random.pick(ids.get(random.pick([...ids.keys()]))!);
  const gone = memoizedBy(({ key }: CatalogCollection) => randomIds({ key }, 3, random));
  /** The id of a record that is gone; undefined: the reference is not to be lost. */
  const lost = ({ mayBeLost, collection }: CatalogBelongsTo | CatalogManyToMany): Id | undefined =>
    mayBeLost && random.chance(LOST) ? random.pick(gone(catalog.collections.get(collection)!)) : undefined;
  for (const [name, collection] of catalog.collections) {
    const own = ids.get(name)!;
    const made: Record<string, unknown>[] = own.map((id) => ({ id }));
    for (const { name: field, type, required } of collection.fields.values()) {
      for (const row of made)
        row[field] = !required && random.chance(0.25) ? null : fieldValue(type, { random, anyId });
    }
    for (const relation of collection.relations.values()) {
      if (relation.kind === 'many_to_many') {
        const pairs = new Map<string, readonly [Id, Id]>();
        for (let i = random.below(own.length * 2 + 1); i > 0; i--) {
          const pair = [random.pick(own), lost(relation) ?? random.pick(ids.get(relation.collection)!)] as const;
          pairs.set(pair.join(), pair);
        }
        links.set(relation.linkTable, [...pairs.values()]);
      }
      if (relation.kind !== 'belongs_to') continue;
      const targets = ids.get(relation.collection)!;
      const unique = isUnique(catalog, name, relation) ? random.shuffled(targets) : undefined;
      const isChain = relation.collection === name && unique === undefined && random.chance(0.6);
      for (const [i, row] of made.entries()) {
        // Each below the one before, so that chains are longer than what counts of them.
        if (isChain && i > 0 && random.chance(0.98)) {
          row[relation.name] = own[i - 1]!;
          continue;
        }
        const absent = !relation.required && random.chance(0.25);
        const gone = absent ? undefined : lost(relation);
        row[relation.name] = absent ? null : (gone ?? (unique ? (unique.pop() ?? null) : random.pick(targets)));
      }
    }
    rows.set(name, made);
  }
  return { rows, links };
}

function fieldValue(type: ScalarType, { random, anyId }: { random: Random; anyId: () => Id }): unknown {
  const id = random.chance(0.15) ? anyId() : undefined;
  if (type === 'int' && typeof id === 'number') return id;
  if (type !== 'string' || typeof id !== 'string') return scalarOf(type, random);
  return random.chance(0.7) ? id : random.chance(0.5) ? id.toUpperCase() : `${random.pick(TEXTS)}${random.pick(TEXTS)}`;
}
