/** The filter: terms of clicks, and the expression that they are. */
import type { JSX } from 'preact';
import { useEffect, useId, useMemo, useState } from 'preact/hooks';
import { collectionNamed, schema } from '../../app/session-state.ts';
import { useTabDraft } from '../../app/tab-drafts.ts';
import { leadsToOne, type ServedCollection, type ServedField, type ServedRelation } from '../../data/schema-answer.ts';
import { ExpressionField, IssueList } from '../../editor/expression-editor.tsx';
import { type PolicyTools, useCodeField, usePolicyTools } from '../../editor/load-editor.ts';
import type { ToolPlace } from '../../editor/policy-tools.ts';
import { wording } from '../../en.ts';
import { operatorsFor, takesValue, termOf, termsOf } from './filter-terms.ts';

interface FilterBarProps {
  readonly collection: ServedCollection;
  readonly filter: string;
  readonly problem: string | undefined;
  readonly onFilter: (filter: string) => void;
}

export function FilterBar({ collection, filter, problem, onFilter }: FilterBarProps): JSX.Element {
  const [text, setText] = useState(filter);
  const [isUsed, setIsUsed] = useState(false);
  const [tools, isEditorThere] = [usePolicyTools(isUsed), useCodeField(isUsed) !== undefined];
  useEffect(() => setText(filter), [filter]);
  const terms = termsOf(filter) ?? [];
  return (
    <div class="filter">
      <form
        role="search"
        aria-label={wording.filterRecords}
        aria-keyshortcuts="/"
        onSubmit={(event) => {
          event.preventDefault();
          onFilter(text.trim());
        }}
      >
        {tools !== undefined && isEditorThere ? (
          <WrittenFilter {...{ collection, text, setText, tools }} onEnter={() => onFilter(text.trim())} />
        ) : (
          <PlainFilter {...{ text, setText, problem }} onUse={() => setIsUsed(true)} />
        )}
        <button type="submit" aria-keyshortcuts="Enter">
          {wording.applyFilter}
        </button>
        {filter !== '' && (
          <button type="button" aria-keyshortcuts="Shift+f" onClick={() => onFilter('')}>
            {wording.clearFilter}
          </button>
        )}
      </form>
      {problem !== undefined && (
        <p id="filter-problem" class="field-problem" role="alert">
          {problem}
        </p>
      )}
      <details class="builder">
        <summary aria-keyshortcuts="b">{wording.buildFilter}</summary>
        <TermForm
          key={collection.name}
          collection={collection}
          onTerm={(term) =>
            onFilter(filter === '' ? term : termsOf(filter) ? `${filter} and ${term}` : `(${filter}) and ${term}`)
          }
        />
      </details>
      <TermList terms={terms} onFilter={onFilter} />
    </div>
  );
}

interface FilterTextProps {
  readonly text: string;
  readonly setText: (text: string) => void;
  readonly problem: string | undefined;
}

function PlainFilter({ text, setText, problem, onUse }: FilterTextProps & { readonly onUse: () => void }): JSX.Element {
  return (
    <input
      type="search"
      aria-label={wording.filter}
      placeholder={wording.filterHint}
      spellcheck={false}
      value={text}
      aria-invalid={problem !== undefined}
      aria-describedby={problem === undefined ? undefined : 'filter-problem'}
      onFocus={onUse}
      onInput={(event) => setText(event.currentTarget.value)}
    />
  );
}

interface WrittenFilterProps extends Omit<FilterTextProps, 'problem'> {
  readonly collection: ServedCollection;
  readonly tools: PolicyTools;
  readonly onEnter: () => void;
}

