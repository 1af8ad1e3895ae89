/**
 * Batches that write the same unique values in different orders would wait for each other, until
 * PostgreSQL ends one of them after a second. So a batch takes its turn for all of its values at
 * once, in one order. A single write needs none: it waits for one value at a time, and holds none.
 */
import { createHash } from 'node:crypto';
import type { Collection } from '../../../schema/model.ts';
import { param, sql } from '../../../sql.ts';
import type { Transaction } from '../../database/contract.ts';
import type { Data } from '../data.ts';
import { isUnique } from './unique-values.ts';

/** Values that a write sets, as its body has them. */
export interface WantedValues {
  readonly collection: Collection;
  readonly data: Data;
}

/** Until the end of the transaction. */
export async function lockValues(tx: Transaction, wanted: readonly WantedValues[]): Promise<void> {
  const values = new Set(wanted.flatMap(uniqueValuesOf));
  if (values.size < 2) return;
  // Sorted by what is locked, so that two values of one hash change nothing.
  await tx.rows(sql`
    SELECT pg_advisory_xact_lock(k.lock)
      FROM (SELECT DISTINCT hashtextextended(current_schema(), v) AS lock
              FROM unnest(${param('int8[]', [...values].map(lockNumber))}) AS v
             ORDER BY 1) AS k`);
}

/** Here and not in the database, which takes no text that is not checked yet: it may hold NUL. */
const lockNumber = (value: string): number => createHash('sha256').update(value).digest().readUIntBE(0, 6);

/** The data is as it was sent: what is not a scalar is refused by the operation, in its turn. */
function uniqueValuesOf({ collection: { table, fields, relations }, data }: WantedValues): readonly string[] {
  return [...fields.values(), ...relations.values()].flatMap((member) => {
    if (!('unique' in member && isUnique(member) && Object.hasOwn(data, member.name))) return [];
    const value = data[member.name];
    return value === null || typeof value === 'object' ? [] : [`${table}.${member.column}=${String(value)}`];
  });
}
