/** The write of a draft, with `If-Match` and an undo. */
import { etagOf } from '../../../../client/client.ts';
import { noteProblem } from '../../../app/session-state.ts';
import { showToast } from '../../../app/toasts.tsx';
import { service } from '../../../data/api-service.ts';
import type { ServedCollection } from '../../../data/schema-answer.ts';
import { wording } from '../../../en.ts';
import { noteRecord } from '../record-events.ts';
import { expandedNames, type StudioRecord } from '../record-query.ts';
import type { TaggedRecord } from '../record-reader.ts';
import { type FormDraft, formData, undoOf } from './form-draft.ts';

/** Throws BylawError. A change can be undone until another user changes the record. */
export async function writeRecord(
  collection: ServedCollection,
  draft: FormDraft,
  base: TaggedRecord | undefined,
): Promise<StudioRecord> {
  const { name } = collection;
  const records = service.collection(name);
  const data = formData(collection, draft);
  const options = { expand: expandedNames(collection) };
  if (base === undefined) {
    const created = (await records.create(data, options)) as StudioRecord;
    noteRecord({ kind: 'created', collection: name });
    showToast(wording.created);
    return created;
  }
  const { record, etag } = base;
  const saved = (await records.update(record.id, data, { ...options, ifMatch: etag })) as StudioRecord;
  noteRecord({ kind: 'updated', collection: name, record: saved });
  const [undone, next] = [undoOf(collection, draft, record), etagOf(saved)];
  const undo = async (): Promise<void> => {
    try {
      const former = (await records.update(record.id, undone!, { ...options, ifMatch: next })) as StudioRecord;
      noteRecord({ kind: 'updated', collection: name, record: former });
    } catch (error) {
      showToast(noteProblem(error).text);
    }
  };
  showToast(wording.saved, undone === undefined || next === undefined ? undefined : undo);
  return saved;
}
