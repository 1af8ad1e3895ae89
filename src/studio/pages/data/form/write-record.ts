/** The write of a draft, with `If-Match` and an undo. */
import { etagOf } from '../../../../client/client.ts';
import { noteProblem } from '../../../app/session-state.ts';
import { showToast } from '../../../app/toasts.tsx';
import { service } from '../../../data/api-service.ts';
import type { ShownProblem } from '../../../data/problem-words.ts';
import type { ServedCollection } from '../../../data/schema-answer.ts';
import { wording } from '../../../en.ts';
import { noteRecord } from '../record-events.ts';
import { expandedNames, type StudioRecord } from '../record-query.ts';
import type { TaggedRecord } from '../record-reader.ts';
import { checkedData, type FormDraft, undoOf } from './form-draft.ts';
import { RestoredTags } from './restored-tags.ts';

/** Throws BylawError. A change can be undone until another user changes the record. */
export async function writeRecord(
  collection: ServedCollection,
  draft: FormDraft,
  base: TaggedRecord | undefined,
): Promise<StudioRecord> {
  const { name } = collection;
  const data = checkedData(collection, draft);
  if (base === undefined) {
    const options = { expand: expandedNames(collection) };
    const created = (await service.collection(name).create(data, options)) as StudioRecord;
    noteRecord({ kind: 'created', collection: name });
    showToast(wording.created);
    return created;
  }
  const saved = await overwriteRecord(collection, base, data);
  const [undone, tag] = [undoOf(collection, draft, base.record), etagOf(saved)];
  const isUndoable = undone !== undefined && tag !== undefined;
  showToast(wording.saved, isUndoable ? () => undoWrite(collection, { base, data: undone, tag }) : undefined);
  return saved;
}

async function overwriteRecord(
  collection: ServedCollection,
  { record, etag }: TaggedRecord,
  data: Readonly<Record<string, unknown>>,
): Promise<StudioRecord> {
  const { name } = collection;
  const options = { expand: expandedNames(collection), ifMatch: etag };
  const updated = (await service.collection(name).update(record.id, data, options)) as StudioRecord;
  noteRecord({ kind: 'updated', collection: name, record: updated });
  return updated;
}

const restored = new RestoredTags();

interface OfferedUndo {
  /** The record before the change. */
  readonly base: TaggedRecord;
  readonly data: Readonly<Record<string, unknown>>;
  /** The tag of the record after the change. */
  readonly tag: string;
}

/** → false if the undo can be tried again. */
async function undoWrite(
  collection: ServedCollection,
  { base: { record, etag }, data, tag }: OfferedUndo,
): Promise<boolean> {
  const key = `${collection.name}/${record.id}`;
  try {
    const former = await overwriteRecord(collection, { record, etag: restored.newest(key, tag) }, data);
    const next = etagOf(former);
    if (etag !== undefined && next !== undefined) restored.note(key, etag, next);
    return true;
  } catch (error) {
    const problem = noteProblem(error);
    showToast(problem.text);
    return !mayPass(problem);
  }
}

/** A lost connection, an ended session, and a busy service. */
const mayPass = ({ status }: ShownProblem): boolean =>
  status === undefined || status === 401 || status === 429 || status >= 500;
