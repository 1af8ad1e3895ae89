/** The difference that the draft makes, before it is saved: for each rule set whom it opens the data to, with an example. */
import type { JSX } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { loadSession, noteProblem, schema } from '../../app/session-state.ts';
import { showToast } from '../../app/toasts.tsx';
import { transport } from '../../data/api-service.ts';
import type { ShownProblem } from '../../data/problem-words.ts';
import { wording } from '../../en.ts';
import { copyText } from '../../parts/copy-text.ts';
import { greyed } from '../../parts/greyed.ts';
import { ProblemNote } from '../../parts/problem-note.tsx';
import { filePatch } from './file-patch.ts';
import { draftedText, dropDraft, editWhole, isDrafted } from './policy-draft.ts';

interface ShownCallerChange {
  readonly gains: boolean | null;
  readonly loses: boolean | null;
}
interface ShownRuleChange {
  readonly collection: string;
  readonly action: string;
  readonly verdict: keyof typeof wording.changeVerdicts;
  readonly callers: Readonly<Record<string, ShownCallerChange>>;
  readonly wider?: DiffExample;
  readonly narrower?: DiffExample;
}
interface DiffExample {
  readonly caller: unknown;
  readonly record: unknown;
  readonly next?: unknown;
  readonly related: Readonly<Record<string, unknown>>;
  readonly failed_checks?: readonly string[];
}
interface DraftDifference {
  readonly settings: readonly string[];
  readonly changes: readonly ShownRuleChange[];
}

type DifferenceState =
  | { readonly difference: DraftDifference; readonly text: string }
  | { readonly problem: ShownProblem };

/** The answer for a text, and the ways to ask for it and to note a problem in its place. */
function useDifference(text: string | undefined) {
  const [state, setState] = useState<DifferenceState>();
  const [isAsking, setAsking] = useState(false);
  // The answer is about the text that was compared.
  useEffect(() => setState(undefined), [text]);
  const compare = async (asked: string): Promise<void> => {
    setAsking(true);
    try {
      const { data } = await transport.json<{ readonly data: DraftDifference }>('/api/_diff', {
        method: 'POST',
        body: { text: asked },
      });
      setState({ difference: data, text: asked });
    } catch (error) {
      setState({ problem: noteProblem(error) });
    } finally {
      setAsking(false);
    }
  };
  return { state, isAsking, compare, note: (problem: ShownProblem): void => setState({ problem }) };
}

/** As `bylaw init` names it. */
const PATCHED_FILE = 'bylaw.yaml';

export function DraftActions(): JSX.Element {
  const served = schema.value!;
  const text = draftedText(served);
  const { state, isAsking, compare, note } = useDifference(text);
  if (text === undefined) return <p class="hint">{wording.textWithheld}</p>;
  const isChanged = isDrafted(served);
  return (
    <section aria-label={wording.beforeSaving} class="draft-actions">
      <h2>{wording.beforeSaving}</h2>
      {!isChanged && <p class="hint">{wording.nothingEdited}</p>}
      <div class="actions">
        <button
          type="button"
          class="primary"
          aria-keyshortcuts="Control+Enter"
          disabled={!isChanged || isAsking}
          onClick={() => void compare(text)}
        >
          {isAsking ? wording.comparing : wording.compare}
        </button>
        <SaveButton text={text} isReady={isChanged && state !== undefined && 'difference' in state} onProblem={note} />
        <button type="button" aria-keyshortcuts="c" disabled={!isChanged} onClick={() => void copyText(text)}>
          {wording.copyFile}
        </button>
        <button
          type="button"
          aria-keyshortcuts="p"
          disabled={!isChanged}
          onClick={() => void copyText(filePatch(PATCHED_FILE, served.text ?? '', text))}
        >
          {wording.copyPatch}
        </button>
        <button type="button" aria-keyshortcuts="Shift+d" disabled={!isChanged} onClick={dropDraft}>
          {wording.dropDraft}
        </button>
      </div>
      {state !== undefined && 'problem' in state && <ProblemNote problem={state.problem} />}
      {state !== undefined && 'difference' in state && <DifferenceList difference={state.difference} />}
      <details>
        <summary aria-keyshortcuts="v">{wording.wholeFile}</summary>
        <label>
          {wording.wholeFile}
          <textarea
            class="file-text"
            rows={20}
            spellcheck={false}
            value={text}
            onInput={(event) => editWhole(served, event.currentTarget.value)}
          />
        </label>
      </details>
    </section>
  );
}

