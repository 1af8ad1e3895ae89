/** Random schemas, random changes of them, and what each table and column of the first is called in the second. */
import type { Random } from '../random.ts';

export type FieldType =
  | 'string'
  | 'int'
  | 'float'
  | 'bool'
  | 'datetime'
  | 'date'
  | 'time'
  | 'bigint'
  | 'uuid'
  | 'decimal'
  | 'json'
  | 'point'
  | 'strings'
  | 'ints';
type Value = string | number | boolean | readonly (string | number)[] | { readonly [name: string]: number | string };

export interface FieldModel {
  readonly type: FieldType;
  readonly required?: boolean;
  readonly unique?: boolean;
  readonly index?: boolean;
  readonly search?: boolean;
  readonly default?: Value;
  readonly was?: string;
}
interface RelationModel {
  readonly kind: 'belongs_to' | 'many_to_many';
  readonly collection: string;
  readonly required?: boolean;
  readonly unique?: boolean;
  readonly on_delete?: 'cascade' | 'restrict';
  readonly was?: string;
}
export interface CollectionModel {
  readonly was?: string;
  readonly fields: Readonly<Record<string, FieldModel>>;
  readonly relations: Readonly<Record<string, RelationModel>>;
}
export type SchemaModel = Readonly<Record<string, CollectionModel>>;

/** `additive`: a change that every start may make, regardless of the rows. */
type Weight = 'additive' | 'other';

export interface ChangedModel {
  readonly schema: SchemaModel;
  /** Collection of the first schema → of the second; absent where it is gone. */
  readonly collections: ReadonlyMap<string, string>;
  /** `collection.member` of the first → the member's name in the second; absent where it is gone. */
  readonly members: ReadonlyMap<string, string>;
  readonly isAdditive: boolean;
}

export const VALUES: Readonly<Record<FieldType, readonly Value[]>> = {
  string: ['', 'a', 'Ä', "it's", '12', 'true', '2026-01-02T03:04:05.000006Z'],
  int: [0, 1, -7, 9007199254740991],
  float: [0, 1.5, -7, 1e21],
  bool: [true, false],
  datetime: ['2026-01-02T03:04:05.000006Z', '1999-12-31T23:59:59.000000Z'],
  date: ['0001-01-01', '2024-02-29', '9999-12-31'],
  bigint: ['0', '-7', '9223372036854775807'],
  uuid: ['00000000-0000-0000-0000-000000000000', 'ffffffff-ffff-ffff-ffff-ffffffffffff'],
  time: ['00:00:00', '12:00:00.5', '23:59:59.999999'],
  decimal: ['0.00', '-7.50', '9999999999.99'],
  json: [{}, { a: 'x"y', b: 1 }, [1, 'a'], 'text', 12, true],
  point: [
    { lat: 0, lng: 0 },
    { lat: -90, lng: 179.5 },
  ],
  strings: [[], ['a', 'Ä,{}"\\', ''], ['12']],
  ints: [[], [0, -7, 9007199254740991]],
};
/** Types that a file writes with more than their name. */
const DECLARED: Readonly<Partial<Record<FieldType, object>>> = {
  decimal: { type: 'decimal', precision: 12, scale: 2 },
  strings: { type: 'list', of: 'string' },
  ints: { type: 'list', of: 'int' },
};
const UNEQUAL: readonly FieldType[] = ['bool', 'json', 'point', 'strings', 'ints'];
const UNINDEXED: readonly FieldType[] = ['json'];

export function textOfSchema(schema: SchemaModel): string {
  const declared = (_: string, value: unknown): unknown => {
    const type = (value as { type?: FieldType } | null)?.type;
    return type === undefined || DECLARED[type] === undefined ? value : { ...(value as object), ...DECLARED[type] };
  };
  return JSON.stringify({ collections: schema }, declared);
}
const TYPES = Object.keys(VALUES) as readonly FieldType[];

export function randomSchema(random: Random): SchemaModel {
  const names = ['alpha', 'beta', 'gamma'].slice(0, 1 + random.below(3));
  return Object.fromEntries(names.map((name, i) => [name, randomCollection(random, names.slice(0, i + 1))]));
}

function randomCollection(random: Random, targets: readonly string[]): CollectionModel {
  const fields = Array.from({ length: 1 + random.below(4) }, (_, i) => [`f${i}`, randomField(random)] as const);
  const relations = Array.from(
    { length: random.below(3) },
    (_, i) => [`r${i}`, randomRelation(random, targets)] as const,
  );
  return { fields: Object.fromEntries(fields), relations: Object.fromEntries(relations) };
}

function randomField(random: Random, type = random.pick(TYPES)): FieldModel {
  return {
    type,
    ...(random.chance(0.3) && { required: true }),
    ...(!UNEQUAL.includes(type) && random.chance(0.2) && { unique: true }),
    ...(!UNINDEXED.includes(type) && random.chance(0.2) && { index: true }),
    ...(type === 'string' && random.chance(0.3) && { search: true }),
    ...(random.chance(0.4) && { default: random.pick(VALUES[type]) }),
  };
}

