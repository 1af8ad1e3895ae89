/**
 * Tables of another program in the place of some collections of a random schema: they have names and times of its own, their
 * columns may be null, and some of their references have no foreign key, so that they lead to records that are gone.
 */
import type { Database } from '../../../src/database/contract.ts';
import { columnTypeOfField } from '../../../src/schema/fields/index.ts';
import type { BelongsTo, Collection, Field, Schema } from '../../../src/schema/model/model.ts';
import type { Sql } from '../../../src/sql.ts';
import type { Random } from '../random.ts';
import { columnOfKey, kindOfKey, makerOfKey, TYPES } from './keyed-schema.ts';
import { OWNED } from './owned-schema.ts';
import type { Doors } from './store-modules.ts';

/** The share of schemas, and of their collections. */
const SHARE = 0.5;
const ADOPTED_SHARE = 0.75;
const RENAMED_SHARE = 0.5;
const ENSURED_SHARE = 0.35;

interface AdoptedFile {
  readonly id?: { readonly column?: string };
  readonly fields: Record<string, Record<string, unknown>>;
  readonly relations: Record<string, Record<string, unknown>>;
  readonly access: Record<string, unknown>;
}

/** JSON is YAML. @param place the schema of the database that has the tables */
export function withAdopted(text: string, names: readonly string[], place: string, random: Random): string {
  if (!random.chance(SHARE)) return text;
  const file = JSON.parse(text) as { readonly collections: Record<string, AdoptedFile> };
  const adopted = names.filter(() => random.chance(ADOPTED_SHARE));
  for (const name of adopted) adopt(file.collections[name]!, name, place, random);
  // Only another program refers to values of its tables.
  for (const [name, { relations }] of Object.entries(file.collections))
    for (const relation of Object.values(relations))
      if (!adopted.includes(name) && adopted.includes(String(relation.collection)))
        Reflect.deleteProperty(relation, 'references');
  return JSON.stringify(file);
}

function adopt(collection: AdoptedFile, name: string, place: string, random: Random): void {
  for (const key of ['no_overlap', 'history', 'soft_delete']) Reflect.deleteProperty(collection, key);
  Reflect.deleteProperty(collection.access, 'restore');
  const members = [
    ...Object.entries(collection.fields),
    ...Object.entries(collection.relations).filter(([, { kind }]) => kind === 'belongs_to'),
  ];
  for (const [member, declared] of members)
    if (random.chance(RENAMED_SHARE)) declared.column = random.pick([member.toUpperCase(), `the "${member}" of it's`]);
  const { labels, meta, slug } = collection.fields;
  // Records may lack the value that they would be unique within.
  if (slug?.unique) Reflect.deleteProperty(Object(slug.unique), 'within');
  if (labels !== undefined && random.chance(0.5)) labels.stored_as = 'varchar[]';
  if (meta !== undefined && random.chance(0.5)) meta.stored_as = 'json';
  const times = [
    { created_at: 'made "on"', updated_at: 'CHANGED' },
    { updated_at: 'changed' },
    { created_at: 'created_at' },
  ];
  const timestamps = random.pick([undefined, 'none', ...times]);
  Object.assign(collection, { managed: false, table: `${place}.T ${name}` }, timestamps && { timestamps });
}

interface Adopting {
  readonly doors: Pick<Doors, 'compiler'>;
  readonly schema: Schema;
  readonly db: Pick<Database, 'run'>;
}

/** Makes the tables, before the migration. */
export async function makeAdopted({ doors, schema, db }: Adopting): Promise<void> {
  const { sql, ident, schemasOfTables } = doors.compiler.sql;
  const adopted = adoptedIn(schema);
  for (const place of schemasOfTables(adopted.map(({ table }) => table)))
    await db.run(sql`CREATE SCHEMA ${ident(place)}`);
  for (const collection of adopted) {
    await db.run(createTable({ doors, schema }, collection));
    for (const field of collection.fields.values())
      if (field.unique || field.uniqueKey !== undefined) await db.run(uniqueIndex(doors, collection, field));
  }
}

/** Makes some columns those of an enum type, after the rows are there. */
export async function changeTypes({ doors, schema, db }: Adopting, random: Random): Promise<void> {
  const { sql, ident, tableIdent } = doors.compiler.sql;
  for (const { table, fields } of adoptedIn(schema)) {
    if (random.chance(0.5)) continue;
    const { column } = fields.get('stage')!;
    const type = tableIdent(`${table} stage`);
    await db.run(sql`CREATE TYPE ${type} AS ENUM ('open', 'held', 'done')`);
    await db.run(
      sql`ALTER TABLE ${tableIdent(table)} ALTER COLUMN ${ident(column)} TYPE ${type} USING ${ident(column)}::${type}`,
    );
  }
}

