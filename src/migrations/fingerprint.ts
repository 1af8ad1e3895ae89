/** A short text that is equal for schemas that want the same tables. */
import { createHash } from 'node:crypto';
import type { Schema } from '../schema/model/model.ts';
import { type Table, tablesOf } from './tables.ts';

/** Each readiness probe compares them. */
const fingerprints = new WeakMap<Schema, string>();

/** What stands in place of a fingerprint until the statements are done that run apart. */
export const underWay = (migration: string): string => `under way: ${migration}`;
export const isUnderWay = (fingerprint: string): boolean => fingerprint.startsWith('under way: ');

export function fingerprintOf(schema: Schema): string {
  const known = fingerprints.get(schema);
  if (known !== undefined) return known;
  const made = createHash('sha256')
    .update(JSON.stringify([...tablesOf(schema)].map(([name, table]) => [name, asBefore(table)])))
    .digest('base64url');
  fingerprints.set(schema, made);
  return made;
}

/** Versions that knew unique columns only have written a name for each; what is equal stays equal. */
const asBefore = (table: Table): object => ({
  ...table,
  uniques: table.uniques.map((columns) => (columns.length === 1 ? columns[0] : columns)),
});
