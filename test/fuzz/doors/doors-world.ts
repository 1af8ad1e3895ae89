/** A small random schema as a file, and its rows in a database: few, so that paths often return to the written record. */
import type { Database, Transaction } from '../../../src/database/contract.ts';
import type { CatalogField, CatalogManyToMany, Row, ScalarType } from '../../../src/policy/types.ts';
import type { Schema } from '../../../src/schema/model/model.ts';
import type { Data, Id } from '../../oracle/database.ts';
import { NOW, scalarOf } from '../policies/values.ts';
import { ROLES } from '../policies/world.ts';
import type { Random } from '../random.ts';
import { type EnsuredReferences, isAdopted } from './adopted-schema.ts';
import { firstValue, keptValue } from './kept-schema.ts';
import { asId, countIds, idColumn, idParam, newId } from './keyed-schema.ts';
import { columnValue, firstMark, isReferredTo, newMark } from './referring-schema.ts';
import type { Doors } from './store-modules.ts';
import { wholeValue } from './whole-values.ts';

interface RelationSpec {
  readonly kind: string;
  readonly collection: string;
  readonly via?: string;
  readonly required?: boolean;
  readonly on_delete?: string;
  readonly access?: object;
}
interface CollectionSpec {
  readonly fields: Record<string, object>;
  readonly relations: Record<string, RelationSpec>;
}
type Specs = Readonly<Record<string, CollectionSpec>>;

export const PLAIN = ['docs', 'teams', 'tags'];
const FIELDS: Readonly<Record<string, ScalarType>> = {
  title: 'string',
  score: 'int',
  rate: 'float',
  flag: 'bool',
  due: 'datetime',
  day: 'date',
  code: 'uuid',
  long: 'bigint',
  hour: 'time',
};
const REQUIRED: Readonly<Record<string, ScalarType>> = { kind: 'string', size: 'int', open: 'bool' };

/** The values that can follow each value of `stage`. */
export const STAGES: Readonly<Record<string, readonly string[]>> = { open: ['held', 'done'], held: ['open'], done: [] };
const STAGE = { type: 'string', enum: Object.keys(STAGES), transitions: STAGES };

/** A value that a write may give the field. */
export function writableValue(field: CatalogField, random: Random): unknown {
  const { type, enum: values } = field;
  const value = newMark(field, random) ?? keptValue(field, random) ?? wholeValue(field, random);
  return value ?? (values === undefined ? scalarOf(type, random) : random.pick(values));
}

/** JSON is YAML. @param more further fields, some of which each collection has */
export function randomSchema(random: Random, more: Readonly<Record<string, object>> = {}): string {
  const specs: Specs = Object.fromEntries(
    ['users', ...PLAIN].map((name) => [name, randomCollection(name, random, more)]),
  );
  for (const from of PLAIN) addRelations(specs, from, random);
  const collections = Object.fromEntries(
    Object.entries(specs).map(([name, spec]) => [name, { ...spec, access: { read: true }, ...checksOf(name) }]),
  );
  return JSON.stringify({
    roles: Object.fromEntries(ROLES.map((role) => [role, {}])),
    register: { roles: ['member'] },
    collections,
  });
}

function randomCollection(name: string, random: Random, more: Readonly<Record<string, object>>): CollectionSpec {
  const optional = Object.entries(FIELDS).filter(() => random.chance(0.6));
  const required = name === 'users' ? [] : Object.entries(REQUIRED);
  const fields = [
    ...optional.map(([field, type]) => [field, { type, ...ownRules(random) }]),
    ...required.map(([field, type]) => [field, { type, required: true, ...ownRules(random) }]),
    ...Object.entries(more)
      .filter(() => random.chance(0.4))
      .map(([field, declared]) => [field, { ...declared, ...ownRules(random) }] as const),
    ...(name === 'users' ? [] : [['stage', { ...STAGE, ...ownRules(random) }] as const]),
  ];
  return { fields: Object.fromEntries(fields), relations: {} };
}

/** The session replaces its condition by random ones. */
const checksOf = (name: string): object =>
  PLAIN.includes(name) ? { checks: { holds: { when: '@next.size is not null', message: 'it does not hold' } } } : {};

/** The session replaces them by random ones. */
const ownRules = (random: Random): object => (random.chance(0.35) ? { access: { read: true, write: true } } : {});

/** Each belongs_to with the way back, or without: has_many, has_one, or none. */
function addRelations(specs: Specs, from: string, random: Random): void {
  const { relations } = specs[from]!;
  for (const name of random.shuffled(['owner', 'parent', 'team']).slice(0, 1 + random.below(3))) {
    const collection = random.chance(0.25) ? from : random.pick(Object.keys(specs));
    const way = random.pick(['has_one', 'has_one', 'has_many', 'has_many', undefined]);
    const required = way !== 'has_one' && collection === 'users' && random.chance(0.4);
    const fate = required ? {} : { on_delete: random.pick(['cascade', 'restrict', 'set_null', 'set_null']) };
    relations[name] = { kind: 'belongs_to', collection, required, ...fate, ...ownRules(random) };
    if (way === undefined) continue;
    specs[collection]!.relations[`${way === 'has_one' ? 'one' : 'many'}_${from}_${name}`] = {
      kind: way,
      collection: from,
      via: name,
    };
  }
  if (random.chance(0.9)) {
    const collection = random.pick(Object.keys(specs));
    relations[`linked_${collection}`] = { kind: 'many_to_many', collection };
  }
}

