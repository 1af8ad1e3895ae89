/** The file that questions about a create mean: one without bytes. */
import { createHash } from 'node:crypto';
import type { Collection } from '../../schema/model/model.ts';
import type { Data, ServerValues } from './input.ts';

const OF_NO_BYTES: ServerValues = {
  content_type: 'application/octet-stream',
  size: 0,
  sha256: createHash('sha256').digest('hex'),
};

/** The data of a create that is asked about, and the values that its upload would set. */
export const askedCreate = (
  { kind }: Collection,
  data: Data,
): { readonly data: Data; readonly given?: ServerValues } =>
  kind === 'files' ? { data: { name: 'file', ...data }, given: OF_NO_BYTES } : { data };