interface SaveButtonProps {
  readonly text: string;
  /** The difference of this text was shown. */
  readonly isReady: boolean;
  readonly onProblem: (problem: ShownProblem) => void;
}

/** Only `bylaw dev` saves; elsewhere the text is copied. */
function SaveButton({ text, isReady, onProblem }: SaveButtonProps): JSX.Element | null {
  const { can_save: canSave, version } = schema.value!;
  if (canSave !== true) return null;
  const save = async (): Promise<void> => {
    try {
      await transport.json('/api/_schema', { method: 'PUT', body: { text, if_match: version } });
      dropDraft();
      await loadSession();
      showToast(wording.saved);
    } catch (error) {
      onProblem(noteProblem(error));
    }
  };
  return (
    <button
      type="button"
      aria-keyshortcuts="s"
      {...greyed(isReady ? undefined : wording.compareFirst)}
      onClick={() => void save()}
    >
      {wording.saveSchema}
    </button>
  );
}

function DifferenceList({ difference: { settings, changes } }: { readonly difference: DraftDifference }): JSX.Element {
  const changed = changes.filter(({ verdict }) => verdict !== 'same');
  if (settings.length + changed.length === 0) return <p role="status">{wording.noDifference}</p>;
  return (
    <div role="status">
      <ul class="difference">
        {settings.map((line) => (
          <li key={line}>{line}</li>
        ))}
        {changed.map((change) => (
          <li key={`${change.collection} ${change.action}`} class={`verdict ${change.verdict}`}>
            <ChangeView change={change} />
          </li>
        ))}
      </ul>
    </div>
  );
}

function callersText({ callers }: ShownRuleChange, kind: keyof ShownCallerChange): string {
  const named = Object.entries(callers).flatMap(([name, change]) => {
    const word = name === 'signed_in' ? wording.signedIn : name;
    if (change[kind] === null) return [`${wording.perhaps} ${word}`];
    return change[kind] ? [word] : [];
  });
  return named.join(', ');
}

function ChangeView({ change }: { readonly change: ShownRuleChange }): JSX.Element {
  const { collection, action, verdict, wider, narrower } = change;
  const [gains, loses] = [callersText(change, 'gains'), callersText(change, 'loses')];
  return (
    <div>
      <p>
        <code>{`${collection}: ${action}`}</code> <strong>{wording.changeVerdicts[verdict]}</strong>
      </p>
      {gains !== '' && <p>{`${wording.canNewly}: ${gains}`}</p>}
      {loses !== '' && <p>{`${wording.canNoLonger}: ${loses}`}</p>}
      {wider !== undefined && <ExampleView title={wording.newlyAllowed} example={wider} />}
      {narrower !== undefined && <ExampleView title={wording.lostAccess} example={narrower} />}
    </div>
  );
}

function ExampleView({ title, example }: { readonly title: string; readonly example: DiffExample }): JSX.Element {
  const { caller, record, next, related, failed_checks: checks = [] } = example;
  const lines = [
    `${wording.caller}: ${shownRow(caller)}`,
    `${wording.record}: ${shownRow(record)}`,
    ...(next === undefined ? [] : [`${wording.becomes}: ${shownRow(next)}`]),
    ...Object.entries(related).map(([name, rows]) => `${name}: ${shownRow(rows)}`),
    ...checks.map((check) => `${wording.failedCheck}: ${check}`),
  ];
  return (
    <details>
      <summary>{title}</summary>
      <pre tabIndex={0}>{lines.join('\n')}</pre>
    </details>
  );
}

/** Members that are null say nothing. */
const shownRow = (row: unknown): string =>
  typeof row === 'string' ? row : JSON.stringify(row, (_key, value: unknown) => (value === null ? undefined : value));
