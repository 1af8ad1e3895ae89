/**
 * Batches that change the same records in different orders would wait for each other, until PostgreSQL
 * ends one of them after a second. So a batch locks its records at once, in one order.
 */

import type { Transaction } from '../../../database/contract.ts';
import { join, raw, type Sql, sql } from '../../../sql.ts';
import type { AccessContext, Reading, Store } from '../../access-context.ts';
import { recordKeyOf } from '../../record-key.ts';
import { inTenantOf, scopeOf } from '../../scope.ts';
import type { Data } from '../input.ts';
import { STORED } from '../written-row.ts';
import { needsTurnFor, placeColumns, placedCallerOf, placedData, type WantedValues } from './value-locks.ts';

/** A stored record that a batch will change. */
export interface WantedRow {
  readonly access: AccessContext;
  readonly action: 'update' | 'delete';
  readonly id: string;
  /** The body of an update. */
  readonly data?: Data;
}

/**
 * Locks the rows until the end of the transaction. A row is left to its operation if the rules of the stored
 * record do not allow the write: a caller who may not write it must not hold up those who may.
 * Resolves with the places of the locked rows that the writes take turns in, which the batch locks afterwards, in one order.
 */
export async function lockRows(
  store: Store,
  tx: Transaction,
  wanted: readonly WantedRow[],
): Promise<readonly WantedValues[]> {
  const inTurn = new Set(wanted.filter((row) => takesTurn(store, row)));
  if (new Set(wanted.map(({ id }) => id)).size < 2 && inTurn.size === 0) return [];
  const parts = new Map<string, RowsOfTenant>();
  for (const row of wanted) {
    const { access, action, id } = row;
    // Each write locks its own row.
    if (access.collection.hasNoRowLocks) continue;
    const reading = await inTenantOf<Reading>({ store, q: tx, access }, id, action);
    const name = `${access.collection.table} ${reading.tenant}`;
    const part = parts.get(name) ?? { reading, rows: [] };
    parts.set(name, part);
    part.rows.push(row);
  }
  const places: WantedValues[] = [];
  for (const name of [...parts.keys()].sort()) {
    const part = parts.get(name)!;
    const { collection } = part.reading.access;
    for (const [id, ...cells] of await tx.rows(lockStatement(part))) {
      const row = part.rows.find((each) => each.id === id && inTurn.has(each));
      if (row === undefined) continue;
      const data = placedData(store.schema, collection, cells);
      places.push({ collection, data, id: row.id, caller: placedCallerOf(row.access) });
    }
  }
  return places;
}

const takesTurn = (store: Store, { access: { collection }, action, data = {} }: WantedRow): boolean =>
  needsTurnFor(action, store, { collection, data });

/** Rows of one table and one tenant. */
interface RowsOfTenant {
  readonly reading: Reading;
  readonly rows: WantedRow[];
}

function lockStatement({ reading, rows }: RowsOfTenant): Sql {
  const allowed = new Map<string, { readonly condition: Sql; readonly ids: string[] }>();
  for (const { access, action, id } of rows) {
    const permit = access.permit(access.collection.name, action).within(reading.tenant);
    const condition = action === 'update' ? permit.update.holds(STORED) : permit.lookingUp().where(STORED);
    // Rules that read the body have other values in each operation.
    const key = JSON.stringify([condition.text, condition.values]);
    const part = allowed.get(key) ?? { condition, ids: [] };
    allowed.set(key, part);
    part.ids.push(id);
  }
  const key = recordKeyOf(reading.access.collection);
  const parts = Array.from(
    allowed.values(),
    ({ condition, ids }) => sql`(${key.isAmong(STORED, ids)} AND ${condition})`,
  );
  const strength = raw(rows.some(({ action }) => action === 'delete') ? 'UPDATE' : 'NO KEY UPDATE');
  const { store, access } = reading;
  return sql`
    SELECT ${join([key.of(STORED), ...placeColumns(store.schema, access.collection)], ', ')}
      FROM ${scopeOf(reading)
        .lockable(reading.access.collection.name, STORED)
        .where(sql`(${join(parts, ' OR ')})`)}
     ORDER BY ${key.of(STORED)}
       FOR ${strength}`;
}