/** With completion, and errors as a person types. */
function WrittenFilter({ collection, text, setText, tools, onEnter }: WrittenFilterProps): JSX.Element {
  const id = useId();
  const catalog = schema.value!.catalog;
  const place: ToolPlace = { catalog, collection: collection.name, action: 'filter' };
  const issues = useMemo(
    () => (text.trim() === '' ? [] : tools.issuesOf(text, place)),
    [tools, text, catalog, collection.name],
  );
  return (
    <div class="written" role="group" aria-label={wording.filter}>
      <ExpressionField
        {...{ text, place, tools, issues, onEnter }}
        label={wording.filter}
        issueList={id}
        onText={setText}
        takesFocus
      />
      <IssueList id={id} text={text} issues={issues} onText={setText} />
    </div>
  );
}

interface TermListProps {
  readonly terms: readonly string[];
  readonly onFilter: (filter: string) => void;
}

function TermList({ terms, onFilter }: TermListProps): JSX.Element | null {
  if (terms.length === 0) return null;
  return (
    <ul class="terms">
      {terms.map((term, i) => (
        <li key={term}>
          <code>{term}</code>
          <button
            type="button"
            aria-label={`${wording.removeTerm}: ${term}`}
            aria-keyshortcuts="-"
            onClick={() => onFilter(terms.toSpliced(i, 1).join(' and '))}
          >
            ×
          </button>
        </li>
      ))}
    </ul>
  );
}

interface TermFormProps {
  readonly collection: ServedCollection;
  readonly onTerm: (term: string) => void;
}

/** A part of a filter before it is added; what is undefined is the first of its choices. */
interface TermDraft {
  readonly name?: string;
  readonly operator?: string;
  readonly value?: string;
}
const NO_TERM: TermDraft = {};

function TermForm({ collection, onTerm }: TermFormProps): JSX.Element {
  const members: readonly (ServedField | ServedRelation)[] = [
    ...collection.fields,
    ...collection.relations.filter(leadsToOne),
  ];
  const [draft, setDraft] = useTabDraft(`term:${collection.name}`, NO_TERM);
  const { name, operator = '=', value = '' } = draft;
  const member = members.find((each) => each.name === name) ?? members[0]!;
  const operators = operatorsFor(member);
  const used = operators.includes(operator) ? operator : operators[0]!;
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        const type = 'type' in member ? member.type : collectionNamed(member.collection)?.key.type;
        onTerm(termOf({ name: member.name, type }, used, value));
        setDraft(NO_TERM);
      }}
    >
      <label>
        {wording.field}
        <select value={member.name} onChange={(event) => setDraft({ ...draft, name: event.currentTarget.value })}>
          {members.map((each) => (
            <option key={each.name}>{each.name}</option>
          ))}
        </select>
      </label>
      <label>
        {wording.operator}
        <select value={used} onChange={(event) => setDraft({ ...draft, operator: event.currentTarget.value })}>
          {operators.map((each) => (
            <option key={each}>{each}</option>
          ))}
        </select>
      </label>
      {takesValue(used) && (
        // biome-ignore lint/a11y/noLabelWithoutControl: the part is a control
        <label>
          {wording.value}
          <TermValue member={member} value={value} onValue={(text) => setDraft({ ...draft, value: text })} />
        </label>
      )}
      <button type="submit" aria-keyshortcuts="Control+Enter">
        {wording.addTerm}
      </button>
    </form>
  );
}

interface TermValueProps {
  readonly member: ServedField | ServedRelation;
  readonly value: string;
  readonly onValue: (value: string) => void;
}

function TermValue({ member, value, onValue }: TermValueProps): JSX.Element {
  const type = 'type' in member ? member.type : undefined;
  const choices = type === 'bool' ? ['true', 'false'] : 'enum' in member ? member.enum : undefined;
  useEffect(() => {
    if (choices !== undefined && !choices.map(String).includes(value)) onValue(String(choices[0]));
  }, [member.name]);
  if (choices === undefined) return <input value={value} onInput={(event) => onValue(event.currentTarget.value)} />;
  return (
    <select value={value} onChange={(event) => onValue(event.currentTarget.value)}>
      {choices.map((each) => (
        <option key={each} value={each}>
          {each === '' ? wording.emptyValue : each}
        </option>
      ))}
    </select>
  );
}
