/** The panel beside the grid: one record with every member and what points at it, or a form. */
import type { JSX } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import type { RecordCapabilities } from '../../../client/client.ts';
import { changeQuery, pathTo } from '../../app/page-address.ts';
import { collectionNamed, isAdminHere, noteProblem } from '../../app/session-state.ts';
import { showToast } from '../../app/toasts.tsx';
import { greyReason, viewedCaller } from '../../app/viewed-caller.ts';
import { service } from '../../data/api-service.ts';
import type { ShownProblem } from '../../data/problem-words.ts';
import type { ServedCollection, ServedRelation } from '../../data/schema-answer.ts';
import { wording } from '../../en.ts';
import { Answered, useAnswer } from '../../parts/answer.tsx';
import { ConfirmDialog } from '../../parts/confirm-dialog.tsx';
import { copyText } from '../../parts/copy-text.ts';
import { greyed } from '../../parts/greyed.ts';
import { ProblemNote } from '../../parts/problem-note.tsx';
import { RecordForm } from './form/record-form.tsx';
import { newestEvent, noteRecord } from './record-events.ts';
import { gridColumnsOf, type StudioRecord } from './record-query.ts';
import { type OpenRecord, openRecord, type TaggedRecord } from './record-reader.ts';
import { ReferenceText, ValueText } from './value-text.tsx';
import { recordsSeenBy } from './viewed-records.ts';

/** In the address instead of an id: the form of a new record. No record has it as its id, because no address can end in it. */
export const NEW_RECORD = '.';

interface RecordPanelProps {
  readonly collection: ServedCollection;
  readonly id: string;
}

export function RecordPanel({ collection, id }: RecordPanelProps): JSX.Element {
  const close = (): void => changeQuery({ record: undefined });
  return (
    <aside
      class="record"
      aria-label={`${wording.record} ${collection.name}`}
      onKeyDown={(event) => {
        if (event.key === 'Escape') close();
      }}
    >
      {id === NEW_RECORD ? (
        <NewRecord collection={collection} onClose={close} />
      ) : (
        <ExistingRecord key={id} collection={collection} id={id} onClose={close} />
      )}
    </aside>
  );
}

interface NewRecordProps {
  readonly collection: ServedCollection;
  readonly onClose: () => void;
}

function NewRecord({ collection, onClose }: NewRecordProps): JSX.Element {
  return (
    <>
      <header>
        <h2>{wording.create}</h2>
      </header>
      <RecordForm
        collection={collection}
        edited={undefined}
        fields={{}}
        onSaved={({ id }) => changeQuery({ record: String(id) })}
        onCancel={onClose}
      />
    </>
  );
}

/** Keeps up with what this page writes, such as an undo. */
function useRecord(collection: ServedCollection, id: string): OpenRecord | undefined {
  const [open, setOpen] = useState<OpenRecord>();
  const event = newestEvent.value;
  const isOwn = event?.kind === 'updated' && event.collection === collection.name && String(event.record.id) === id;
  useEffect(() => {
    let isCurrent = true;
    void openRecord(collection, id).then((read) => isCurrent && setOpen(read));
    return () => {
      isCurrent = false;
    };
  }, [collection.name, id, isOwn ? event : undefined]);
  return open;
}

/** The capabilities of the caller; undefined until it is known, and for a record that cannot be read. */
function useCapabilities(collection: ServedCollection, open: OpenRecord | undefined): RecordCapabilities | undefined {
  const [can, setCan] = useState<RecordCapabilities>();
  useEffect(() => {
    if (open === undefined || 'problem' in open) return;
    service
      .collection(collection.name)
      .capabilities(open.record.id)
      .then(setCan, () => setCan(undefined));
  }, [open]);
  return can;
}

interface ExistingRecordProps extends RecordPanelProps {
  readonly onClose: () => void;
}

function ExistingRecord({ collection, id, onClose }: ExistingRecordProps): JSX.Element {
  const open = useRecord(collection, id);
  const can = useCapabilities(collection, open);
  // The form saves over the version with which it began, not over a newer one of the feed.
  const [edited, setEdited] = useState<TaggedRecord>();
  if (open === undefined) return <p class="loading">{wording.loading}</p>;
  if ('problem' in open) return <MissingRecord problem={open.problem} onClose={onClose} />;
  return (
    <>
      <header>
        <h2>
          <bdi>{headingOf(collection, open.record)}</bdi>
        </h2>
        {edited === undefined && (
          <>
            <button
              type="button"
              aria-keyshortcuts="e"
              disabled={can === undefined}
              {...greyed(refusedBecause(can && can.update !== false, wording.updateForbidden))}
              onClick={() => setEdited(open)}
            >
              {wording.edit}
            </button>
            <DeleteButton collection={collection} open={open} isAllowed={can?.delete} onDeleted={onClose} />
          </>
        )}
        {isAdminHere.value && (
          <a class="button" href={pathTo('why', collection.name, { action: 'read', record: id })} aria-keyshortcuts="w">
            {wording.why}
          </a>
        )}
        <button type="button" aria-keyshortcuts="c" onClick={() => void copyText(location.href)}>
          {wording.copyLink}
        </button>
        <button type="button" aria-keyshortcuts="x" onClick={onClose}>
          {wording.close}
        </button>
      </header>
      {edited !== undefined && can !== undefined ? (
        <RecordForm
          collection={collection}
          edited={edited}
          fields={can.fields}
          onSaved={() => setEdited(undefined)}
          onCancel={() => setEdited(undefined)}
        />
      ) : (
        <ShownMembers collection={collection} record={open.record} />
      )}
    </>
  );
}

