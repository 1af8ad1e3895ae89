/**
 * Writes to a table that another program owns, whose defaults, generated columns and triggers change the row. The rules
 * judge the row twice: as the request asks for it, before anything is written, and as the database has stored it, which
 * the caller undoes if they do not hold. INVARIANT: both see the other rows as they were before the write, so no record
 * can be evidence for itself.
 */
import type { Collection } from '../../schema/model/model.ts';
import { ident, join, type Sql, sql } from '../../sql.ts';
import type { Reading } from '../access-context.ts';
import { recordKeyOf } from '../record-key.ts';
import { scopeOf } from '../scope.ts';
import {
  assignmentsOf,
  insertDecided,
  judgeInsert,
  judgeUpdate,
  type RowUpdate,
  STORED,
  storedAs,
  WRITTEN,
  type Writing,
} from './written-row.ts';

export interface OwnedRow {
  readonly writing: Writing;
  /** Conditions of the rows `STORED` and `WRITTEN`. */
  readonly conditions: readonly Sql[];
}

/** The outcome of a write. */
interface OwnersAnswer {
  /** Undefined: nothing was written. */
  readonly id: string | undefined;
  /** The conditions that hold. If one does not, the transaction must not be committed. */
  readonly holds: readonly boolean[];
}

/** The row that the database has stored, by the name of the statement that writes it. */
const MADE = 'made';

export async function insertOwned(reading: Reading, { writing, conditions }: OwnedRow): Promise<OwnersAnswer> {
  const { collection } = reading.access;
  const asked = await judgeInsert(reading, { writing, conditions });
  if (asked.includes(false)) return { id: undefined, holds: asked };
  const insert = insertDecided(reading, { writing, returning: sql`${ident(STORED)}.*` });
  const stored = storedAs(
    scopeOf(reading),
    { schema: reading.store.schema, collection },
    { writing, conditions, made: MADE, isNew: true },
  );
  const [cells] = await reading.q.rows(sql`
    WITH ${ident(MADE)} AS (${insert})
    SELECT ${madeColumns(collection, conditions)}
      FROM ${ident(MADE)}, LATERAL (${stored}) AS ${ident(WRITTEN)}`);
  return ownersAnswer(cells, asked);
}

/** Updates a row that this transaction has locked. */
export async function updateOwned(reading: Reading, update: RowUpdate & OwnedRow): Promise<OwnersAnswer> {
  const { writing, conditions, id } = update;
  const { collection } = reading.store.shape(update.collection);
  const asked = await judgeUpdate(reading, update);
  const assignments = assignmentsOf(collection, update);
  if (asked.includes(false)) return { id: undefined, holds: asked };
  if (assignments.length === 0) return { id: String(id), holds: asked };
  const isTarget = recordKeyOf(collection).is(STORED, id);
  const rows = scopeOf(reading).from(update.collection, STORED);
  const stored = storedAs(
    rows.related,
    { schema: reading.store.schema, collection },
    { writing, conditions, made: MADE, isNew: false },
  );
  const [cells] = await reading.q.rows(sql`
    WITH "before" AS (SELECT ${ident(STORED)}.* FROM ${rows.where(isTarget)}),
         ${ident(MADE)} AS (UPDATE ${scopeOf(reading).stored(update.collection, STORED).set(assignments, isTarget)} RETURNING ${ident(STORED)}.*)
    SELECT ${madeColumns(collection, conditions)}
      FROM "before" AS ${ident(STORED)}, ${ident(MADE)}, LATERAL (${stored}) AS ${ident(WRITTEN)}`);
  return ownersAnswer(cells, asked);
}

const madeColumns = (collection: Collection, conditions: readonly Sql[]): Sql =>
  join([recordKeyOf(collection).made(MADE), ...conditions.map((condition) => sql`(${condition})`)], ', ');

/** A trigger can leave the row as it was, and so can row security: then no condition of the record holds. */
function ownersAnswer(cells: readonly (string | null)[] | undefined, asked: readonly boolean[]): OwnersAnswer {
  if (cells === undefined) return { id: undefined, holds: asked.map(() => false) };
  const [id, ...holds] = cells;
  return { id: id!, holds: holds.map((cell) => cell === 't') };
}
