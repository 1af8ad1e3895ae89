/** Reads one record with its related records and its tag. */
import { etagOf } from '../../../client/client.ts';
import { noteProblem } from '../../app/session-state.ts';
import { service } from '../../data/api-service.ts';
import type { ShownProblem } from '../../data/problem-words.ts';
import type { ServedCollection } from '../../data/schema-answer.ts';
import { expandedNames, type StudioRecord } from './record-query.ts';

export interface TaggedRecord {
  readonly record: StudioRecord;
  readonly etag: string | undefined;
}
/** Or the reason why it is not there. */
export type OpenRecord = TaggedRecord | { readonly problem: ShownProblem };

export async function openRecord(collection: ServedCollection, id: string): Promise<OpenRecord> {
  try {
    const expand = expandedNames(collection);
    const record = await service.collection(collection.name).read(id, { expand });
    return { record: record as StudioRecord, etag: etagOf(record) };
  } catch (error) {
    return { problem: noteProblem(error) };
  }
}
