/** Records as another caller may see them, of those that the administrator sees. */

import { askMatrix } from '../../data/matrix-question.ts';
import type { ServedCollection } from '../../data/schema-answer.ts';
import { askWhy } from '../../data/why-question.ts';
import { gridColumnsOf, type StudioRecord } from './record-query.ts';

/** In place of a value that rules of its own may hide from the caller, which only the open record shows. */
export const BY_RECORD = Symbol('by record');

/** The records that the caller may list, without related records: the caller may not be able to read these. */
export async function listedBy(
  caller: string,
  collection: ServedCollection,
  records: readonly StudioRecord[],
): Promise<readonly StudioRecord[]> {
  if (records.length === 0) return records;
  const ids = records.map(({ id }) => id);
  const [row] = await askMatrix({ collection: collection.name, action: 'list', callers: [caller], ids });
  const ruled = ruledMembers(collection);
  return records
    .filter((_, i) => row!.outcomes[i] === 'allowed')
    .map(({ expand, ...record }) => ({ ...record, ...ruled }));
}

function ruledMembers({ fields, relations }: ServedCollection): Readonly<Record<string, symbol>> {
  const ruled = [...fields, ...relations].filter(({ rules }) => rules?.read !== undefined);
  return Object.fromEntries(ruled.map(({ name }) => [name, BY_RECORD]));
}

/** Undefined: the caller may not read the record. Without the members that rules hide, and related records. */
export async function readableBy(
  caller: string,
  collection: ServedCollection,
  { expand, ...record }: StudioRecord,
): Promise<StudioRecord | undefined> {
  const question = { collection: collection.name, action: 'read', record: String(record.id), as: caller };
  const { allowed, members } = await askWhy(question);
  if (allowed !== true) return undefined;
  const hidden = new Set(members.filter((member) => member.allowed !== true).map(({ name }) => name));
  const shown = gridColumnsOf(collection).filter(({ name }) => !hidden.has(name));
  return { id: record.id, ...Object.fromEntries(shown.map(({ name }) => [name, record[name]])) };
}
