/** Callers × records: the outcome of each cell as saved, and with the edits. A click explains it beside the rules. */
import type { JSX } from 'preact';
import { address, changedPath, pathTo } from '../../app/page-address.ts';
import { callerName } from '../../data/caller-names.ts';
import { askMatrix, type CellOutcome, type ShownMatrixRow } from '../../data/matrix-question.ts';
import type { ServedCollection } from '../../data/schema-answer.ts';
import { wording } from '../../en.ts';
import { Answered, useAnswer } from '../../parts/answer.tsx';
import type { DraftedSet } from './drafted-set.ts';
import type { RuleSet } from './rule-sets.ts';
import { type TableColumn, TableSubjects, tableCallers, tableData, useTableRecords } from './table-subjects.tsx';

/** So that a question follows the end of typing. */
export const ASK_AFTER_MS = 250;

interface TruthTableProps {
  readonly collection: ServedCollection;
  readonly set: RuleSet;
  readonly drafted: DraftedSet;
}

export function TruthTable(props: TruthTableProps): JSX.Element {
  return props.set.action === 'create' ? <CreateTable {...props} /> : <RecordTable {...props} />;
}

function RecordTable(props: TruthTableProps): JSX.Element {
  const columns = useTableRecords(props.collection);
  return (
    <>
      <TableSubjects kind="records" />
      {columns?.length === 0 && <p class="empty">{wording.noTableRecords}</p>}
      {columns !== undefined && columns.length > 0 && (
        <DecidedTable {...props} columns={columns} asked={{ ids: columns.map(({ key }) => key) }} />
      )}
    </>
  );
}

function CreateTable(props: TruthTableProps): JSX.Element {
  const columns = tableData(props.collection);
  return (
    <>
      <TableSubjects kind="data" />
      <DecidedTable
        {...props}
        columns={columns}
        asked={{ data: columns.map(({ key }) => JSON.parse(key) as object) }}
      />
    </>
  );
}

interface DecidedTableProps extends TruthTableProps {
  readonly columns: readonly TableColumn[];
  readonly asked: { readonly ids: readonly string[] } | { readonly data: readonly object[] };
}

function DecidedTable({ collection, set, drafted, columns, asked }: DecidedTableProps): JSX.Element {
  const callers = tableCallers();
  const { action, member } = set;
  const { rules, isBroken } = drafted;
  const question = {
    collection: collection.name,
    action,
    ...(member !== undefined && { member }),
    callers,
    ...asked,
    ...(rules !== undefined && { rules }),
  };
  const key = JSON.stringify(question);
  const ask = async () => ({ callers, columns, rows: await askMatrix(question) });
  const answer = useAnswer(key, ask, { afterMs: ASK_AFTER_MS, isAsked: !isBroken });
  return (
    <>
      {isBroken && <p class="hint">{wording.mendFirst}</p>}
      <Answered answer={answer} isAsked={!isBroken}>
        {(table) => <MatrixTable collection={collection} set={set} {...table} />}
      </Answered>
    </>
  );
}

interface MatrixTableProps {
  readonly collection: ServedCollection;
  readonly set: RuleSet;
  readonly callers: readonly string[];
  readonly columns: readonly TableColumn[];
  readonly rows: readonly ShownMatrixRow[];
}

function MatrixTable({ collection, set, callers, columns, rows }: MatrixTableProps): JSX.Element {
  const changes = rows.flatMap(({ outcomes, drafted = outcomes }) => drafted.filter((each, i) => each !== outcomes[i]));
  const isDrafted = rows.some(({ drafted }) => drafted !== undefined);
  const { query } = address.value;
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
              {columns.map((column) => (
                <th key={column.key} scope="col">
                  <ColumnTitle collection={collection} set={set} column={column} />
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {callers.map((caller, i) => (
              <tr key={caller}>
                <th scope="row">
                  <bdi>{callerName(caller)}</bdi>
                </th>
                {columns.map(({ key }, j) => (
                  <td key={key}>
                    <a
                      href={changedPath({ caller, cell: key })}
                      aria-current={query.get('caller') === caller && query.get('cell') === key ? 'true' : undefined}
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

interface ColumnTitleProps {
  readonly collection: ServedCollection;
  readonly set: RuleSet;
  readonly column: TableColumn;
}

function ColumnTitle({ collection, set, column: { key, title } }: ColumnTitleProps): JSX.Element {
  if (set.action === 'create') return <code>{title}</code>;
  return (
    <a href={pathTo('data', collection.name, { record: key })}>
      <bdi>{title}</bdi>
    </a>
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
