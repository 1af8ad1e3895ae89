/** A form made from the schema, for a new record or for the changes of one. */
import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import { type Capability, etagOf, type RecordCapabilities } from '../../../../client/client.ts';
import { noteProblem } from '../../../app/session-state.ts';
import { showToast } from '../../../app/toasts.tsx';
import { service } from '../../../data/api-service.ts';
import type { ShownProblem } from '../../../data/problem-words.ts';
import type { ServedCollection } from '../../../data/schema-answer.ts';
import { ProblemNote } from '../../../parts/problem-note.tsx';
import { wording } from '../../../wording.ts';
import { noteRecord } from '../record-events.ts';
import { expandedNames, type StudioRecord } from '../record-query.ts';
import type { TaggedRecord } from '../record-reader.ts';
import { ConflictTable } from './conflict-table.tsx';
import { dataOf, type FormDraft, formMembersOf, keepDraft, keptDraft, undoOf } from './form-draft.ts';
import { MemberControl } from './member-control.tsx';

interface RecordFormProps {
  readonly collection: ServedCollection;
  /** Undefined for a new record. */
  readonly edited: TaggedRecord | undefined;
  readonly fields: RecordCapabilities['fields'];
  /** The record as it was saved; only its id where the caller may not read it. */
  readonly onSaved: (saved: StudioRecord) => void;
  readonly onCancel: () => void;
}

/** The draft, which storage keeps with each change. */
function useDraft(collection: string, id: string | undefined) {
  const [draft, setDraft] = useState<FormDraft>(() => keptDraft(collection, id));
  const change = (name: string, value: FormDraft[string]): void => {
    // Several controls may change before the next render.
    setDraft((before) => {
      const next = { ...before, [name]: value };
      keepDraft(collection, id, next);
      return next;
    });
  };
  return [draft, change] as const;
}

export function RecordForm({ collection, edited, fields, onSaved, onCancel }: RecordFormProps): JSX.Element {
  const id = edited === undefined ? undefined : String(edited.record.id);
  const [draft, change] = useDraft(collection.name, id);
  const [problem, setProblem] = useState<ShownProblem>();
  const [isBusy, setBusy] = useState(false);
  const save = async (base = edited): Promise<void> => {
    setBusy(true);
    try {
      const saved = await writeRecord(collection, draft, base);
      keepDraft(collection.name, id, {});
      onSaved(saved);
    } catch (error) {
      setProblem(noteProblem(error));
      setBusy(false);
      focusInvalid();
    }
  };
  const leave = (): void => {
    keepDraft(collection.name, id, {});
    onCancel();
  };
  const isConflict = problem?.status === 412 && edited !== undefined;
  const isUnchanged = edited !== undefined && Object.keys(draft).length === 0;
  return (
    <form
      class="record-form"
      onSubmit={(event) => {
        event.preventDefault();
        void save();
      }}
      noValidate
    >
      {formMembersOf(collection).map((member) => (
        <MemberControl
          key={member.name}
          member={member}
          record={edited?.record}
          draft={draft}
          problem={problem?.fields[member.name]}
          isForbidden={edited !== undefined && fields[member.name]?.write === (false satisfies Capability)}
          onDraft={(value) => change(member.name, value)}
        />
      ))}
      {isConflict && (
        <ConflictTable
          collection={collection}
          before={edited.record}
          draft={draft}
          onOver={(stored) => void save(stored)}
          onStored={leave}
        />
      )}
      {problem !== undefined && !isConflict && <ProblemNote problem={problem} />}
      <FormActions isDisabled={isBusy || isUnchanged || isConflict} onCancel={leave} />
    </form>
  );
}

interface FormActionsProps {
  readonly isDisabled: boolean;
  readonly onCancel: () => void;
}

function FormActions({ isDisabled, onCancel }: FormActionsProps): JSX.Element {
  return (
    <div class="actions">
      <button type="submit" class="primary" disabled={isDisabled}>
        {wording.save}
      </button>
      <button type="button" onClick={onCancel}>
        {wording.cancel}
      </button>
    </div>
  );
}

/** The first control that the service rejects. */
const focusInvalid = (): void => {
  requestAnimationFrame(() => document.querySelector<HTMLElement>('.record-form [aria-invalid="true"]')?.focus());
};

/** Throws BylawError. A change can be undone until another user changes the record. */
async function writeRecord(
  collection: ServedCollection,
  draft: FormDraft,
  base: TaggedRecord | undefined,
): Promise<StudioRecord> {
  const { name } = collection;
  const records = service.collection(name);
  const data = dataOf(collection, draft);
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
  const next = etagOf(saved);
  const undo = async (): Promise<void> => {
    try {
      const before = undoOf(collection, draft, record);
      const undone = await records.update(record.id, before, { ...options, ifMatch: next });
      noteRecord({ kind: 'updated', collection: name, record: undone as StudioRecord });
    } catch (error) {
      showToast(noteProblem(error).text);
    }
  };
  showToast(wording.saved, next === undefined ? undefined : undo);
  return saved;
}
