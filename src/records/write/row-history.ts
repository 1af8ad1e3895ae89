/**
 * The history of rows that are divided by tenant. A cluster runs no trigger of such tables, so the transaction of each write
 * reads the rows before and after it, and adds the entries of those that changed. Each statement is about one tenant.
 */

import type { Queryable } from '../../database/contract.ts';
import { memoizedBy } from '../../memoized.ts';
import { datetimeOf } from '../../policy/values.ts';
import { currentCaller } from '../../queued-caller.ts';
import { COLUMNS_OF_A_CALL, historyColumnsOf } from '../../schema/model/kept/history.ts';
import { type Collection, type Schema, tenantKeyOf } from '../../schema/model/model.ts';
import { ident, join, param, type Sql, sql, text } from '../../sql.ts';
import { recordKeyOf } from '../record-key.ts';
import { scopeOf } from '../scope.ts';

/** Entries of one statement. */
const ENTRIES_AT_ONCE = 1_000;
const ROW_ALIAS = 't';

interface Image {
  readonly tenant: string;
  /** A JSON object of the columns and their texts. */
  readonly cells: string;
}

/** The images by the ids of the rows. */
type Images = ReadonlyMap<string, Image>;
const NO_IMAGES: Images = new Map();

interface StoredRows {
  readonly store: { readonly schema: Schema };
  readonly q: Queryable;
}

/** Rows named by their ids. */
interface WrittenRows {
  readonly collection: string;
  readonly ids: readonly string[];
  readonly tenant: string | undefined;
  /** The rows do not exist before the write. */
  readonly areNew?: boolean;
}

/** Writes the rows, and the entries of their history where no trigger does. */
export async function recordingHistory<T>(of: StoredRows, rows: WrittenRows, write: () => Promise<T>): Promise<T> {
  const collection = of.store.schema.collections.get(rows.collection)!;
  if (collection.history?.table === undefined) return write();
  const history = new RowHistory(of, collection);
  const named = history.named(rows.ids, rows.tenant);
  const before = rows.areNew ? NO_IMAGES : await history.read(named);
  const result = await write();
  await history.add(before, await history.read(named));
  return result;
}

/** Adds the entries of rows that the transaction is about to delete, and has locked. */
export async function recordDeletion(of: StoredRows, { collection: name, ids, tenant }: WrittenRows): Promise<void> {
  const collection = of.store.schema.collections.get(name)!;
  if (collection.history?.table === undefined) return;
  const history = new RowHistory(of, collection);
  await history.add(await history.read(history.named(ids, tenant)), NO_IMAGES);
}

interface ChangedRows {
  readonly collection: Collection;
  /** The text that follows FROM: the rows `t` that the write changes. */
  readonly rows: Sql;
}

/** The same for rows that a condition finds, of any tenants. */
export async function recordingChanges<T>(
  of: StoredRows,
  { collection, rows }: ChangedRows,
  write: () => Promise<T>,
): Promise<T> {
  if (collection.history?.table === undefined) return write();
  const history = new RowHistory(of, collection);
  const before = await history.read(rows);
  const result = await write();
  const byTenant = Map.groupBy(before, ([, { tenant }]) => tenant);
  for (const [tenant, images] of byTenant) {
    const ids = images.map(([id]) => id);
    await history.add(new Map(images), await history.read(history.named(ids, tenant)));
  }
  return result;
}

const imagesOf = memoizedBy((schema: Schema) => memoizedBy((collection: Collection) => imageOf(schema, collection)));

export class RowHistory {
  readonly #of: StoredRows;
  readonly #collection: Collection;

  constructor(of: StoredRows, collection: Collection) {
    this.#of = of;
    this.#collection = collection;
  }

  /** The text that follows FROM: rows named by their ids. */
  named(ids: readonly string[], tenant: string | undefined): Sql {
    const rows = scopeOf({ store: this.#of.store, tenant }).stored(this.#collection.name, ROW_ALIAS);
    return rows.where(recordKeyOf(this.#collection).isAmong(ROW_ALIAS, ids));
  }

  /** Locks the rows `t`, whose images it reads. @param rows the text that follows FROM */
  async read(rows: Sql): Promise<Images> {
    const key = recordKeyOf(this.#collection).of(ROW_ALIAS);
    const found = await this.#of.q.rows(sql`
      SELECT ${key}::text, ${ident(ROW_ALIAS, tenantKeyOf(this.#collection)!.column)}::text,
             (${imagesOf(this.#of.store.schema)(this.#collection)})::text
        FROM ${rows}
       ORDER BY ${key}
         FOR NO KEY UPDATE OF ${ident(ROW_ALIAS)}`);
    return new Map(found.map(([id, tenant, cells]) => [id!, { tenant: tenant!, cells: cells! }]));
  }

  /** Adds the entries of the rows that differ. */
  async add(before: Images, after: Images): Promise<void> {
    const ids = new Set([...before.keys(), ...after.keys()]);
    const changed = [...ids].filter((id) => before.get(id)?.cells !== after.get(id)?.cells);
    const byTenant = Map.groupBy(changed, (id) => (before.get(id) ?? after.get(id)!).tenant);
    for (const [tenant, all] of byTenant)
      for (let from = 0; from < all.length; from += ENTRIES_AT_ONCE) {
        const some = all.slice(from, from + ENTRIES_AT_ONCE);
        const cellsOf = (images: Images) => some.map((id) => images.get(id)?.cells ?? null);
        await this.#insert(tenant, { ids: some, before: cellsOf(before), after: cellsOf(after) });
      }
  }

  /** The number of an entry is its time in microseconds, or follows that of the entry before it. */
  async #insert(tenant: string, { ids, before, after }: Entries): Promise<void> {
    const now = new Date();
    const [by = ''] = currentCaller().id.split(' ');
    const scope = scopeOf({ store: this.#of.store, tenant });
    const { name } = this.#collection;
    const earlier = scope.past(name, 'h').where(sql`h.record = e.record`);
    await this.#of.q.rows(sql`
      INSERT INTO ${scope.intoPast(name)}, e.record,
             greatest(${param('int8', now.getTime() * 1000)}, (SELECT max(h.seq) + 1 FROM ${earlier})),
             ${param('timestamptz', datetimeOf(now))}, ${text(by === '' ? null : by)}, e.before::jsonb, e.after::jsonb
        FROM unnest(${param('text[]', ids)}, ${param('text[]', before)}, ${param('text[]', after)}) AS e (record, before, after)
      RETURNING 1`);
  }
}

interface Entries {
  readonly ids: readonly string[];
  readonly before: readonly (string | null)[];
  readonly after: readonly (string | null)[];
}

/** The columns of the row `t` as texts, as the service reads them under any settings of a node. */
function imageOf(schema: Schema, collection: Collection): Sql {
  const { columns } = historyColumnsOf(schema, collection);
  const chunks: Sql[] = [];
  for (let at = 0; at < columns.length; at += COLUMNS_OF_A_CALL) {
    const cells = columns.slice(at, at + COLUMNS_OF_A_CALL).flatMap((each) => [text(each.name), cellText(each)]);
    chunks.push(sql`jsonb_build_object(${join(cells as readonly Sql[], ', ')})`);
  }
  return join(chunks, ' || ');
}

function cellText({ name, type }: { readonly name: string; readonly type: string }): Sql {
  const cell = ident(ROW_ALIAS, name);
  if (type === 'boolean') return sql`left(${cell}::text, 1)`;
  if (type === 'timestamp with time zone')
    return sql`to_char(${cell} AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS.US"+00"')`;
  return sql`${cell}::text`;
}
