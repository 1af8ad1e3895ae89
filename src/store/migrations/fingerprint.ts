/** A short text that is equal for schemas that want the same tables. */
import { createHash } from 'node:crypto';
import type { Schema } from '../../schema/model.ts';
import { tablesOf } from './tables.ts';

export function fingerprintOf(schema: Schema): string {
  return createHash('sha256')
    .update(JSON.stringify([...tablesOf(schema)]))
    .digest('base64url');
}
