/** A row that this transaction holds: what it is, whether the caller may read it, and which rules hold for it. */
import type { Row } from '../policy/types.ts';
import { join, param, raw, type Sql, sql } from '../sql.ts';
import { type Reading, readable } from './ask.ts';
import type { Cells } from './contract.ts';
import type { Version } from './etag.ts';
import { VERSION_WIDTH, versionColumns } from './select.ts';

export interface Locked {
  readonly row: Row;
  readonly version: Version;
  readonly isReadable: boolean;
  /** In the order of `conditions`; NULL is not true. */
  readonly holds: readonly boolean[];
}

/**
 * Locks first and looks then: a statement that waited for a lock would see the row as it is, and all that hangs on the row as it was before.
 * Undefined: there is no such row.
 */
export async function lockRow(
  reading: Reading,
  {
    collection,
    id,
    conditions,
  }: { readonly collection: string; readonly id: string; readonly conditions: readonly Sql[] },
): Promise<Locked | undefined> {
  const { store, q } = reading;
  const locked = await q.rows(
    sql`SELECT 1 FROM ${store.from(collection, raw('t'))} WHERE t.id = ${param('uuid', id)} FOR UPDATE`,
  );
  if (locked.length === 0) return undefined;
  return lookAt(reading, { collection, id, conditions });
}

/** A row that this transaction has locked or written. */
export async function lookAt(
  { store, q, ask }: Reading,
  {
    collection,
    id,
    conditions,
  }: { readonly collection: string; readonly id: string; readonly conditions: readonly Sql[] },
): Promise<Locked> {
  const shape = store.shape(collection);
  const questions = [readable(ask, collection, 't'), ...conditions].map((condition) => sql`(${condition})`);
  const [cells] = await q.rows(
    sql`SELECT ${versionColumns(store, { collection, alias: 't' })}, ${join(questions, ', ')}, ${shape.columns('t')} FROM ${store.from(collection, raw('t'))} WHERE t.id = ${param('uuid', id)}`,
  );
  return toLocked(cells!, questions.length, (from) => shape.row(cells!, from));
}

function toLocked(cells: Cells, questions: number, rowFrom: (from: number) => Row): Locked {
  const [isReadable, ...holds] = cells.slice(VERSION_WIDTH, VERSION_WIDTH + questions).map((cell) => cell === 't');
  return {
    version: { row: cells[0]!, members: cells[1]! },
    isReadable: isReadable!,
    holds,
    row: rowFrom(VERSION_WIDTH + questions),
  };
}
