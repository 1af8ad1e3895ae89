/**
 * The write that a create or an update would make, for explanations. It takes the same steps as the
 * write itself.
 */
import type { Permit } from '../../policy/access.ts';
import type { Row } from '../../policy/types.ts';
import type { ErrorDetail } from '../../problem.ts';
import type { Collection } from '../../schema/model/model.ts';
import { join, raw, type Sql } from '../../sql.ts';
import type { Reading, Requested } from '../access-context.ts';
import { heldBy } from '../relations/related.ts';
import { newRecord } from './create.ts';
import { type Data, readInput } from './input.ts';
import { writingOf } from './update.ts';
import { changedColumns, insertStatement, STORED, updateStatement, WRITTEN, type Writing } from './written-row.ts';

export interface PlannedWrite {
  readonly writing: Writing;
  /** The record as it would be stored, with the ids of its partners and members. */
  readonly written: Row;
  readonly errors: readonly ErrorDetail[];
}

export function plannedCreate({ access }: Pick<Reading, 'access'>, id: string, data: Data): PlannedWrite {
  const input = readInput(access, { mode: 'create', data });
  const writing = newRecord(access, id, input);
  const before: Record<string, unknown> = {};
  for (const { kind, name } of access.collection.relations.values()) {
    if (kind === 'has_one') before[name] = null;
    if (kind === 'many_to_many') before[name] = [];
  }
  return {
    writing,
    errors: input.errors,
    written: { id, ...storedRow(access.collection, writing, true), ...changedBy(before, writing) },
  };
}

/** `reading.q` is a transaction: finding the holder of a has_one locks it. */
export async function plannedUpdate(reading: Reading, stored: Row, data: Data): Promise<PlannedWrite> {
  const { access, store, q, tenant } = reading;
  const { collection, now } = access;
  const input = readInput(access, { mode: 'update', data });
  const writing = await writingOf(reading, String(stored.id), input);
  const held = await heldBy({ store, q, tenant }, collection.name, stored);
  const written = {
    ...stored,
    ...storedRow(collection, writing, false),
    ...changedBy(held, writing),
    updated_at: now > String(stored.updated_at) ? now : stored.updated_at,
  };
  return { writing, errors: input.errors, written };
}

/** The members with a column that the write sets, as policies see them; of a new record, all. */
function storedRow({ fields, relations }: Collection, { values }: Writing, isNew: boolean): Row {
  const byColumn = new Map(values.map(({ column, value }) => [column, value]));
  const row: Record<string, unknown> = {};
  for (const member of [...fields.values(), ...relations.values()]) {
    if ('column' in member && (isNew || byColumn.has(member.column)))
      row[member.name] = byColumn.get(member.column) ?? null;
  }
  return row;
}

/** Partners and members by relation, after the write. */
function changedBy(held: Row, { members, partners }: Writing): Row {
  const after: Record<string, unknown> = { ...held };
  for (const { relation, partner } of partners) after[relation.name] = partner;
  for (const { relation, joining, leaving } of members) {
    const kept = ((held[relation.name] ?? []) as readonly string[]).filter((id) => !leaving.includes(id));
    after[relation.name] = [...new Set([...kept, ...joining])];
  }
  return after;
}

interface PlannedStatement {
  readonly id: string;
  readonly writing: Writing;
  /** The permits of the record, and of its members with rules of their own that the write sets. */
  readonly permits: readonly Permit[];
}

/** The statement that decides and writes an update. */
export function plannedStatement(reading: Requested, { id, writing, permits }: PlannedStatement): Sql {
  const changed = changedColumns(writing);
  const conditions = permits.map(({ update }) => update.allows(STORED, WRITTEN, changed));
  const condition = join(conditions, ' AND ');
  const { collection, now } = reading.access;
  return updateStatement(reading, { collection: collection.name, id, now, writing, condition, returning: raw('id') });
}

/** The statement that decides and writes a create. */
export function plannedInsertion(reading: Omit<Reading, 'q'>, { writing, permits }: Omit<PlannedStatement, 'id'>): Sql {
  const conditions = permits.map((permit) => permit.where(WRITTEN));
  const condition = join(conditions, ' AND ');
  return insertStatement(reading, { writing, condition, returning: raw('id') });
}
