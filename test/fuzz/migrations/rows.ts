/** Random rows of a schema, and what a database holds of them. */
import type { Database, Transaction } from '../../../src/database/contract.ts';
import { fold, foldedColumn } from '../../../src/policy/fold.ts';
import { ident, join, raw, type Sql, sql } from '../../../src/sql.ts';
import type { Random } from '../random.ts';
import { type CollectionModel, type FieldModel, type SchemaModel, VALUES } from './model.ts';

interface Row {
  readonly table: string;
  readonly values: Readonly<Record<string, string | null>>;
}

const STAMP = '2026-01-02T03:04:05.000006Z';

export function randomRows(random: Random, schema: SchemaModel): readonly Row[] {
  const rows: Row[] = [];
  const ids = new Map<string, string[]>();
  for (const [table, model] of Object.entries(schema)) {
    ids.set(table, []);
    const count = random.pick([0, 1, 2, 5]);
    for (let n = 0; n < count; n++) {
      const id = random.uuid();
      const values = randomRow({ random, model, ids }, n);
      if (values === undefined) continue;
      rows.push({ table, values: { id, created_at: STAMP, updated_at: STAMP, ...values } });
      ids.get(table)!.push(id);
    }
  }
  for (const [table, { relations }] of Object.entries(schema))
    for (const [name, { kind, collection }] of Object.entries(relations)) {
      const members = ids.get(collection)!;
      if (kind !== 'many_to_many' || members.length === 0) continue;
      for (const id of ids.get(table)!)
        rows.push({ table: `${table}__${name}`, values: { record_id: id, member_id: random.pick(members) } });
    }
  return rows;
}

interface Making {
  readonly random: Random;
  readonly model: CollectionModel;
  readonly ids: ReadonlyMap<string, readonly string[]>;
}

/** A value as its column takes it. */
function textOf(type: FieldModel['type'], value: (typeof VALUES)[FieldModel['type']][number]): string {
  if (type === 'json') return JSON.stringify(value);
  if (Array.isArray(value)) return `{${value.map((each) => JSON.stringify(each)).join(',')}}`;
  if (type !== 'point') return String(value);
  const { lat, lng } = value as { readonly lat: number; readonly lng: number };
  return `(${lng},${lat})`;
}

/** Returns undefined if a required reference has no target. */
function randomRow({ random, model, ids }: Making, n: number): Row['values'] | undefined {
  const values: Record<string, string | null> = {};
  for (const [name, { type, required = false, unique = false, search }] of Object.entries(model.fields)) {
    const all = VALUES[type];
    const value = unique ? (n < all.length ? all[n]! : undefined) : random.pick(all);
    if (value === undefined && required) return undefined;
    values[name] = value === undefined || (!required && random.chance(0.3)) ? null : textOf(type, value!);
    if (search === true) values[foldedColumn(name)] = values[name] === null ? null : fold(values[name]!);
  }
  for (const [name, { kind, collection, required = false, unique = false }] of Object.entries(model.relations)) {
    if (kind === 'many_to_many') continue;
    const targets = ids.get(collection) ?? [];
    const id = unique ? targets[n] : targets.length === 0 ? undefined : random.pick(targets);
    if (id === undefined && required) return undefined;
    values[`${name}_id`] = id === undefined || (!required && random.chance(0.3)) ? null : id;
  }
  return values;
}

export async function insertRows(db: Database, rows: readonly Row[]): Promise<void> {
  for (const { table, values } of rows) {
    const columns = Object.keys(values).map((name) => ident(name));
    // Without a type, as each column takes it.
    const cells = Object.values(values).map(literal);
    await db.run(sql`INSERT INTO ${ident(table)} (${join(columns, ', ')}) VALUES (${join(cells, ', ')})`);
  }
}

const literal = (value: string | null): Sql => raw(value === null ? 'NULL' : `'${value.replaceAll("'", "''")}'`);

/** Table → rows in an order that does not depend on the database; a row is column → cell. */
export type Content = ReadonlyMap<string, readonly ReadonlyMap<string, string | null>[]>;

export async function contentOf(db: Database): Promise<Content> {
  const columns = await db.rows(
    raw(`
    SELECT c.relname, a.attname
      FROM pg_class c
      JOIN pg_attribute a ON a.attrelid = c.oid
     WHERE c.relnamespace = current_schema()::regnamespace
       AND c.relkind = 'r'
       AND a.attnum > 0
       AND NOT a.attisdropped
     ORDER BY 1, 2`),
  );
  const content = new Map<string, readonly ReadonlyMap<string, string | null>[]>();
  const tables = Map.groupBy(columns, ([table]) => table!);
  for (const [table, parts] of tables) {
    if (table.startsWith('bylaw_') || table.startsWith('_')) continue;
    const names = parts.map(([, name]) => name!);
    const list = join(
      names.map((name) => sql`${ident(name)}::text`),
      ', ',
    );
    const rows = await db.rows(sql`SELECT ${list} FROM ${ident(table)}`);
    const asMaps = rows.map((cells) => new Map(names.map((name, i) => [name, cells[i] ?? null])));
    content.set(
      table,
      asMaps.toSorted((a, b) => keyOf(a).localeCompare(keyOf(b))),
    );
  }
  return content;
}

const keyOf = (row: ReadonlyMap<string, string | null>): string =>
  row.get('id') ?? `${row.get('record_id')} ${row.get('member_id')}`;

export async function empty(db: Database): Promise<void> {
  const [row] = await db.rows(raw('SELECT current_schema()'));
  const name = ident(row![0]!).text;
  const recreate = async (tx: Transaction): Promise<void> => {
    await tx.run(raw(`DROP SCHEMA ${name} CASCADE`));
    await tx.run(raw(`CREATE SCHEMA ${name}`));
  };
  await db.transaction(recreate, { unlimited: true });
}
