/** A form made from the schema, for a new record or for the changes of one. */
import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import type { Capability, RecordCapabilities } from '../../../../client/client.ts';
import { noteProblem } from '../../../app/session-state.ts';
import type { ShownProblem } from '../../../data/problem-words.ts';
import type { ServedCollection } from '../../../data/schema-answer.ts';
import { wording } from '../../../en.ts';
import { ProblemNote } from '../../../parts/problem-note.tsx';
import type { StudioRecord } from '../record-query.ts';
import type { TaggedRecord } from '../record-reader.ts';
import { ConflictTable } from './conflict-table.tsx';
import { type FormDraft, formMembersOf, keepDraft, keptDraft, newMembersOf } from './form-draft.ts';
import { MemberControl } from './member-control.tsx';
import { writeRecord } from './write-record.ts';

interface RecordFormProps {
  readonly collection: ServedCollection;
  /** Undefined for a new record. */
  readonly edited: TaggedRecord | undefined;
  readonly fields: RecordCapabilities['fields'];
  /** The record as it was saved; only its id where the caller may not read it. */
  readonly onSaved: (saved: StudioRecord) => void;
  readonly onCancel: () => void;
}

/** The draft, which storage keeps with each change, and the record that it is saved over. */
function useDraft(collection: string, edited: TaggedRecord | undefined) {
  const id = edited === undefined ? undefined : String(edited.record.id);
  const [{ values, base }, setDraft] = useState(() => keptDraft(collection, id) ?? { values: {}, base: edited });
  const change = (name: string, value: FormDraft[string]): void => {
    // Several controls may change before the next render.
    setDraft((before) => {
      const next = { ...before, values: { ...before.values, [name]: value } };
      keepDraft(collection, id, next);
      return next;
    });
  };
  return { draft: values, base, change, drop: () => keepDraft(collection, id, undefined) };
}

export function RecordForm({ collection, edited, fields, onSaved, onCancel }: RecordFormProps): JSX.Element {
  const { draft, base, change, drop } = useDraft(collection.name, edited);
  const [problem, setProblem] = useState<ShownProblem>();
  const [isBusy, setBusy] = useState(false);
  const save = async (over = base): Promise<void> => {
    setBusy(true);
    try {
      const saved = await writeRecord(collection, draft, over);
      drop();
      onSaved(saved);
    } catch (error) {
      setProblem(noteProblem(error));
      setBusy(false);
      focusInvalid();
    }
  };
  const leave = (): void => {
    drop();
    onCancel();
  };
  const isConflict = problem?.status === 412 && base !== undefined;
  const isUnchanged = base !== undefined && Object.keys(draft).length === 0;
  return (
    <form
      class="record-form"
      onSubmit={(event) => {
        event.preventDefault();
        void save();
      }}
      noValidate
    >
      {(base === undefined ? newMembersOf : formMembersOf)(collection).map((member) => (
        <MemberControl
          key={member.name}
          member={member}
          record={base?.record}
          draft={draft}
          problem={problem?.fields[member.name]}
          isForbidden={base !== undefined && fields[member.name]?.write === (false satisfies Capability)}
          onDraft={(value) => change(member.name, value)}
        />
      ))}
      {isConflict && (
        <ConflictTable
          collection={collection}
          before={base.record}
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
      <button type="submit" class="primary" aria-keyshortcuts="Control+Enter" disabled={isDisabled}>
        {wording.save}
      </button>
      <button type="button" aria-keyshortcuts="Control+Shift+x" onClick={onCancel}>
        {wording.cancel}
      </button>
    </div>
  );
}

/** The first control that the service rejects; else the problem comes into view. */
const focusInvalid = (): void => {
  requestAnimationFrame(() => {
    const invalid = document.querySelector<HTMLElement>('.record-form [aria-invalid="true"]');
    if (invalid !== null) invalid.focus();
    else document.querySelector('.record-form .problem')?.scrollIntoView({ block: 'nearest' });
  });
};
