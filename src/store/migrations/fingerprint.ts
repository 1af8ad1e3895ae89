/** A short text that is equal for schemas that want the same tables. */
import { createHash } from 'node:crypto';
import type { Schema } from '../../schema/model.ts';
import { tablesOf } from './tables.ts';

/** Each readiness probe compares them. */
const fingerprints = new WeakMap<Schema, string>();

export function fingerprintOf(schema: Schema): string {
  const known = fingerprints.get(schema);
  if (known !== undefined) return known;
  const made = createHash('sha256')
    .update(JSON.stringify([...tablesOf(schema)]))
    .digest('base64url');
  fingerprints.set(schema, made);
  return made;
}
