/** The actions on the selected records: edit one field, delete, export. */
import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import { noteProblem } from '../../app/session-state.ts';
import { showToast } from '../../app/toasts.tsx';
import { greyReason } from '../../app/viewed-caller.ts';
import type { ShownProblem } from '../../data/problem-words.ts';
import type { ServedCollection } from '../../data/schema-answer.ts';
import { ConfirmDialog } from '../../parts/confirm-dialog.tsx';
import { greyed } from '../../parts/greyed.ts';
import { ProblemNote } from '../../parts/problem-note.tsx';
import { wording } from '../../wording.ts';
import { type BulkOutcome, saveRecords, writeAll } from './bulk-actions.ts';
import { dataOf, type FormDraft } from './form/form-draft.ts';
import { MemberControl } from './form/member-control.tsx';
import { noteRecord } from './record-events.ts';
import type { StudioRecord } from './record-query.ts';

interface BulkBarProps {
  readonly collection: ServedCollection;
  readonly records: readonly StudioRecord[];
  readonly onClear: () => void;
}

export function BulkBar({ collection, records, onClear }: BulkBarProps): JSX.Element {
  const [asked, setAsked] = useState<'edit' | 'delete'>();
  const [failed, setFailed] = useState<BulkOutcome['failed']>([]);
  const [problem, setProblem] = useState<ShownProblem>();
  const ids = records.map(({ id }) => id);
  const run = async (data?: Readonly<Record<string, unknown>>): Promise<void> => {
    setProblem(undefined);
    try {
      const outcome = await writeAll(collection.name, ids, data);
      noteWritten(collection.name, outcome, data);
      setFailed(outcome.failed);
      setAsked(undefined);
      showToast(`${data === undefined ? wording.deleted : wording.saved} ${outcome.written.length}`);
      if (outcome.failed.length === 0) onClear();
    } catch (error) {
      setProblem(noteProblem(error));
    }
  };
  const off = greyed(greyReason.value);
  return (
    <section class="bulk-bar" aria-label={wording.selection}>
      <strong role="status">{`${records.length} ${wording.selected}`}</strong>
      {collection.kind === 'plain' && (
        <>
          <button
            type="button"
            aria-keyshortcuts="f"
            {...off}
            onClick={() => setAsked(asked === 'edit' ? undefined : 'edit')}
          >
            {wording.editField}
          </button>
          <button type="button" class="danger" aria-keyshortcuts="Shift+d" {...off} onClick={() => setAsked('delete')}>
            {wording.delete}
          </button>
        </>
      )}
      <button type="button" aria-keyshortcuts="Shift+x" onClick={() => saveRecords(collection.name, records)}>
        {wording.export}
      </button>
      <button type="button" aria-keyshortcuts="Shift+c" onClick={onClear}>
        {wording.clearSelection}
      </button>
      {asked === 'edit' && <FieldForm collection={collection} onData={(data) => void run(data)} />}
      {asked === 'delete' && (
        <ConfirmDialog
          title={`${wording.deleteSelected} ${records.length}?`}
          action={wording.delete}
          onConfirm={() => void run()}
          onClose={() => setAsked(undefined)}
        >
          <p>{wording.deleteHint}</p>
        </ConfirmDialog>
      )}
      {problem !== undefined && <ProblemNote problem={problem} />}
      {failed.length > 0 && <FailedRecords failed={failed} />}
    </section>
  );
}

function FailedRecords({ failed }: Pick<BulkOutcome, 'failed'>): JSX.Element {
  return (
    <div class="problem" role="alert">
      <p>{wording.failedRecords}</p>
      <ul>
        {failed.map(({ id, text }) => (
          <li key={id}>
            <code>{String(id)}</code> {text}
          </li>
        ))}
      </ul>
    </div>
  );
}

/** @param data undefined after a delete */
function noteWritten(collection: string, { written }: BulkOutcome, data: object | undefined): void {
  for (const id of written)
    noteRecord(
      data === undefined
        ? { kind: 'deleted', collection, id: String(id) }
        : { kind: 'updated', collection, record: { id, ...data } },
    );
}

interface FieldFormProps {
  readonly collection: ServedCollection;
  readonly onData: (data: Readonly<Record<string, unknown>>) => void;
}

/** Asks for a value that all selected records get. */
function FieldForm({ collection, onData }: FieldFormProps): JSX.Element {
  const { fields, relations } = collection;
  const members = [...fields, ...relations.filter(({ kind }) => kind === 'belongs_to')].filter(
    ({ read_only: isReadOnly }) => !isReadOnly,
  );
  const [name, setName] = useState(members[0]?.name);
  const [draft, setDraft] = useState<FormDraft>({});
  const member = members.find((each) => each.name === name);
  if (member === undefined) return <p class="hint">{wording.fieldForbidden}</p>;
  return (
    <form
      class="field-form"
      onSubmit={(event) => {
        event.preventDefault();
        onData(dataOf(collection, draft));
      }}
    >
      <label>
        {wording.field}
        <select
          value={name}
          onChange={(event) => {
            setName(event.currentTarget.value);
            setDraft({});
          }}
        >
          {members.map((each) => (
            <option key={each.name}>{each.name}</option>
          ))}
        </select>
      </label>
      <MemberControl
        key={name}
        member={member}
        record={undefined}
        draft={draft}
        problem={undefined}
        isForbidden={false}
        onDraft={(value) => setDraft({ [member.name]: value })}
      />
      <button type="submit" aria-keyshortcuts="Control+Enter" disabled={!Object.hasOwn(draft, member.name)}>
        {wording.save}
      </button>
    </form>
  );
}
