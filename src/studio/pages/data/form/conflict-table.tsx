/** Two versions side by side: another user changed the record after the form was opened. */
import type { JSX } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import type { ServedCollection } from '../../../data/schema-answer.ts';
import { wording } from '../../../en.ts';
import { ProblemNote } from '../../../parts/problem-note.tsx';
import { ScrollTable } from '../../../parts/scroll-table.tsx';
import { gridColumnsOf, type StudioRecord } from '../record-query.ts';
import { type OpenRecord, openRecord, type TaggedRecord } from '../record-reader.ts';
import { ValueText } from '../value-text.tsx';
import { type FormDraft, formData } from './form-draft.ts';

interface ConflictTableProps {
  readonly collection: ServedCollection;
  /** The record when the form was opened. */
  readonly before: StudioRecord;
  readonly draft: FormDraft;
  readonly onOver: (stored: TaggedRecord) => void;
  readonly onStored: () => void;
}

export function ConflictTable({ collection, before, draft, onOver, onStored }: ConflictTableProps): JSX.Element {
  const [open, setOpen] = useState<OpenRecord>();
  const section = useRef<HTMLDivElement>(null);
  useEffect(() => void openRecord(collection, String(before.id)).then(setOpen), []);
  // The form may be longer than the window.
  useEffect(() => section.current?.focus(), [open]);
  if (open === undefined) return <p class="loading">{wording.loading}</p>;
  if ('problem' in open) return <ProblemNote problem={open.problem} />;
  const mine = formData(collection, draft);
  const { record } = open;
  const names = gridColumnsOf(collection)
    .filter(({ name }) => name !== 'updated_at')
    .filter(({ name }) => name in mine || JSON.stringify(record[name]) !== JSON.stringify(before[name]));
  return (
    <div ref={section} class="problem conflict" role="alert" tabIndex={-1}>
      <p>{wording.conflict}</p>
      <ScrollTable label={wording.conflict} titles={[wording.field, wording.mine, wording.stored]}>
        {names.map(({ name, type }) => (
          <tr key={name}>
            <th scope="row">{name}</th>
            <td>{name in mine ? <ValueText value={mine[name]} type={type} /> : wording.unchanged}</td>
            <td>
              <ValueText value={record[name]} type={type} />
            </td>
          </tr>
        ))}
      </ScrollTable>
      <p class="actions">
        <button type="button" aria-keyshortcuts="s" onClick={() => onOver(open)}>
          {wording.saveMine}
        </button>
        <button type="button" aria-keyshortcuts="k" onClick={onStored}>
          {wording.takeStored}
        </button>
      </p>
    </div>
  );
}
