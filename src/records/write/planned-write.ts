/**
 * The write that a create or an update would make, for explanations. It takes the same steps as the
 * write itself.
 */
import type { Permit } from '../../policy/access.ts';
import type { Row } from '../../policy/types.ts';
import { join, raw, type Sql } from '../../sql.ts';
import type { Reading, Requested } from '../access-context.ts';
import { heldBy } from '../relations/related.ts';
import { passesCreate, passesUpdate } from './checks.ts';
import { type Data, readInput } from './input.ts';
import { changedBy, type PlannedWrite, storedRow } from './row-in-process.ts';
import { writingOf } from './update.ts';
import {
  changedColumns,
  insertJudgement,
  insertStatement,
  STORED,
  updateJudgement,
  updateStatement,
  WRITTEN,
  type Writing,
} from './written-row.ts';

/** `reading.q` is a transaction: finding the holder of a has_one locks it. */
export async function plannedUpdate(reading: Reading, stored: Row, data: Data): Promise<PlannedWrite> {
  const { access, store, q, tenant } = reading;
  const { collection, now } = access;
  const input = readInput(store.schema, access, { mode: 'update', data });
  const writing = await writingOf(reading, String(stored.id), input);
  const held = await heldBy({ store, q, tenant }, collection.name, stored);
  const written = {
    ...stored,
    ...storedRow(collection, writing, false),
    ...changedBy(store, held, writing),
    ...(collection.fields.has('updated_at') && {
      updated_at: now > String(stored.updated_at) ? now : stored.updated_at,
    }),
  };
  return { writing, errors: input.errors, references: input.references, written };
}

interface PlannedStatement {
  readonly id: string;
  readonly writing: Writing;
  /** The permits of the record, and of its members with rules of their own that the write sets. */
  readonly permits: readonly Permit[];
  /** The records that fail the checks of the collection. */
  readonly violations: readonly Permit[];
}

/** The statement that decides an update; it also writes it where the row has its values as they are. */
export function plannedStatement(reading: Requested, { id, writing, permits, violations }: PlannedStatement): Sql {
  const changed = changedColumns(reading.access.collection, writing);
  const conditions = [
    ...permits.map(({ update }) => update.allows(STORED, WRITTEN, changed)),
    ...violations.map((violation) => passesUpdate(violation, changed)),
  ];
  const { collection, now } = reading.access;
  const update = { collection: collection.name, id, now, writing };
  if (!collection.countsChanges) return updateJudgement(reading, { ...update, conditions });
  return updateStatement(reading, { ...update, condition: join(conditions, ' AND '), returning: raw('1') });
}

/** The statement that decides a create, and also writes it as above. */
export function plannedInsertion(reading: Omit<Reading, 'q'>, planned: Omit<PlannedStatement, 'id'>): Sql {
  const { writing, permits, violations } = planned;
  const conditions = [...permits.map((permit) => permit.where(WRITTEN)), ...violations.map(passesCreate)];
  if (!reading.access.collection.countsChanges) return insertJudgement(reading, { writing, conditions });
  return insertStatement(reading, { writing, condition: join(conditions, ' AND '), returning: raw('1') });
}
