/** The positions of cursors that have digests in place of long cells, whose record has them: it is read again. */
import { ident, join, param, sql } from '../../sql.ts';
import { type AccessContext, accessIn, type Store, visibilityOf } from '../access-context.ts';
import { readWithinBudget } from '../read-budget.ts';
import { recordKeyOf } from '../record-key.ts';
import { scopeOf } from '../scope.ts';
import { type CursorPosition, type Cursors, hasAllCells, lostCursor, type Position } from './cursor.ts';
import { keysetOf, type Sorting } from './keyset.ts';

export interface CursorReading {
  readonly store: Store;
  readonly access: AccessContext;
  readonly tenant: string | undefined;
  readonly sort: readonly Sorting[];
  readonly cursors: Cursors;
}

/**
 * Throws `invalid_cursor` if the caller may not list the record any more, or its values have changed: a value that the
 * caller has not seen would place the page.
 */
export async function wholePosition(reading: CursorReading, position: CursorPosition): Promise<Position> {
  if (hasAllCells(position)) return position;
  const now = await storedPosition(reading, position);
  if (now === undefined || !reading.cursors.isOf(position, now)) throw lostCursor();
  return position.map((cell, i) => (cell === null || typeof cell === 'string' ? cell : now[i]!));
}

async function storedPosition(
  { store, access: caller, tenant, sort }: CursorReading,
  position: CursorPosition,
): Promise<Position | undefined> {
  const access = accessIn(caller, tenant);
  const { name } = access.collection;
  const scope = scopeOf({ store, tenant });
  const { columns } = keysetOf(sort, { scope, visibility: visibilityOf(access), collection: name, alias: 't' });
  const { ordered } = recordKeyOf(access.collection);
  const id = position.slice(-ordered.length);
  const isRecord = ordered.map(({ column, type }, i) => sql`${ident('t', column)} = ${param(type, id[i])}`);
  const isListed = access.permit(name, 'list').within(tenant).where('t');
  const statement = sql`
    SELECT ${join(columns, ', ')}
      FROM ${scope.from(name, 't').where(...isRecord, isListed)}`;
  const reader = store.readerFor(access, tenant);
  const [row] = await readWithinBudget({ schema: store.schema, reader }, (budget) => budget.rows(statement));
  return row;
}
