import type { JSX } from 'preact';
import { schema } from '../../app/session-state.ts';
import type { ServedRule } from '../../data/schema-answer.ts';
import { ExpressionEditor } from '../../editor/expression-editor.tsx';
import { wording } from '../../wording.ts';
import { draftedCondition, editCondition } from './policy-draft.ts';
import type { RuleSet } from './rule-sets.ts';

interface RuleListProps {
  readonly collection: string;
  readonly set: RuleSet;
}

/** A rule for each line; together they allow what any of them allows. */
export function RuleList({ collection, set }: RuleListProps): JSX.Element {
  if (set.rules.length === 0) return <p class="empty">{set.member ? wording.noMemberRules : wording.noRules}</p>;
  return (
    <ol class="rules">
      {set.rules.map((rule, i) => (
        <li key={`${set.name} ${i}`}>
          <article class="rule">
            <RuleText collection={collection} set={set} rule={rule} number={i + 1} />
          </article>
        </li>
      ))}
    </ol>
  );
}

interface RuleTextProps extends RuleListProps {
  readonly rule: ServedRule;
  readonly number: number;
}

function RuleText({ collection, set, rule, number }: RuleTextProps): JSX.Element {
  const { roles, when, place } = rule;
  const served = schema.value!;
  const who = roles.length === 0 ? wording.anyCaller : `${wording.roles}: ${roles.join(', ')}`;
  if (when === undefined) return <p>{`${who} – ${wording.always}`}</p>;
  if (place === undefined || served.catalog === undefined) {
    return (
      <>
        <p>{who}</p>
        <p>
          <code>{when}</code>
        </p>
        <p class="hint">{wording.builtIn}</p>
      </>
    );
  }
  const text = draftedCondition(served, place, when);
  return (
    <>
      <p>{who}</p>
      <ExpressionEditor
        label={`${wording.conditionOf} ${number}`}
        text={text}
        place={{ catalog: served.catalog, collection, action: set.action }}
        onText={(changed) => editCondition(served, place, { when, text: changed })}
      />
      {text !== when && (
        <p class="hint">
          {wording.savedIs} <code>{when}</code>{' '}
          <button type="button" class="link" onClick={() => editCondition(served, place, { when, text: when })}>
            {wording.revert}
          </button>
        </p>
      )}
    </>
  );
}
