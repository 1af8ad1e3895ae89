/** Collections at the left, the records of one of them, and one record beside them. */
import type { JSX } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { address, changeQuery, pathTo } from '../../app/page-address.ts';
import { hasText } from '../../app/palette-names.ts';
import { collectionNamed, noteProblem, schema } from '../../app/session-state.ts';
import { greyReason, isWritingOn, viewedCaller } from '../../app/viewed-caller.ts';
import type { ServedCollection } from '../../data/schema-answer.ts';
import { wording } from '../../en.ts';
import { greyed } from '../../parts/greyed.ts';
import { ProblemNote } from '../../parts/problem-note.tsx';
import { BulkBar } from './bulk-bar.tsx';
import { ColumnChoice } from './column-choice.tsx';
import { FilterBar } from './filter-bar.tsx';
import { useLiveChanges } from './live-changes.ts';
import { RecordGrid, type Selection, useEditedCell } from './record-grid.tsx';
import { type RecordPages, useRecordPages } from './record-pages.ts';
import { NEW_RECORD, RecordPanel } from './record-panel.tsx';
import { countRecords, type RecordSearch, type StudioRecord, shownColumns } from './record-query.ts';

export function DataPage(): JSX.Element {
  const { subject, query } = address.value;
  const collection = collectionNamed(subject);
  const record = query.get('record') ?? undefined;
  return (
    <div class={record === undefined ? 'data-page' : 'data-page with-record'}>
      <CollectionList current={subject} />
      <main id="content" tabIndex={-1}>
        {collection === undefined ? (
          <NoCollection name={subject} />
        ) : (
          <CollectionRecords key={subject} collection={collection} />
        )}
      </main>
      {collection !== undefined && record !== undefined && <RecordPanel collection={collection} id={record} />}
    </div>
  );
}

function CollectionList({ current }: { readonly current: string | undefined }): JSX.Element {
  const [text, setText] = useState('');
  const all = schema.value?.collections ?? [];
  const found = all.filter(({ name }) => hasText(name, text));
  return (
    <details class="collections" open={matchMedia('(min-width: 800px)').matches || current === undefined}>
      <summary>{current ?? wording.collections}</summary>
      <nav aria-label={wording.collections}>
        <input
          type="search"
          aria-label={wording.searchCollections}
          placeholder={wording.searchCollections}
          value={text}
          onInput={(event) => setText(event.currentTarget.value)}
        />
        <ul>
          {found.map(({ name }) => (
            <li key={name}>
              <a href={pathTo('data', name)} aria-current={name === current ? 'page' : undefined}>
                {name}
              </a>
            </li>
          ))}
        </ul>
        {found.length === 0 && <p>{wording.nothingFound}</p>}
      </nav>
    </details>
  );
}

const FIRST_SCHEMA = `collections:
  notes:
    fields:
      text: { type: string, required: true, max: 1000 }
    relations:
      owner: { kind: belongs_to, collection: users, required: true, default: '@request.auth.id' }
    access: { list: '@record.owner = @request.auth.id', create: '@record.owner = @request.auth.id' }`;

function NoCollection({ name }: { readonly name: string | undefined }): JSX.Element {
  const isUnknown = name !== undefined;
  const hasOwn = schema.value?.collections.some(({ kind }) => kind === 'plain') === true;
  return (
    <div class="empty">
      <h1>{wording.data}</h1>
      <p>{isUnknown ? wording.notFound : hasOwn ? wording.chooseCollection : wording.firstSchema}</p>
      {!isUnknown && !hasOwn && <pre tabIndex={0}>{FIRST_SCHEMA}</pre>}
    </div>
  );
}

function CollectionRecords({ collection }: { readonly collection: ServedCollection }): JSX.Element {
  const { query } = address.value;
  const search: RecordSearch = {
    collection,
    columns: shownColumns(collection, query.get('columns')),
    filter: query.get('filter') ?? '',
    sort: query.get('sort') ?? '',
  };
  const pages = useRecordPages(search);
  if (!collection.can.list) return <p class="empty">{wording.notListable}</p>;
  const { problem } = pages;
  const isOfFilter = problem?.status === 400 && search.filter !== '';
  const detail = isOfFilter ? (problem.others[0] ?? problem.text) : undefined;
  return (
    <>
      <header class="toolbar">
        <h1>{collection.name}</h1>
        {viewedCaller.value === '' && <RecordCount search={search} />}
        <ColumnChoice collection={collection} search={search} />
        <CreateButton collection={collection} />
        <button type="button" aria-keyshortcuts="r" onClick={pages.reload}>
          {wording.reload}
        </button>
      </header>
      <FilterBar
        collection={collection}
        filter={search.filter}
        problem={detail}
        onFilter={(filter) => changeQuery({ filter })}
      />
      <FoundGrid key={collection.name} search={search} pages={pages} />
      {problem !== undefined && !isOfFilter && <ProblemNote problem={problem} onRetry={pages.retry} />}
    </>
  );
}

