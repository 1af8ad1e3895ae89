import type { JSX } from 'preact';
import { wording } from '../../en.ts';
import { ScrollTable } from '../../parts/scroll-table.tsx';
import { CoveredText } from './covered-text.tsx';
import type { CoveredLeaf, CoveredPolicy, RuleMutant, ShownTestResult, TestAnswer } from './test-answer.ts';

interface TestResultsProps {
  readonly answer: TestAnswer;
  /** Undefined: the file holds a secret. */
  readonly schemaText: string | undefined;
  /** Takes a text of policy tests into the files of the page. */
  readonly onAdd: (text: string) => void;
}

export function TestResults({ answer, schemaText, onAdd }: TestResultsProps): JSX.Element {
  const { passed, failed, undecided = 0, tests, coverage, mutants } = answer;
  return (
    <section aria-label={wording.results}>
      <p class={`verdict ${failed === 0 ? 'allowed' : 'refused'}`} role="status">
        <strong>{`${passed} ${wording.passed}`}</strong> <strong>{`${failed} ${wording.failed}`}</strong>
        {undecided > 0 && <span>{` ${undecided} ${wording.undecided}`}</span>}
      </p>
      {failed > 0 && <FailureTable tests={tests.filter(({ ok }) => !ok)} />}
      {coverage !== undefined && <Coverage policies={coverage.policies} schemaText={schemaText} />}
      {mutants !== undefined && <MutantTable mutants={mutants} onAdd={onAdd} />}
    </section>
  );
}

const shownScalar = (value: unknown): string =>
  value === true ? 'yes' : value === false ? 'no' : JSON.stringify(value);

function FailureTable({ tests }: { readonly tests: readonly ShownTestResult[] }): JSX.Element {
  const titles = [
    wording.place,
    wording.caller,
    wording.action,
    wording.record,
    wording.expectedWord,
    wording.actualWord,
  ];
  return (
    <ScrollTable label={wording.failed} titles={titles}>
      {tests.map(({ file, line, as, action, field, collection, record, expected, actual }, i) => (
        <tr key={i}>
          <td>
            <code>{`${file}:${line}`}</code>
          </td>
          <td>{as}</td>
          <td>{field === undefined ? action : `${action} ${field}`}</td>
          <td>{`${collection} ${record ?? ''}`}</td>
          <td>{shownScalar(expected)}</td>
          <td>{shownScalar(actual)}</td>
        </tr>
      ))}
    </ScrollTable>
  );
}

const TRUTH_VALUES = ['true', 'false', 'unknown'] as const;

interface CoverageProps {
  readonly policies: readonly CoveredPolicy[];
  readonly schemaText: string | undefined;
}

/** The painted text, and a table of the leaves with a value that no test has seen. */
function Coverage({ policies, schemaText }: CoverageProps): JSX.Element {
  const open = policies.flatMap(({ path, leaves }) =>
    leaves.filter((leaf) => TRUTH_VALUES.some((value) => leaf[value] === 0)).map((leaf) => ({ path, leaf })),
  );
  return (
    <>
      <h2>{wording.coverage}</h2>
      {schemaText !== undefined && <CoveredText text={schemaText} policies={policies} />}
      {open.length === 0 && <p class="hint">{wording.allCovered}</p>}
      {open.length > 0 && (
        <ScrollTable label={wording.coverage} titles={[wording.rules, wording.leaf, wording.neverSeen]}>
          {open.map(({ path, leaf }, i) => (
            <tr key={i}>
              <td>
                <code>{path}</code>
              </td>
              <td>
                <code>{leaf.text}</code>
              </td>
              <td>{unseen(leaf)}</td>
            </tr>
          ))}
        </ScrollTable>
      )}
    </>
  );
}

const unseen = (leaf: CoveredLeaf): string => TRUTH_VALUES.filter((value) => leaf[value] === 0).join(', ');

interface MutantTableProps {
  readonly mutants: readonly RuleMutant[];
  readonly onAdd: (text: string) => void;
}

/** The changes of rules that no test notices. */
function MutantTable({ mutants, onAdd }: MutantTableProps): JSX.Element {
  const alive = mutants.filter(({ verdict }) => verdict !== 'killed');
  return (
    <>
      <h2>{wording.mutants}</h2>
      <p class="hint">{`${mutants.length - alive.length} ${wording.killed}, ${alive.length} ${wording.survived}`}</p>
      {alive.length > 0 && (
        <ScrollTable
          label={wording.mutants}
          class="mutants"
          titles={[wording.rules, wording.before, wording.after, wording.actions]}
        >
          {alive.map(({ path, line, from, to, test }, i) => (
            <tr key={i}>
              <td>
                <code>{`${path} (${wording.line} ${line})`}</code>
              </td>
              <td>
                <code>{from}</code>
              </td>
              <td>
                <code>{to}</code>
              </td>
              <td>
                {test === null ? (
                  wording.noTelling
                ) : (
                  <button type="button" aria-keyshortcuts="a" onClick={() => onAdd(test)}>
                    {wording.addTest}
                  </button>
                )}
              </td>
            </tr>
          ))}
        </ScrollTable>
      )}
    </>
  );
}