/** Each has a foreign key. */
export interface EnsuredReferences {
  has(collection: string, relation: string): boolean;
}

/** Adds the foreign keys of the tables, after the migration: some lead to tables of the service. */
export async function ensureReferences({ doors, schema, db }: Adopting, random: Random): Promise<EnsuredReferences> {
  const { sql, ident, tableIdent, raw } = doors.compiler.sql;
  const ensured = new Set<string>();
  for (const collection of schema.collections.values()) {
    for (const relation of referencesOf(collection)) {
      const { column, references, onDelete } = relation;
      // The value of another field would not follow that of its record without a foreign key.
      const isEnsured = !isAdopted(collection) || references !== undefined || random.chance(ENSURED_SHARE);
      if (isEnsured) ensured.add(`${collection.name}.${relation.name}`);
      if (!isEnsured || !isAdopted(collection)) continue;
      const target = schema.collections.get(relation.collection)!;
      const key = references?.column ?? columnOfKey(target);
      await db.run(sql`
        ALTER TABLE ${tableIdent(collection.table)} ADD FOREIGN KEY (${ident(column)})
          REFERENCES ${tableIdent(target.table)} (${ident(key)}) ON UPDATE CASCADE ON DELETE ${raw(ON_DELETE[onDelete])}`);
    }
  }
  return { has: (from, relation) => ensured.has(`${from}.${relation}`) };
}
const ON_DELETE = { cascade: 'CASCADE', restrict: 'RESTRICT', set_null: 'SET NULL' };

export const isAdopted = ({ managed, name }: Pick<Collection, 'managed' | 'name'>): boolean =>
  !managed && !OWNED.includes(name);
const adoptedIn = ({ collections }: Schema): readonly Collection[] => [...collections.values()].filter(isAdopted);
const referencesOf = ({ relations }: Collection): readonly BelongsTo[] =>
  [...relations.values()].filter((relation) => relation.kind === 'belongs_to');

const TEXT = 'text COLLATE "C"';

function createTable({ doors, schema }: Omit<Adopting, 'db'>, collection: Collection): Sql {
  const { sql, ident, tableIdent, join, raw } = doors.compiler.sql;
  const fields = [...collection.fields.values()].map(
    (field) => [field.column, field.storedAs ?? columnTypeOfField(field)] as const,
  );
  const references = referencesOf(collection).map((relation) => {
    const target = schema.collections.get(relation.collection)!;
    return [relation.column, relation.references === undefined ? TYPES[kindOfKey(target)] : 'text'] as const;
  });
  const columns = [...fields, ...references].map(
    ([column, type]) => sql`${ident(column)} ${raw(type === 'text' ? TEXT : type)}`,
  );
  const isNumbered = kindOfKey(collection) === 'int' && makerOfKey(collection) === 'database';
  const key = kindOfKey(collection) === 'string' ? TEXT : TYPES[kindOfKey(collection)];
  const made = raw(`${key}${isNumbered ? ' GENERATED BY DEFAULT AS IDENTITY' : ''} PRIMARY KEY`);
  const ofHolders = referencesOf(collection)
    .filter(({ unique }) => unique)
    .map(({ column }) => sql`UNIQUE (${ident(column)})`);
  return sql`
    CREATE TABLE ${tableIdent(collection.table)} (
      ${join([sql`${ident(columnOfKey(collection))} ${made}`, ...columns, ...ofHolders], ', ')})`;
}

function uniqueIndex({ compiler }: Pick<Doors, 'compiler'>, { table, fields }: Collection, field: Field): Sql {
  const { sql, ident, tableIdent, raw } = compiler.sql;
  const { column, uniqueKey } = field;
  const folded = sql`(lower(${ident(column)} COLLATE ${ident('und-x-icu')}) COLLATE ${ident('C')})`;
  const own = uniqueKey?.ignoresCase === true ? folded : sql`${ident(column)}`;
  const isOpen = sql` WHERE ${ident(fields.get('open')!.column)}`;
  return sql`
    CREATE UNIQUE INDEX ON ${tableIdent(table)} (${own})
      ${uniqueKey?.where === undefined ? raw('') : isOpen}`;
}
