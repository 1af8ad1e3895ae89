/** The actions on the selected records: edit one field, delete, export. */
import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import { noteProblem } from '../../app/session-state.ts';
import { useTabDraft } from '../../app/tab-drafts.ts';
import { showToast } from '../../app/toasts.tsx';
import { greyReason } from '../../app/viewed-caller.ts';
import type { ShownProblem } from '../../data/problem-words.ts';
import type { ServedCollection } from '../../data/schema-answer.ts';
import { wording } from '../../en.ts';
import { ConfirmDialog } from '../../parts/confirm-dialog.tsx';
import { greyed } from '../../parts/greyed.ts';
import { ProblemNote } from '../../parts/problem-note.tsx';
import { type BulkOutcome, saveRecords, writeEach } from './bulk-actions.ts';
import { checkedData, type FormDraft } from './form/form-draft.ts';
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
  /** → true once all are written. @param values left out: the records are deleted */
  const run = async (values?: FormDraft): Promise<boolean> => {
    setProblem(undefined);
    const outcome = await writeValues(collection, ids, values).catch((error) => setProblem(noteProblem(error)));
    if (outcome === undefined) return false;
    setFailed(outcome.failed);
    setAsked(undefined);
    showToast(`${values === undefined ? wording.deleted : wording.saved} ${outcome.written.length}`);
    const isDone = outcome.failed.length === 0;
    if (isDone) onClear();
    return isDone;
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
      {asked === 'edit' && <FieldForm collection={collection} problems={problem?.fields ?? {}} onValues={run} />}
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

/** Writes or deletes the records, as far as they let it. @param values left out: the records are deleted */
async function writeValues(
  collection: ServedCollection,
  ids: readonly StudioRecord['id'][],
  values: FormDraft | undefined,
): Promise<BulkOutcome> {
  const { name } = collection;
  const data = values && checkedData(collection, values);
  const outcome = await writeEach(name, ids, data);
  for (const id of outcome.written)
    noteRecord(
      data === undefined
        ? { kind: 'deleted', collection: name, id: String(id) }
        : { kind: 'updated', collection: name, record: { id, ...data } },
    );
  return outcome;
}

interface FieldFormProps {
  readonly collection: ServedCollection;
  readonly problems: ShownProblem['fields'];
  readonly onValues: (values: FormDraft) => Promise<boolean>;
}

/** The chosen field, the first one by default, and its value. */
interface FieldDraft {
  readonly name?: string;
  readonly values: FormDraft;
}
const NO_FIELD: FieldDraft = { values: {} };

/** Asks for a value that all selected records get. */
function FieldForm({ collection, problems, onValues }: FieldFormProps): JSX.Element {
  const { fields, relations } = collection;
  const members = [...fields, ...relations.filter(({ kind }) => kind === 'belongs_to')].filter(
    ({ read_only: isReadOnly }) => !isReadOnly,
  );
  const [{ name, values }, setDraft] = useTabDraft(`bulk:${collection.name}`, NO_FIELD);
  const member = members.find((each) => each.name === name) ?? members[0];
  if (member === undefined) return <p class="hint">{wording.fieldForbidden}</p>;
  return (
    <form
      class="field-form"
      onSubmit={(event) => {
        event.preventDefault();
        void onValues(values).then((isDone) => isDone && setDraft(NO_FIELD));
      }}
    >
      <label>
        {wording.field}
        <select value={member.name} onChange={(event) => setDraft({ name: event.currentTarget.value, values: {} })}>
          {members.map((each) => (
            <option key={each.name}>{each.name}</option>
          ))}
        </select>
      </label>
      <MemberControl
        key={member.name}
        member={member}
        record={undefined}
        draft={values}
        problem={problems[member.name]}
        isForbidden={false}
        onDraft={(value) => setDraft({ name: member.name, values: { [member.name]: value } })}
      />
      <button type="submit" aria-keyshortcuts="Control+Enter" disabled={!Object.hasOwn(values, member.name)}>
        {wording.save}
      </button>
    </form>
  );
}
