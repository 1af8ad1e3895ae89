/** Callers × records: the outcome of each cell as saved, and with the edits. A click explains it. */
import type { JSX } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { address, changeQuery, pathTo } from '../../app/page-address.ts';
import { noteProblem, schema } from '../../app/session-state.ts';
import { service } from '../../data/api-service.ts';
import type { ShownProblem } from '../../data/problem-words.ts';
import type { ServedCollection } from '../../data/schema-answer.ts';
import { ProblemNote } from '../../parts/problem-note.tsx';
import { wording } from '../../wording.ts';
import { recordTitleOf } from '../data/form/reference-box.tsx';
import type { StudioRecord } from '../data/record-query.ts';
import { askMatrix, type CellOutcome, type DraftedRule, type MatrixRow } from './matrix-question.ts';
import type { RuleSet } from './rule-sets.ts';

const [MOST_CALLERS, MOST_RECORDS, FIRST_RECORDS] = [20, 100, 10];
const ASK_AFTER_MS = 250;

interface TruthTableProps {
  readonly collection: ServedCollection;
  readonly set: RuleSet;
  /** The rules with their edits; undefined: none is edited. */
  readonly drafted: readonly DraftedRule[] | undefined;
}

const listIn = (key: string): readonly string[] => (address.value.query.get(key) ?? '').split(',').filter(Boolean);

/** The roles, and a guest; and the callers of the address. */
function tableCallers(): readonly string[] {
  const roles = (schema.value?.roles ?? []).map(({ name }) => name);
  return [...new Set([...listIn('callers'), ...roles, 'guest'])].slice(0, MOST_CALLERS);
}

/** The newest records that the administrator may list, after those of the address. */
function useTableRecords(collection: ServedCollection): readonly StudioRecord[] | undefined {
  const [records, setRecords] = useState<readonly StudioRecord[]>();
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
      if (isCurrent) setRecords(all.slice(0, MOST_RECORDS));
    });
    return () => {
      isCurrent = false;
    };
  }, [collection.name, named]);
  return records;
}

type TableState = { readonly rows: readonly MatrixRow[] } | { readonly problem: ShownProblem } | undefined;

export function TruthTable({ collection, set, drafted }: TruthTableProps): JSX.Element {
  const records = useTableRecords(collection);
  const callers = tableCallers();
  const [state, setState] = useState<TableState>();
  const question = {
    collection: collection.name,
    action: set.action,
    callers,
    ids: records?.map(({ id }) => id) ?? [],
  };
  const key = JSON.stringify([question, drafted]);
  useEffect(() => {
    if (question.ids.length === 0) return setState(undefined);
    let isCurrent = true;
    const timer = setTimeout(() => {
      askMatrix({ ...question, ...(drafted && { rules: drafted }) }).then(
        (rows) => isCurrent && setState({ rows }),
        (error) => isCurrent && setState({ problem: noteProblem(error) }),
      );
    }, ASK_AFTER_MS);
    return () => {
      isCurrent = false;
      clearTimeout(timer);
    };
  }, [key]);
  return (
    <>
      <TableSubjects />
      {records?.length === 0 && <p class="empty">{wording.noTableRecords}</p>}
      {state !== undefined && 'problem' in state && <ProblemNote problem={state.problem} />}
      {records !== undefined && state !== undefined && 'rows' in state && state.rows.length === callers.length && (
        <MatrixTable
          collection={collection}
          action={set.action}
          callers={callers}
          records={records}
          rows={state.rows}
        />
      )}
    </>
  );
}

/** Adds a caller or a record to the address. */
function TableSubjects(): JSX.Element {
  const add = (key: 'callers' | 'records') => (event: SubmitEvent) => {
    event.preventDefault();
    const form = event.currentTarget as HTMLFormElement;
    const value = String(new FormData(form).get(key) ?? '').trim();
    if (value !== '') changeQuery({ [key]: [...new Set([...listIn(key), value])].join(',') });
    form.reset();
  };
  const isChanged = address.value.query.has('callers') || address.value.query.has('records');
  return (
    <div class="table-subjects">
      <form onSubmit={add('callers')}>
        <label>
          {wording.addCaller}
          <input name="callers" placeholder={wording.addCallerHint} />
        </label>
        <button type="submit">{wording.addTerm}</button>
      </form>
      <form onSubmit={add('records')}>
        <label>
          {wording.addRecord}
          <input name="records" placeholder={wording.addRecordHint} />
        </label>
        <button type="submit">{wording.addTerm}</button>
      </form>
      {isChanged && (
        <button type="button" onClick={() => changeQuery({ callers: undefined, records: undefined })}>
          {wording.resetTable}
        </button>
      )}
    </div>
  );
}

interface MatrixTableProps {
  readonly collection: ServedCollection;
  readonly action: string;
  readonly callers: readonly string[];
  readonly records: readonly StudioRecord[];
  readonly rows: readonly MatrixRow[];
}

const askedAs = (caller: string): string =>
  schema.value?.roles?.some(({ name }) => name === caller) ? `role:${caller}` : caller;

function MatrixTable({ collection, action, callers, records, rows }: MatrixTableProps): JSX.Element {
  const changes = rows.flatMap(({ outcomes, drafted = outcomes }) => drafted.filter((each, i) => each !== outcomes[i]));
  const isDrafted = rows.some(({ drafted }) => drafted !== undefined);
  return (
    <>
      {isDrafted && (
        <p role="status">
          {changes.length === 0 ? wording.noCellChanges : `${wording.cellsChange}: ${changes.length}`}
        </p>
      )}
      <div class="scroll" role="region" tabIndex={0} aria-label={wording.truthTable}>
        <table class="matrix">
          <thead>
            <tr>
              <th scope="col">{wording.caller}</th>
              {records.map((record) => (
                <th key={record.id} scope="col">
                  <a href={pathTo('data', collection.name, { record: String(record.id) })}>
                    <bdi>{recordTitleOf(collection, record)}</bdi>
                  </a>
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {callers.map((caller, i) => (
              <tr key={caller}>
                <th scope="row">
                  <bdi>{rows[i]!.user?.email ?? caller}</bdi>
                </th>
                {records.map((record, j) => (
                  <td key={record.id}>
                    <a
                      href={pathTo('why', collection.name, { action, record: String(record.id), as: askedAs(caller) })}
                    >
                      <CellText saved={rows[i]!.outcomes[j]!} drafted={rows[i]!.drafted?.[j]} />
                    </a>
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </>
  );
}

/** A word and a colour; of a cell that changes, both words. */
function CellText({ saved, drafted }: { readonly saved: CellOutcome; readonly drafted?: CellOutcome | undefined }) {
  if (drafted === undefined || drafted === saved) return <span class={`cell ${saved}`}>{wording.outcomes[saved]}</span>;
  return (
    <span class="changed">
      <s class={`cell ${saved}`}>{wording.outcomes[saved]}</s>{' '}
      <strong class={`cell ${drafted}`}>{wording.outcomes[drafted]}</strong>
    </span>
  );
}