function ShownMembers(props: RecordMembersProps): JSX.Element {
  const viewed = viewedCaller.value;
  return viewed === '' ? <RecordMembers {...props} /> : <ViewedMembers key={viewed} {...props} viewed={viewed} />;
}

function ViewedMembers({ collection, record, viewed }: RecordMembersProps & { readonly viewed: string }): JSX.Element {
  const answer = useAnswer(String(record.id), () => recordsSeenBy(viewed, { collection, action: 'read' }, [record]));
  return (
    <Answered answer={answer}>
      {([read]) =>
        read === undefined ? (
          <p class="empty">{wording.viewedMayNotRead}</p>
        ) : (
          <RecordMembers collection={collection} record={read} />
        )
      }
    </Answered>
  );
}

/** Why a button is greyed. */
function refusedBecause(isAllowed: boolean | undefined, reason: string): string | undefined {
  if (isAllowed === false) return reason;
  return greyReason.value;
}

interface DeleteButtonProps {
  readonly collection: ServedCollection;
  readonly open: TaggedRecord;
  readonly isAllowed: boolean | undefined;
  readonly onDeleted: () => void;
}

function DeleteButton({ collection, open, isAllowed, onDeleted }: DeleteButtonProps): JSX.Element {
  const [isAsking, setAsking] = useState(false);
  const [problem, setProblem] = useState<ShownProblem>();
  const { record, etag } = open;
  const remove = async (): Promise<void> => {
    try {
      await service.collection(collection.name).delete(record.id, { ifMatch: etag });
      noteRecord({ kind: 'deleted', collection: collection.name, id: String(record.id) });
      showToast(wording.deleted);
      onDeleted();
    } catch (error) {
      setProblem(noteProblem(error));
    }
  };
  return (
    <>
      <button
        type="button"
        aria-keyshortcuts="d"
        disabled={isAllowed === undefined}
        {...greyed(refusedBecause(isAllowed, wording.deleteForbidden))}
        onClick={() => setAsking(true)}
      >
        {wording.delete}
      </button>
      {isAsking && (
        <ConfirmDialog
          title={wording.deleteTitle}
          action={wording.delete}
          onConfirm={() => void remove()}
          onClose={() => setAsking(false)}
        >
          <p>
            <bdi>{headingOf(collection, record)}</bdi>
          </p>
          <p>{wording.deleteHint}</p>
          {problem !== undefined && <ProblemNote problem={problem} />}
        </ConfirmDialog>
      )}
    </>
  );
}

function headingOf({ title }: ServedCollection, record: StudioRecord): string {
  const value = title === null ? undefined : record[title];
  return typeof value === 'string' && value !== '' ? value : String(record.id);
}

interface MissingRecordProps {
  readonly problem: ShownProblem;
  readonly onClose: () => void;
}

function MissingRecord({ problem, onClose }: MissingRecordProps): JSX.Element {
  return (
    <>
      {problem.status === 404 ? <p class="empty">{wording.recordMissing}</p> : <ProblemNote problem={problem} />}
      <button type="button" aria-keyshortcuts="x" onClick={onClose}>
        {wording.close}
      </button>
    </>
  );
}
interface RecordMembersProps {
  readonly collection: ServedCollection;
  readonly record: StudioRecord;
}

function RecordMembers({ collection, record }: RecordMembersProps): JSX.Element {
  const pointing = collection.relations.filter(({ kind }) => kind === 'has_many');
  // The viewed caller may not be able to read linked records.
  const linked = viewedCaller.value === '' ? collection.relations.filter(({ kind }) => kind === 'many_to_many') : [];
  return (
    <>
      <dl>
        {gridColumnsOf(collection).map(({ name, type, reference }) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>
              {reference === undefined ? (
                <ValueText value={record[name]} type={type} />
              ) : (
                <ReferenceText
                  record={record}
                  name={name}
                  collection={reference.collection}
                  title={collectionNamed(reference.collection)?.title}
                />
              )}
            </dd>
          </div>
        ))}
        {linked.map((relation) => (
          <div key={relation.name}>
            <dt>{relation.name}</dt>
            <dd>
              <LinkedList relation={relation} record={record} />
            </dd>
          </div>
        ))}
      </dl>
      {pointing.length > 0 && (
        <section class="related">
          <h3>{wording.pointsHere}</h3>
          <ul>
            {pointing.map((relation) => (
              <li key={relation.name}>
                <a href={pointingPath(relation, record)}>{relation.name}</a>
              </li>
            ))}
          </ul>
        </section>
      )}
    </>
  );
}

/** The records that name this one, as a list of their own collection. */
const pointingPath = ({ via = '', collection }: ServedRelation, { id }: StudioRecord): string =>
  pathTo('data', collection, { filter: `${via} = ${JSON.stringify(id)}` });

interface LinkedRecordsProps {
  readonly relation: ServedRelation;
  readonly record: StudioRecord;
}

function LinkedList({ relation: { name, collection }, record }: LinkedRecordsProps): JSX.Element {
  const targets = record.expand?.[name] as readonly StudioRecord[] | undefined;
  if (targets === undefined || targets.length === 0) return <ValueText value={targets && ''} />;
  const title = collectionNamed(collection)?.title ?? 'id';
  return (
    <ul class="linked">
      {targets.map((target) => (
        <li key={target.id}>
          <a href={pathTo('data', collection, { record: String(target.id) })} dir="auto">
            {String(target[title] ?? target.id)}
          </a>
        </li>
      ))}
    </ul>
  );
}
