/** The control of one member over its cell. Enter saves, Escape leaves the cell as it was. */
import type { JSX } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { changeQuery } from '../../app/page-address.ts';
import { isTyping } from '../../app/page-keys.ts';
import { noteProblem } from '../../app/session-state.ts';
import { showToast } from '../../app/toasts.tsx';
import { isWritingOn } from '../../app/viewed-caller.ts';
import type { ServedCollection } from '../../data/schema-answer.ts';
import { wording } from '../../en.ts';
import { type FormDraft, type FormMember, formMembersOf, keepDraft } from './form/form-draft.ts';
import { MemberControl } from './form/member-control.tsx';
import { writeRecord } from './form/write-record.ts';
import type { GridColumn, StudioRecord } from './record-query.ts';
import { openRecord, type TaggedRecord } from './record-reader.ts';

/** Undefined where the cell cannot be edited in its place. */
export function editedMember(
  collection: ServedCollection,
  column: GridColumn | undefined,
  record: StudioRecord | undefined,
): FormMember | undefined {
  if (!isWritingOn.value || record?.can?.update === false || record?.[column?.name ?? ''] === undefined)
    return undefined;
  const member = formMembersOf(collection).find(({ name }) => name === column?.name);
  return member !== undefined && 'kind' in member && member.kind !== 'belongs_to' ? undefined : member;
}

interface CellEditorProps {
  readonly collection: ServedCollection;
  readonly member: FormMember;
  readonly record: StudioRecord;
  /** The record has left the list since the edit began. */
  readonly isGone: boolean;
  readonly onClose: () => void;
}

/** The value that is edited, and the record that it is saved over: as it was when the edit began. */
function useCellEdit({ collection, member, record, onClose }: CellEditorProps) {
  const [base, setBase] = useState<TaggedRecord>();
  const [draft, setDraft] = useState<FormDraft>({});
  const [problem, setProblem] = useState<string>();
  useEffect(() => {
    void openRecord(collection, String(record.id)).then((open) => {
      if ('problem' in open) setProblem(open.problem.text);
      else setBase(open);
    });
  }, []);
  const save = async (): Promise<void> => {
    if (base === undefined || Object.keys(draft).length === 0) return onClose();
    try {
      await writeRecord(collection, draft, base);
      onClose();
    } catch (error) {
      const { status, text, fields } = noteProblem(error);
      if (status !== 412) return setProblem(fields[member.name] ?? text);
      // The form keeps the value, and shows both versions at its save.
      keepDraft(collection.name, String(record.id), { values: draft, base });
      showToast(wording.conflict);
      onClose();
      changeQuery({ record: String(record.id) });
    }
  };
  return {
    base,
    draft,
    problem,
    save,
    setValue: (value: FormDraft[string]): void => setDraft({ [member.name]: value }),
  };
}

export function CellEditor(props: CellEditorProps): JSX.Element {
  const { member, isGone, onClose } = props;
  const box = useRef<HTMLFormElement>(null);
  const { base, draft, problem, save, setValue } = useCellEdit(props);
  useEffect(() => box.current?.querySelector<HTMLElement>('input, select, textarea')?.focus(), [base]);
  const onKeyDown = (event: KeyboardEvent): void => {
    event.stopPropagation();
    if (event.key === 'Escape') onClose();
    // A button has Enter for itself.
    else if (event.key === 'Enter' && !event.shiftKey && isTyping(event.target)) void save();
    else return;
    event.preventDefault();
  };
  return (
    <form
      ref={box}
      class="cell-editor"
      aria-label={`${wording.edit} ${member.name}`}
      onKeyDown={onKeyDown}
      onClick={(event) => event.stopPropagation()}
      onSubmit={(event) => {
        event.preventDefault();
        void save();
      }}
      noValidate
    >
      {base === undefined ? (
        <p class="hint">{problem ?? wording.loading}</p>
      ) : (
        <MemberControl
          member={member}
          record={base.record}
          draft={draft}
          problem={problem}
          isForbidden={false}
          onDraft={setValue}
        />
      )}
      {isGone && (
        <p class="hint" role="status">
          {wording.editedGone}
        </p>
      )}
      <div class="actions">
        <button type="submit" class="primary" aria-keyshortcuts="Control+Enter">
          {wording.save}
        </button>
        <button type="button" aria-keyshortcuts="Escape" onClick={onClose}>
          {wording.cancel}
        </button>
      </div>
    </form>
  );
}
