/** The record beside the grid: every member, and what points at it. */
import type { JSX } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { etagOf } from '../../../client/client.ts';
import { changeQuery, pathTo } from '../../app/page-address.ts';
import { collectionNamed, noteProblem } from '../../app/session-state.ts';
import { showToast } from '../../app/toasts.tsx';
import { service } from '../../data/api-service.ts';
import type { ShownProblem } from '../../data/problem-words.ts';
import type { ServedCollection, ServedRelation } from '../../data/schema-answer.ts';
import { ProblemNote } from '../../parts/problem-note.tsx';
import { wording } from '../../wording.ts';
import { gridColumnsOf, type StudioRecord } from './record-query.ts';
import { ReferenceText, ValueText } from './value-text.tsx';

interface RecordPanelProps {
  readonly collection: ServedCollection;
  readonly id: string;
}

/** A record with its tag, or the reason why it is not there. */
type OpenRecord =
  | { readonly record: StudioRecord; readonly etag: string | undefined }
  | { readonly problem: ShownProblem }
  | undefined;

async function openRecord({ name, relations }: ServedCollection, id: string): Promise<NonNullable<OpenRecord>> {
  try {
    const expand = relations.filter(({ kind }) => kind !== 'has_many').map((relation) => relation.name);
    const record = await service.collection(name).read(id, expand.length === 0 ? {} : { expand });
    return { record: record as StudioRecord, etag: etagOf(record) };
  } catch (error) {
    return { problem: noteProblem(error) };
  }
}

export function RecordPanel({ collection, id }: RecordPanelProps): JSX.Element {
  const [open, setOpen] = useState<OpenRecord>();
  useEffect(() => {
    let isCurrent = true;
    setOpen(undefined);
    void openRecord(collection, id).then((read) => isCurrent && setOpen(read));
    return () => {
      isCurrent = false;
    };
  }, [collection.name, id]);
  const close = (): void => changeQuery({ record: undefined });
  return (
    <aside
      class="record"
      aria-label={`${wording.record} ${collection.name}`}
      onKeyDown={(event) => {
        if (event.key === 'Escape') close();
      }}
    >
      <header>
        <h2>
          <bdi>{headingOf(collection, open, id)}</bdi>
        </h2>
        <button type="button" onClick={() => void copyAddress()}>
          {wording.copyLink}
        </button>
        <button type="button" onClick={close}>
          {wording.close}
        </button>
      </header>
      {open === undefined && <p class="loading">{wording.loading}</p>}
      {open !== undefined && 'problem' in open && <MissingRecord problem={open.problem} />}
      {open !== undefined && 'record' in open && <RecordMembers collection={collection} record={open.record} />}
    </aside>
  );
}

function headingOf({ title }: ServedCollection, open: OpenRecord, id: string): string {
  const value = open !== undefined && 'record' in open && title !== null ? open.record[title] : undefined;
  return typeof value === 'string' && value !== '' ? value : id;
}

async function copyAddress(): Promise<void> {
  await navigator.clipboard.writeText(location.href);
  showToast(wording.copied);
}

function MissingRecord({ problem }: { readonly problem: ShownProblem }): JSX.Element {
  return problem.status === 404 ? <p class="empty">{wording.recordMissing}</p> : <ProblemNote problem={problem} />;
}

interface RecordMembersProps {
  readonly collection: ServedCollection;
  readonly record: StudioRecord;
}

function RecordMembers({ collection, record }: RecordMembersProps): JSX.Element {
  const pointing = collection.relations.filter(({ kind }) => kind === 'has_many');
  const linked = collection.relations.filter(({ kind }) => kind === 'many_to_many');
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
