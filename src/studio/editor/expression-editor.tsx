/** A text area for one expression: errors as a person types, completion by Ctrl+Space, and the canonical form. */
import type { JSX } from 'preact';
import { useId, useMemo, useRef, useState } from 'preact/hooks';
import { OptionList } from '../parts/option-list.tsx';
import { wording } from '../wording.ts';
import { usePolicyTools } from './load-tools.ts';
import type { Completion, PolicyIssue, PolicyPlace } from './policy-tools.ts';

interface ExpressionEditorProps {
  readonly label: string;
  readonly text: string;
  readonly place: PolicyPlace;
  readonly onText: (text: string) => void;
}

const MOST_OPTIONS = 12;

export function ExpressionEditor({ label, text, place, onText }: ExpressionEditorProps): JSX.Element {
  const tools = usePolicyTools();
  const area = useRef<HTMLTextAreaElement>(null);
  const [options, setOptions] = useState<readonly Completion[]>([]);
  const [at, setAt] = useState(0);
  const id = useId();
  const issues = useMemo(() => tools?.issuesOf(text, place) ?? [], [tools, text, place.collection, place.action]);
  const suggest = (): void => {
    const field = area.current;
    if (tools === undefined || field === null) return;
    const offset = field.selectionStart;
    const all = tools.completionsAt(field.value, offset, place);
    setOptions(all.filter((each) => startsAt(each, field.value, offset)).slice(0, MOST_OPTIONS));
    setAt(0);
  };
  const accept = (option: Completion | undefined): void => {
    const field = area.current;
    setOptions([]);
    if (option === undefined || field === null) return;
    field.setRangeText(option.text, option.span.start, Math.max(option.span.end, field.selectionStart), 'end');
    onText(field.value);
    field.focus();
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    if (event.key === ' ' && event.ctrlKey) suggest();
    else if (options.length === 0) return;
    else if (event.key === 'ArrowDown') setAt(Math.min(at + 1, options.length - 1));
    else if (event.key === 'ArrowUp') setAt(Math.max(at - 1, 0));
    else if (event.key === 'Enter' || event.key === 'Tab') accept(options[at]);
    else if (event.key === 'Escape') setOptions([]);
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  return (
    <div class="expression">
      <div class="reference-box">
        <textarea
          ref={area}
          rows={Math.min(8, Math.max(2, Math.ceil(text.length / 70)))}
          aria-label={label}
          aria-describedby={`${id}-issues`}
          aria-invalid={issues.some(({ severity }) => severity === 'error')}
          aria-autocomplete="list"
          aria-controls={id}
          aria-activedescendant={options.length > 0 ? `${id}-${at}` : undefined}
          spellcheck={false}
          value={text}
          onInput={(event) => {
            onText(event.currentTarget.value);
            if (
              options.length > 0 ||
              /[.@]$/.test(event.currentTarget.value.slice(0, event.currentTarget.selectionStart))
            )
              suggest();
          }}
          onKeyDown={onKeyDown}
          onBlur={() => setOptions([])}
        />
        <OptionList
          id={id}
          label={wording.completions}
          options={options.map((option) => ({ key: `${option.kind} ${option.text}`, text: describeOption(option) }))}
          at={at}
          isHidden={options.length === 0}
          onChoose={(i) => accept(options[i])}
        />
      </div>
      <IssueList id={`${id}-issues`} text={text} issues={issues} onText={onText} />
      <p class="hint">
        {wording.editorHint}{' '}
        <button
          type="button"
          class="link"
          disabled={tools?.formatted(text) === undefined}
          onClick={() => onText(tools?.formatted(text) ?? text)}
        >
          {wording.format}
        </button>
      </p>
    </div>
  );
}

const startsAt = ({ text, span }: Completion, written: string, offset: number): boolean =>
  text.toLowerCase().startsWith(written.slice(span.start, offset).toLowerCase());

const describeOption = ({ text, type }: Completion): string => (type === undefined ? text : `${text} – ${type}`);

interface IssueListProps {
  readonly id: string;
  readonly text: string;
  readonly issues: readonly PolicyIssue[];
  readonly onText: (text: string) => void;
}

function IssueList({ id, text, issues, onText }: IssueListProps): JSX.Element {
  return (
    <ul id={id} class="issues" aria-live="polite">
      {issues.map(({ severity, message, span, fix }) => (
        <li key={`${span.start} ${message}`} class={severity}>
          <strong>{wording.severities[severity]}</strong> <code>{text.slice(span.start, span.end)}</code> {message}{' '}
          {fix !== undefined && (
            <button
              type="button"
              class="link"
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
