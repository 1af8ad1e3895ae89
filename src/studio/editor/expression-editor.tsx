/** A field for one expression: errors as a person types, completion, and the canonical form. */
import type { JSX } from 'preact';
import { useId, useLayoutEffect, useMemo, useRef } from 'preact/hooks';
import { wording } from '../en.ts';
import type { CodeField } from './code-field.ts';
import { type PolicyTools, useCodeField, usePolicyTools } from './load-editor.ts';
import type { PolicyIssue, ToolPlace } from './policy-tools.ts';

interface ExpressionEditorProps {
  readonly label: string;
  readonly text: string;
  readonly place: ToolPlace;
  readonly onText: (text: string) => void;
}

export function ExpressionEditor(props: ExpressionEditorProps): JSX.Element {
  const { label, text, place, onText } = props;
  const tools = usePolicyTools();
  const id = useId();
  const { collection, action, roles } = place;
  const issues = useMemo(() => tools?.issuesOf(text, place) ?? [], [tools, text, collection, action, roles?.join()]);
  const canonical = useMemo(() => tools?.formatted(text, place), [tools, text]);
  return (
    <div class="expression" role="group" aria-label={label}>
      <ExpressionField {...props} tools={tools} issues={issues} issueList={id} />
      <IssueList id={id} text={text} issues={issues} onText={onText} />
      <p class="hint">
        {wording.editorHint}{' '}
        <button
          type="button"
          class="link"
          aria-keyshortcuts="Control+Shift+f"
          disabled={canonical === undefined}
          onClick={() => onText(canonical ?? text)}
        >
          {wording.format}
        </button>
      </p>
    </div>
  );
}

interface ExpressionFieldProps extends ExpressionEditorProps {
  readonly tools: PolicyTools | undefined;
  readonly issues: readonly PolicyIssue[];
  readonly issueList: string;
  /** For a text that is sent: the Enter key does not begin a line. */
  readonly onEnter?: () => void;
  /** The field takes the keyboard as soon as it is there, if nothing else has it: it replaces a field that had it. */
  readonly takesFocus?: boolean;
}

/** The text alone until the editor has loaded. */
export function ExpressionField({ tools, issues, issueList, ...shown }: ExpressionFieldProps): JSX.Element {
  const module = useCodeField();
  const box = useRef<HTMLDivElement>(null);
  const field = useRef<CodeField>(undefined);
  // The field keeps its functions; they read the props of the last render.
  const current = useRef(shown);
  current.current = shown;
  useLayoutEffect(() => {
    if (module === undefined || tools === undefined) return;
    const made = new module.CodeField(box.current!, {
      label: shown.label,
      text: shown.text,
      issueList,
      fixWord: wording.applyFix,
      coloursOf: tools.colouredSpans,
      completionsAt: (text, offset) => tools.completionsAt(text, offset, current.current.place),
      onText: (text) => current.current.onText(text),
      ...(shown.onEnter !== undefined && { onEnter: () => current.current.onEnter?.() }),
    });
    if (shown.takesFocus === true && document.activeElement === document.body) made.focus();
    field.current = made;
    return () => made.remove();
  }, [module, tools]);
  const isLoaded = module !== undefined && tools !== undefined;
  // An effect after the paint would set back what was typed meanwhile.
  useLayoutEffect(() => {
    if (field.current === undefined) return;
    field.current.text = shown.text;
    field.current.issues = issues;
  }, [shown.text, issues, isLoaded]);
  return (
    <div ref={box} class="code-field">
      {!isLoaded && <pre tabIndex={0}>{shown.text}</pre>}
    </div>
  );
}

interface IssueListProps {
  readonly id: string;
  readonly text: string;
  readonly issues: readonly PolicyIssue[];
  readonly onText: (text: string) => void;
}

export function IssueList({ id, text, issues, onText }: IssueListProps): JSX.Element {
  return (
    <ul id={id} class="issues" aria-live="polite">
      {issues.map(({ severity, message, span, fix }) => (
        <li key={`${span.start} ${message}`} class={severity}>
          <strong>{wording.severities[severity]}</strong> <code>{text.slice(span.start, span.end)}</code>: {message}{' '}
          {fix !== undefined && (
            <button
              type="button"
              class="link"
              aria-keyshortcuts="Control+."
              onClick={() => onText(text.slice(0, fix.span.start) + fix.replacement + text.slice(fix.span.end))}
            >
              {wording.applyFix}
            </button>
          )}
        </li>
      ))}
    </ul>
  );
}
