/** The callers and the records of the truth table. The address names those that a person adds. */
import type { JSX } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { address, changeQuery } from '../../app/page-address.ts';
import { schema } from '../../app/session-state.ts';
import { viewedCaller } from '../../app/viewed-caller.ts';
import { service } from '../../data/api-service.ts';
import type { ServedCollection } from '../../data/schema-answer.ts';
import { wording } from '../../en.ts';
import { recordTitleOf } from '../data/form/reference-box.tsx';
import type { StudioRecord } from '../data/record-query.ts';
import { dataOf, madeUpRecord } from './made-up-data.ts';

const [MOST_CALLERS, MOST_RECORDS, FIRST_RECORDS, MOST_DATA] = [20, 100, 10, 20];

/** A record by its id, or the data of a record that is not there. */
export interface TableColumn {
  /** The id, or the data as JSON. */
  readonly key: string;
  readonly title: string;
}

const listIn = (key: string): readonly string[] => (address.value.query.get(key) ?? '').split(',').filter(Boolean);

/** The viewed caller, the callers of the address, the administrator, then the roles, and a guest. */
export function tableCallers(): readonly string[] {
  return callersAfter([viewedCaller.value, ...listIn('callers'), schema.value?.me.email ?? '']);
}

/** These callers but empty names, then the roles, and a guest, as many as a question takes. */
export function callersAfter(named: readonly string[]): readonly string[] {
  const roles = (schema.value?.roles ?? []).map(({ name }) => name);
  return [...new Set([...named.filter(Boolean), ...roles, 'guest'])].slice(0, MOST_CALLERS);
}

/** The records of the address, then the newest that the administrator may list. */
export function useTableRecords(collection: ServedCollection): readonly TableColumn[] | undefined {
  const [records, setRecords] = useState<readonly TableColumn[]>();
  const named = address.value.query.get('records') ?? '';
  useEffect(() => {
    let isCurrent = true;
    const ids = named.split(',').filter(Boolean);
    const listed = collection.can.list
      ? service
          .collection(collection.name)
          .query({ limit: FIRST_RECORDS, sort: ['-id'] })
          .then(({ data }) => data as readonly StudioRecord[])
          .catch(() => [])
      : Promise.resolve([]);
    void listed.then((found) => {
      const others = found.filter(({ id }) => !ids.includes(String(id)));
      const all = [...ids.map((id): StudioRecord => found.find((each) => String(each.id) === id) ?? { id }), ...others];
      const columns = all.map((record) => ({ key: String(record.id), title: recordTitleOf(collection, record) }));
      if (isCurrent) setRecords(columns.slice(0, MOST_RECORDS));
    });
    return () => {
      isCurrent = false;
    };
  }, [collection.name, named]);
  return records;
}

/** Objects of JSON, in a list. */
function dataInAddress(): readonly object[] {
  const text = address.value.query.get('data') ?? '[]';
  const given = dataOf(`{"all":${text}}`)?.all;
  return Array.isArray(given) ? given.filter((each): each is object => typeof each === 'object' && each !== null) : [];
}

/** The data of the address, after an example that the schema takes. */
export function tableData(collection: ServedCollection): readonly TableColumn[] {
  const all = [madeUpRecord(collection), ...dataInAddress()].map((each) => JSON.stringify(each));
  return [...new Set(all)].slice(0, MOST_DATA).map((key) => ({ key, title: key }));
}

const ADDED = ['callers', 'records', 'data'] as const;
type Added = (typeof ADDED)[number];

/** @param kind a column of the table is a stored record, or the data of a create */
export function TableSubjects({ kind }: { readonly kind: 'records' | 'data' }): JSX.Element {
  const isChanged = ADDED.some((key) => address.value.query.has(key));
  return (
    <div class="table-subjects">
      <AddSubject name="callers" label={wording.addCaller} hint={wording.addCallerHint} onAdd={addListed('callers')} />
      {kind === 'records' ? (
        <AddSubject
          name="records"
          label={wording.addRecord}
          hint={wording.addRecordHint}
          onAdd={addListed('records')}
        />
      ) : (
        <AddSubject name="data" label={wording.addData} hint='{"title": "New"}' onAdd={addData} />
      )}
      {isChanged && (
        <button
          type="button"
          aria-keyshortcuts="t"
          onClick={() => changeQuery({ callers: undefined, records: undefined, data: undefined })}
        >
          {wording.resetTable}
        </button>
      )}
    </div>
  );
}

const addListed = (key: 'callers' | 'records') => (value: string) => {
  changeQuery({ [key]: [...new Set([...listIn(key), value])].join(',') });
  return undefined;
};

/** → the reason why the text is not added. */
function addData(text: string): string | undefined {
  const data = dataOf(text);
  if (data === undefined) return wording.dataExpected;
  changeQuery({ data: JSON.stringify([...dataInAddress(), data]) });
  return undefined;
}

interface AddSubjectProps {
  readonly name: Added;
  readonly label: string;
  readonly hint: string;
  readonly onAdd: (value: string) => string | undefined;
}

function AddSubject({ name, label, hint, onAdd }: AddSubjectProps): JSX.Element {
  const [problem, setProblem] = useState<string>();
  const add = (event: SubmitEvent): void => {
    event.preventDefault();
    const form = event.currentTarget as HTMLFormElement;
    const value = String(new FormData(form).get(name)).trim();
    const reason = value === '' ? undefined : onAdd(value);
    setProblem(reason);
    if (reason === undefined) form.reset();
  };
  return (
    <form onSubmit={add}>
      <label>
        {label}
        <input
          name={name}
          aria-keyshortcuts={name === 'callers' ? 'a' : 'b'}
          placeholder={hint}
          aria-invalid={problem !== undefined}
        />
        {problem !== undefined && (
          <span class="field-problem" role="alert">
            {problem}
          </span>
        )}
      </label>
      <button type="submit" aria-keyshortcuts="Enter">
        {wording.addTerm}
      </button>
    </form>
  );
}