// ---------------------------------------------------------------- rows

export interface Stocked {
  readonly doors: Doors;
  readonly schema: Schema;
  readonly db: Database;
  /** Default: each reference has a foreign key. */
  readonly ensured?: EnsuredReferences;
}

/** Ids that no other one of the collection has. */
function newIds({ collections }: Schema, name: string, count: number, random: Random): readonly Id[] {
  const made: Id[] = [];
  while (made.length < count) made.push(newId(collections.get(name)!, random, made));
  return made;
}

/** @param few of a collection at least; at most twice as many and one */
export async function fill({ doors, schema, db, ensured }: Stocked, random: Random, few = 3): Promise<void> {
  const store = new doors.Store(db, schema);
  const names = ['users', ...PLAIN];
  const ids = new Map<string, readonly Id[]>(
    names.map((name) => [name, newIds(schema, name, few + random.below(few + 2), random)] as const),
  );
  const insertAll = async (tx: Transaction): Promise<void> => {
    for (const name of names) {
      for (const id of ids.get(name)!) {
        const collection = schema.collections.get(name)!;
        const { fields, relations } = collection;
        const values: Record<string, unknown> = { id: String(id), created_at: NOW, updated_at: NOW };
        if (isAdopted(collection) && random.chance(0.3)) values.updated_at = null;
        if (name === 'users') Object.assign(values, { email: `${id}@example.org`, email_verified: random.chance(0.5) });
        for (const field of fields.values()) {
          if (Object.hasOwn(values, field.name)) continue;
          if (field.required || isReferredTo(field) || random.chance(0.75))
            values[field.name] = firstMark(id, field) ?? firstValue(id, field, () => writableValue(field, random));
        }
        for (const relation of relations.values())
          if (relation.kind === 'belongs_to' && relation.required)
            values[relation.name] = random.pick(ids.get('users')!);
        await doors.system.insertSystem(store, tx, { collection: name, values });
      }
    }
    await connect({ doors, schema, db: tx, ensured }, ids, random);
  };
  await countIds({ doors, schema, db });
  if (schema.collections.has('parts')) {
    const parts = await doors.system.findSystem(store, db, {
      collection: 'parts',
      where: doors.compiler.sql.raw('TRUE'),
    });
    ids.set(
      'parts',
      parts.map(({ id }) => id as Id),
    );
  }
  // A busy machine takes longer than a request may.
  await db.transaction(insertAll, { unlimited: true });
}

async function connect(
  { doors, schema, db, ensured }: Omit<Stocked, 'db'> & { readonly db: Pick<Database, 'run'> },
  ids: ReadonlyMap<string, readonly Id[]>,
  random: Random,
): Promise<void> {
  const { sql, ident, tableIdent } = doors.compiler.sql;
  for (const name of [...ids.keys()].filter((each) => each !== 'parts')) {
    const { relations, table } = schema.collections.get(name)!;
    const own = { doors, collection: schema.collections.get(name)! };
    for (const relation of relations.values()) {
      if (relation.kind === 'many_to_many') await link(relation);
      if (relation.kind !== 'belongs_to' || relation.required) continue;
      const targets = random.shuffled(ids.get(relation.collection)!);
      for (const id of ids.get(name)!) {
        if (random.chance(0.3)) continue;
        const target = relation.unique ? targets.pop() : random.pick(targets);
        if (target === undefined) break;
        const column = ident(relation.column);
        const related = schema.collections.get(relation.collection)!;
        const isLost = ensured?.has(name, relation.name) === false && random.chance(0.35);
        const value = columnValue(doors, relation, related, isLost ? newId(related, random) : target);
        await db.run(
          sql`UPDATE ${tableIdent(table)} SET ${column} = ${value} WHERE ${idColumn(own)} = ${idParam(own, id)}`,
        );
      }
    }

    async function link({ linkTable, sourceColumn, targetColumn, collection }: CatalogManyToMany): Promise<void> {
      const columns = sql`${ident(sourceColumn)}, ${ident(targetColumn)}`;
      const related = { doors, collection: schema.collections.get(collection)! };
      for (const id of ids.get(name)!) {
        for (const target of ids.get(collection)!.filter(() => random.chance(0.25)))
          await db.run(
            sql`INSERT INTO ${tableIdent(linkTable)} (${columns}) VALUES (${idParam(own, id)}, ${idParam(related, target)})`,
          );
      }
    }
  }
}

/** All that the database holds. */
export async function readAll({ doors, schema, db }: Stocked): Promise<Data> {
  const { sql, ident, tableIdent, raw } = doors.compiler.sql;
  const store = new doors.Store(db, schema);
  const rows = new Map<string, readonly Row[]>();
  const links = new Map<string, (readonly [Id, Id])[]>();
  for (const [name, collection] of schema.collections) {
    rows.set(name, await doors.system.findSystem(store, db, { collection: name, where: raw('TRUE') }));
    for (const relation of collection.relations.values()) {
      if (relation.kind !== 'many_to_many') continue;
      const { linkTable, sourceColumn, targetColumn } = relation;
      const target = schema.collections.get(relation.collection)!;
      const pairs = await db.rows(
        sql`SELECT ${ident(sourceColumn)}, ${ident(targetColumn)} FROM ${tableIdent(linkTable)} ORDER BY 1, 2`,
      );
      links.set(
        linkTable,
        pairs.map(([from, to]) => [asId(collection, from!), asId(target, to!)] as const),
      );
    }
  }
  return { rows, links };
}