interface FoundGridProps {
  readonly search: RecordSearch;
  readonly pages: RecordPages;
}

function FoundGrid({ search, pages }: FoundGridProps): JSX.Element | null {
  const { records, isLoading, cursor, problem, loadMore } = pages;
  const { collection, columns, filter, sort } = search;
  const selection = useSelection(records);
  const edited = useEditedCell(records, columns);
  const live = useLiveChanges(collection, filter, records);
  const showNew = (): void => {
    live.forgetNew();
    pages.reload();
  };
  const newRecords = live.newCount > 0 && !isLoading && <NewRecords count={live.newCount} onShow={showNew} />;
  const isEmpty = edited.rows.length === 0;
  if (isEmpty && problem !== undefined) return null;
  if (isEmpty)
    return (
      <div class="empty" aria-busy={isLoading}>
        {newRecords}
        {cursor === null || isLoading ? (
          <NoRecords search={search} isLoading={isLoading} />
        ) : (
          <p>
            {wording.noneYet}{' '}
            <button type="button" aria-keyshortcuts="l" onClick={loadMore}>
              {wording.lookFurther}
            </button>
          </p>
        )}
      </div>
    );
  return (
    <>
      {newRecords}
      {selection.chosen.length > 0 && (
        <BulkBar collection={collection} records={selection.chosen} onClear={selection.clear} />
      )}
      <RecordGrid
        collection={collection}
        columns={columns}
        records={edited.rows}
        edited={edited}
        hasMore={cursor !== null}
        sort={sort}
        openId={address.value.query.get('record') ?? undefined}
        onSort={(next) => changeQuery({ sort: next })}
        onOpen={({ id }) => changeQuery({ record: String(id) })}
        onEnd={loadMore}
        selection={selection}
      />
    </>
  );
}

interface NewRecordsProps {
  readonly count: number;
  readonly onShow: () => void;
}

function NewRecords({ count, onShow }: NewRecordsProps): JSX.Element {
  return (
    <p class="new-records" role="status">
      {`${count} ${wording.newRecords}`}{' '}
      <button type="button" aria-keyshortcuts="s" onClick={onShow}>
        {wording.showNew}
      </button>
    </p>
  );
}

interface NoRecordsProps {
  readonly search: RecordSearch;
  readonly isLoading: boolean;
}

function NoRecords({ search: { collection, filter }, isLoading }: NoRecordsProps): JSX.Element {
  if (isLoading) return <p>{wording.loading}</p>;
  if (filter !== '') return <p>{wording.noMatches}</p>;
  return (
    <>
      <p>{wording.noRecords}</p>
      {collection.kind === 'plain' && collection.can.create && isWritingOn.value && (
        <p>
          <button type="button" aria-keyshortcuts="n" onClick={openForm}>
            {wording.createFirst}
          </button>
        </p>
      )}
      <p>{wording.importHint}</p>
    </>
  );
}

interface ChosenRecords extends Selection {
  readonly chosen: readonly StudioRecord[];
  readonly clear: () => void;
}

/** The selection leaves out records that the grid no longer shows. */
function useSelection(records: readonly StudioRecord[]): ChosenRecords {
  const [ids, setIds] = useState<ReadonlySet<string>>(new Set());
  const chosen = ids.size === 0 ? [] : records.filter(({ id }) => ids.has(String(id)));
  const isWhole = records.length > 0 && chosen.length === records.length;
  return {
    chosen,
    isWhole,
    has: (id) => ids.has(id),
    clear: () => setIds(new Set()),
    toggle: (id) => setIds(ids.has(id) ? new Set([...ids].filter((each) => each !== id)) : new Set([...ids, id])),
    toggleAll: () => setIds(new Set(isWhole ? [] : records.map(({ id }) => String(id)))),
  };
}

const openForm = (): void => changeQuery({ record: NEW_RECORD });

function CreateButton({ collection }: { readonly collection: ServedCollection }): JSX.Element | null {
  // A file is made by its upload, a user by a registration.
  if (collection.kind !== 'plain') return null;
  return (
    <button
      type="button"
      class="primary"
      aria-keyshortcuts="n"
      {...greyed(collection.can.create ? greyReason.value : wording.createForbidden)}
      onClick={openForm}
    >
      {wording.create}
    </button>
  );
}

/** No total unless asked: it costs more than the page. */
function RecordCount({ search }: { readonly search: RecordSearch }): JSX.Element {
  const [text, setText] = useState<string>();
  useEffect(() => setText(undefined), [search.collection.name, search.filter]);
  const count = async (): Promise<void> => {
    try {
      const { total = 0, total_is_estimate: isEstimate } = await countRecords(search);
      setText(`${isEstimate ? `${wording.about} ` : ''}${total.toLocaleString()} ${wording.records}`);
    } catch (error) {
      setText(noteProblem(error).text);
    }
  };
  if (text !== undefined) return <output class="count">{text}</output>;
  return (
    <button type="button" aria-keyshortcuts="t" onClick={() => void count()}>
      {wording.count}
    </button>
  );
}