function randomRelation(random: Random, targets: readonly string[]): RelationModel {
  const collection = random.pick(targets);
  if (random.chance(0.3)) return { kind: 'many_to_many', collection };
  return {
    kind: 'belongs_to',
    collection,
    // A first row of a collection could not reference another one.
    ...(collection !== targets.at(-1) && random.chance(0.3) && { required: true }),
    ...(random.chance(0.1) && { unique: true }),
    ...(random.chance(0.5) && { on_delete: random.pick(['cascade', 'restrict'] as const) }),
  };
}

export function changed(random: Random, before: SchemaModel): ChangedModel {
  const change = new Change(random, before);
  return change.make();
}

class Change {
  readonly #random: Random;
  readonly #before: SchemaModel;
  readonly #collections = new Map<string, string>();
  readonly #members = new Map<string, string>();
  #isAdditive = true;
  /** Few changes at a time, so that many are not refused for another one. */
  readonly #rate: number;

  constructor(random: Random, before: SchemaModel) {
    this.#random = random;
    this.#before = before;
    this.#rate = random.pick([0.1, 0.25, 0.5]);
  }

  make(): ChangedModel {
    const random = this.#random;
    for (const name of Object.keys(this.#before)) {
      if (this.#happens(0.3, 'other')) continue;
      this.#collections.set(name, this.#happens(0.5) ? `${name}_new` : name);
    }
    const schema: Record<string, CollectionModel> = {};
    for (const [former, name] of this.#collections) {
      const collection = this.#collection(former);
      schema[name] = name === former ? collection : { was: former, ...collection };
    }
    if (this.#happens(1) || Object.keys(schema).length === 0)
      schema.delta = { fields: { f0: randomField(random) }, relations: {} };
    return { schema, collections: this.#collections, members: this.#members, isAdditive: this.#isAdditive };
  }

  #happens(share: number, weight: Weight = 'additive'): boolean {
    const does = this.#random.chance(this.#rate * share);
    if (does && weight === 'other') this.#isAdditive = false;
    return does;
  }

  #collection(former: string): CollectionModel {
    const { fields, relations } = this.#before[former]!;
    const nextFields: Record<string, FieldModel> = {};
    for (const [name, field] of Object.entries(fields)) {
      if (this.#happens(0.4, 'other')) continue;
      const now = this.#happens(0.4) ? `${name}_new` : name;
      this.#members.set(`${former}.${name}`, now);
      nextFields[now] = { ...(now !== name && { was: name }), ...this.#field(field) };
    }
    if (this.#happens(1)) nextFields.extra = this.#newField();
    const nextRelations: Record<string, RelationModel> = {};
    for (const [name, relation] of Object.entries(relations)) {
      const isGone = !this.#collections.has(relation.collection);
      if (isGone) this.#isAdditive = false;
      if (isGone || this.#happens(0.4, 'other')) continue;
      const now = this.#happens(0.4) ? `${name}_new` : name;
      this.#members.set(`${former}.${name}`, now);
      nextRelations[now] = { ...(now !== name && { was: name }), ...this.#relation(relation) };
    }
    const targets = [...this.#collections.values()];
    if (targets.length > 0 && this.#happens(1))
      nextRelations.extra_r = { kind: 'belongs_to', collection: this.#random.pick(targets) };
    return { fields: nextFields, relations: nextRelations };
  }

  #newField(): FieldModel {
    const field = randomField(this.#random);
    // A default may be given to many rows.
    if (field.required === true || field.unique === true) this.#isAdditive = false;
    return field;
  }

  #field(field: FieldModel): FieldModel {
    const next: Record<string, unknown> = { ...field };
    const toggle = (key: keyof FieldModel): void => {
      const isSet = field[key] === true;
      if (!this.#happens(0.4)) return;
      next[key] = !isSet;
      if ((key === 'required' || key === 'unique') && !isSet) this.#isAdditive = false;
    };
    toggle('required');
    if (!UNINDEXED.includes(field.type)) toggle('index');
    if (!UNEQUAL.includes(field.type)) toggle('unique');
    if (field.type === 'string') toggle('search');
    if (this.#happens(0.4)) next.default = this.#random.pick(VALUES[field.type]);
    if (this.#happens(0.3, 'other')) {
      const type = this.#random.pick(TYPES);
      return randomField(this.#random, type);
    }
    return next as unknown as FieldModel;
  }

  #relation(relation: RelationModel): RelationModel {
    const collection = this.#happens(0.2, 'other')
      ? this.#random.pick([...this.#collections.values()])
      : this.#collections.get(relation.collection)!;
    if (relation.kind === 'many_to_many') return { ...relation, collection };
    const required = this.#happens(0.3, 'other') ? relation.required !== true : relation.required === true;
    const unique = this.#happens(0.2, 'other') ? relation.unique !== true : relation.unique === true;
    const onDelete = this.#happens(0.4) ? this.#random.pick(['cascade', 'restrict'] as const) : relation.on_delete;
    return { kind: 'belongs_to', collection, required, unique, ...(onDelete !== undefined && { on_delete: onDelete }) };
  }
}
