/** What a record's own JSON is selected by. */
import type { HasOne } from '../../schema/model.ts';
import { ident, join, param, raw, type Sql, sql } from '../../sql.ts';
import type { Cells } from '../database/contract.ts';
import { VERSION_COLUMN } from '../migrations/tables.ts';
import { type AccessContext, type Reading, readable, type Store } from './access-context.ts';
import { tableOf } from './record-shape.ts';

/** The cells that `RecordShape.json` reads: the stored columns, and of each has_one the identifier of a readable target. */
export function recordColumns(
  store: Store,
  ask: AccessContext,
  { collection, alias }: { readonly collection: string; readonly alias: string },
): Sql {
  const shape = store.shape(collection);
  const columns = shape.columns(alias);
  if (shape.hasOnes.length === 0) return columns;
  return join([columns, ...shape.hasOnes.map((relation) => hasOneId(store, ask, { relation, alias }))], ', ');
}

/** INVARIANT: the reference is unique, so there is at most one row. */
function hasOneId(
  store: Store,
  ask: AccessContext,
  { relation, alias }: { readonly relation: HasOne; readonly alias: string },
): Sql {
  const target = ask.permit(relation.collection, 'read');
  if (target.verdict === 'deny') return raw('NULL');
  const inner = `${alias}_${relation.name}`;
  const table = tableOf(store.shape(relation.collection).collection);
  const row = ident(inner);
  const same = sql`${row}.${ident(relation.viaColumn)} = ${ident(alias)}.id`;
  const seen = target.verdict === 'allow' ? same : sql`${same} AND ${target.where(inner)}`;
  return sql`(SELECT ${row}.id FROM ${table} AS ${row} WHERE ${seen})`;
}

/** The changes of the row named `alias`, as `Versions` takes them. */
export const versionColumn = (alias: string): Sql => ident(alias, VERSION_COLUMN);
/** How many cells come before the record where the version does. */
export const VERSION_WIDTH = 1;

/** The version and the record, where `condition` holds. */
async function selectOne(
  { store, q, ask }: Reading,
  { id, condition }: { readonly id: string; readonly condition: Sql },
): Promise<Cells | undefined> {
  const { name } = ask.collection;
  const place = { collection: name, alias: 't' };
  const [cells] = await q.rows(
    sql`SELECT ${versionColumn('t')}, ${recordColumns(store, ask, place)} FROM ${store.from(name, raw('t'))} WHERE t.id = ${param('uuid', id)} AND ${condition}`,
  );
  return cells;
}

/** As `selectOne`, where the caller may read it. */
export function selectReadable(reading: Reading, id: string): Promise<Cells | undefined> {
  return selectOne(reading, { id, condition: readable(reading.ask, reading.ask.collection.name, 't') });
}
