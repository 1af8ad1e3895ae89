/** A random schema whose collections have ids of every kind, made by the service, by the database, or by callers. */
import type { Database } from '../../../src/database/contract.ts';
import type { Row } from '../../../src/policy/types.ts';
import type { Collection, Schema } from '../../../src/schema/model/model.ts';
import type { Sql } from '../../../src/sql.ts';
import type { Data, Id } from '../../oracle/database.ts';
import { INTS, TEXTS } from '../policies/values.ts';
import type { Random } from '../random.ts';
import type { Doors } from './store-modules.ts';

/** The share of collections that have other ids than UUIDs of the service. */
const SHARE = 0.5;
const KEYS: readonly object[] = [
  { type: 'int' },
  { type: 'int', column: 'no', made_by: 'caller' },
  { type: 'string' },
  { type: 'string', column: 'Code, "of" it', made_by: 'database' },
  { type: 'uuid', column: 'key', made_by: 'database' },
  { type: 'uuid', made_by: 'caller' },
];
/** Ids that the database makes are of the numbers below it. */
const NUMBERS = 2 ** 40;
export const TYPES = { uuid: 'uuid', int: 'int8', string: 'text' } as const;

/** JSON is YAML. */
export function withKeys(text: string, names: readonly string[], random: Random): string {
  const file = JSON.parse(text) as { readonly collections: Record<string, object> };
  for (const name of names) if (random.chance(SHARE)) Object.assign(file.collections[name]!, { id: random.pick(KEYS) });
  return JSON.stringify(file);
}

type Keyed = Pick<Collection, 'key'>;
export const kindOfKey = ({ key }: Keyed) => key?.kind ?? 'uuid';
export const makerOfKey = ({ key }: Keyed) => key?.madeBy ?? 'service';
export const columnOfKey = ({ key }: Keyed): string => key?.column ?? 'id';

/** The id as rows and answers have it. */
export const asId = (collection: Keyed, text: string): Id =>
  kindOfKey(collection) === 'int' ? (Number(text) as unknown as Id) : text;

interface Identified {
  readonly doors: Pick<Doors, 'compiler'>;
  readonly collection: Keyed;
}

/** The id as a parameter of a statement. */
export function idParam({ doors, collection }: Identified, id: unknown): Sql {
  const { sql, param } = doors.compiler.sql;
  return sql`${param(TYPES[kindOfKey(collection)], id)}`;
}

/** The column of the ids, of the row named `alias`. */
export function idColumn({ doors, collection }: Identified, alias?: string): Sql {
  const { ident } = doors.compiler.sql;
  const column = columnOfKey(collection);
  return alias === undefined ? ident(column) : ident(alias, column);
}

/** The ids of the records; an id of the same kind where there are none, since rules name some. */
export const idsOf = (collection: Keyed, rows: readonly Row[]): readonly Id[] =>
  rows.length > 0 ? rows.map(({ id }) => id as Id) : [ofNumber(collection, 0)];

/** The same by collection. */
export const allIds = ({ collections }: Pick<Schema, 'collections'>, data: Data): ReadonlyMap<string, readonly Id[]> =>
  new Map([...data.rows].map(([name, rows]) => [name, idsOf(collections.get(name)!, rows)]));

/** An id that no record has. @param taken those of all records; without them, the id is a rare one */
export function newId(collection: Keyed, random: Random, taken?: readonly unknown[]): Id {
  const isOfDatabase = makerOfKey(collection) === 'database';
  for (;;) {
    const made = isOfDatabase
      ? ofNumber(collection, 1 + random.below(NUMBERS))
      : anyId(collection, random, taken === undefined);
    if (taken?.includes(made) !== true) return made;
  }
}

function anyId(collection: Keyed, random: Random, isRare: boolean): Id {
  switch (kindOfKey(collection)) {
    case 'uuid':
      return random.uuid();
    case 'int':
      return (!isRare && random.chance(0.3) ? random.pick(INTS) : random.below(NUMBERS)) as unknown as Id;
    case 'string':
      return `${random.pick(TEXTS)}${random.below(NUMBERS)}`;
  }
}

/** The id that the database makes of a number of its sequence. */
function ofNumber(collection: Keyed, number: number): Id {
  switch (kindOfKey(collection)) {
    case 'uuid':
      return number
        .toString(16)
        .padStart(32, '0')
        .replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-');
    case 'int':
      return number as unknown as Id;
    case 'string':
      return `it's ${number}`;
  }
}

function numberOf(collection: Keyed, id: Id): number {
  const text = String(id);
  return kindOfKey(collection) === 'uuid'
    ? Number.parseInt(text.replaceAll('-', ''), 16)
    : Number(/\d+$/.exec(text)![0]);
}

interface Served {
  readonly doors: Doors;
  readonly schema: Schema;
  readonly db: Pick<Database, 'run'>;
}

/** Ids that the database makes follow a sequence, so that the next one can be known. */
export async function countIds({ doors, schema, db }: Served): Promise<void> {
  const { sql, raw, ident, tableIdent } = doors.compiler.sql;
  for (const collection of schema.collections.values()) {
    const kind = kindOfKey(collection);
    if (collection.key?.parts !== undefined || makerOfKey(collection) !== 'database' || kind === 'int') continue;
    const next = `nextval('"${sequenceOf(collection)}"')`;
    const made = kind === 'string' ? `'it''s ' || ${next}` : `lpad(to_hex(${next}), 32, '0')::uuid`;
    await db.run(sql`CREATE SEQUENCE ${ident(sequenceOf(collection))}`);
    await db.run(
      sql`ALTER TABLE ${tableIdent(collection.table)} ALTER COLUMN ${idColumn({ doors, collection })} SET DEFAULT ${raw(made)}`,
    );
  }
}
const sequenceOf = ({ name }: Pick<Collection, 'name'>): string => `${name}_numbers`;

/** Makes the id the next one of the database. */
export async function makeNext({ doors, db }: Omit<Served, 'schema'>, collection: Collection, id: Id): Promise<void> {
  const { sql, param, text, tableIdent } = doors.compiler.sql;
  const sequence =
    kindOfKey(collection) === 'int'
      ? sql`pg_get_serial_sequence(${text(tableIdent(collection.table).text)}, ${text(columnOfKey(collection))})`
      : sql`${text(`"${sequenceOf(collection)}"`)}`;
  await db.run(sql`SELECT setval((${sequence})::regclass, ${param('int8', numberOf(collection, id))}, FALSE)`);
}
