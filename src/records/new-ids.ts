/** Ids that the database makes: the values of the key's own default, or of its sequence. */
import type { Queryable } from '../database/contract.ts';
import { memoizedBy } from '../memoized.ts';
import { keyOf } from '../policy/types.ts';
import { type Collection, madeByDatabase, type Schema } from '../schema/model/model.ts';
import { empty, ident, param, raw, type Sql, sql, tableIdent, text } from '../sql.ts';
import type { Store } from './access-context.ts';
import { everyTenant } from './scope.ts';

/** The expression of each collection's key, once it has been read. */
export const keyDefaultsOf = memoizedBy((_: Store) => new Map<string, Sql>());

interface WantedIds {
  readonly q: Queryable;
  readonly collection: Collection;
  readonly count: number;
  readonly defaults?: Map<string, Sql>;
}

/**
 * The ids are taken before the records are written, so that rules, references and answers name them. A write that is
 * denied leaves a gap, as one that is undone does in any case.
 */
export async function newIdsOf({ q, collection, count, defaults }: WantedIds): Promise<readonly string[]> {
  const known = defaults?.get(collection.name) ?? (await expressionOf(q, collection));
  defaults?.set(collection.name, known);
  const rows = await q.rows(sql`SELECT (${known})::text FROM generate_series(1, ${param('int8', count)})`);
  return rows.map(([id]) => id!);
}

/** The expression is part of the schema of the database. */
async function expressionOf(q: Queryable, collection: Collection): Promise<Sql> {
  const { table } = collection;
  const { column } = keyOf(collection);
  const [row] = await q.rows(sql`
    SELECT CASE WHEN a.attidentity <> ''
                THEN format('nextval(%L::regclass)', pg_get_serial_sequence(${text(tableIdent(table).text)}, a.attname))
                ELSE pg_get_expr(d.adbin, d.adrelid)
           END
      FROM pg_attribute AS a
      LEFT JOIN pg_attrdef AS d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
     WHERE a.attrelid = to_regclass(${text(tableIdent(table).text)})
       AND a.attname = ${text(column)}`);
  if (row?.[0] == null) {
    const advice = 'give it one, or let callers send ids with `made_by: caller`';
    throw new Error(`the column \`${column}\` of the table \`${table}\` has no default that makes ids; ${advice}`);
  }
  return raw(row[0]);
}

/** Follows the columns of an INSERT that has ids: PostgreSQL takes none for a key GENERATED ALWAYS otherwise. */
export const overridingIds = (collection: Collection): Sql =>
  madeByDatabase(collection) ? raw(' OVERRIDING SYSTEM VALUE') : empty;

/** The sequence goes on after the greatest id that an import has given. */
export async function passGivenIds(q: Queryable, schema: Schema, collection: Collection): Promise<void> {
  const { name, table } = collection;
  const { column, kind } = keyOf(collection);
  if (!madeByDatabase(collection) || kind !== 'int') return;
  const records = everyTenant(schema).from(name, 't');
  await q.rows(sql`
    SELECT setval(s.name::regclass, t.last)
      FROM (SELECT pg_get_serial_sequence(${text(tableIdent(table).text)}, ${text(column)}) AS name) AS s,
           (SELECT max(${ident('t', column)}) AS last FROM ${records.where()}) AS t
     WHERE t.last > coalesce(pg_sequence_last_value(s.name::regclass), 0)`);
}
