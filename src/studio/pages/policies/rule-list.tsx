import type { JSX } from 'preact';
import { useLayoutEffect, useRef } from 'preact/hooks';
import { schema } from '../../app/session-state.ts';
import { ExpressionEditor } from '../../editor/expression-editor.tsx';
import { wording } from '../../en.ts';
import { forgetInputs, keepInputs, restoreInputs } from '../../parts/kept-inputs.ts';
import { RoleChoice } from '../users/role-choice.tsx';
import type { DraftedSet, EditedRule, RuleChanges } from './drafted-set.ts';
import { editCondition } from './policy-draft.ts';
import type { RuleSet } from './rule-sets.ts';

interface RuleListProps {
  readonly collection: string;
  readonly set: RuleSet;
  readonly drafted: DraftedSet;
}

/** The rules one below the other; together they allow what any of them allows. */
export function RuleList({ collection, set, drafted: { shown, change } }: RuleListProps): JSX.Element {
  return (
    <div>
      {shown === undefined && <p class="hint">{wording.unreadableFile}</p>}
      {shown?.length === 0 && <p class="empty">{set.isInherited ? wording.noOwnRules : wording.noRules}</p>}
      <ol class="rules">
        {shown?.map((rule, i) => (
          <li key={i}>
            <article class="rule">
              <header>
                <RuleRoles
                  roles={rule.roles}
                  number={i + 1}
                  onChoose={change && ((roles) => change.setRoles(i, roles))}
                />
                {change !== undefined && (
                  <button
                    type="button"
                    aria-label={`${wording.removeRule} ${i + 1}`}
                    aria-keyshortcuts="d"
                    onClick={() => change.remove(i)}
                  >
                    {wording.removeTerm}
                  </button>
                )}
              </header>
              <RuleCondition collection={collection} set={set} rule={rule} number={i + 1} />
            </article>
          </li>
        ))}
      </ol>
      {change !== undefined && (
        <NewRule key={`${collection} ${set.name}`} of={`${collection} ${set.name}`} change={change} />
      )}
    </div>
  );
}

interface RuleRolesProps {
  readonly roles: readonly string[];
  readonly number: number;
  /** Undefined: the page cannot write the file. */
  readonly onChoose: ((roles: readonly string[]) => void) | undefined;
}

function RuleRoles({ roles, number, onChoose }: RuleRolesProps): JSX.Element {
  const text = roles.length === 0 ? wording.anyCaller : `${wording.roles}: ${roles.join(', ')}`;
  if (onChoose === undefined) return <p>{text}</p>;
  return (
    <details class="rule-roles">
      <summary aria-label={`${text}. ${wording.changeRoles} ${number}`}>{text}</summary>
      <RoleChoice chosen={roles} onChoose={onChoose} />
    </details>
  );
}

interface RuleConditionProps {
  readonly collection: string;
  readonly set: RuleSet;
  readonly rule: EditedRule;
  readonly number: number;
}

function RuleCondition({ collection, set, rule, number }: RuleConditionProps): JSX.Element {
  const { when, before = '', place, roles } = rule;
  const served = schema.value!;
  if (when === undefined) return <p class="hint">{wording.always}</p>;
  if (place === undefined || served.catalog === undefined) {
    return (
      <>
        <p>
          <code>{when}</code>
        </p>
        <p class="hint">{wording.builtIn}</p>
      </>
    );
  }
  const edit = (text: string): void => editCondition(served, place, { when: before, text });
  return (
    <>
      <ExpressionEditor
        label={`${wording.conditionOf} ${number}`}
        text={when}
        place={{ catalog: served.catalog, collection, action: set.action, roles, isOfMember: set.member !== undefined }}
        onText={edit}
      />
      {when !== before && (
        <p class="hint">
          {wording.before} <code>{before}</code>{' '}
          <button type="button" class="link" aria-keyshortcuts="r" onClick={() => edit(before)}>
            {wording.revert}
          </button>
        </p>
      )}
    </>
  );
}

/** The condition of a new rule, until a person writes another one. */
const NEVER_RULE = 'false';

interface NewRuleProps {
  /** The collection and the set that get the rule. */
  readonly of: string;
  readonly change: RuleChanges;
}

function NewRule({ of, change }: NewRuleProps): JSX.Element {
  const draft = `rule:${of}`;
  const shownForm = useRef<HTMLFormElement>(null);
  useLayoutEffect(() => {
    const isKept = restoreInputs(draft, shownForm.current!);
    if (isKept) shownForm.current!.closest('details')!.open = true;
  }, []);
  return (
    <details class="new-rule">
      <summary aria-keyshortcuts="n">{wording.newRule}</summary>
      <form
        ref={shownForm}
        onInput={(event) => keepInputs(draft, event.currentTarget)}
        onSubmit={(event) => {
          event.preventDefault();
          const form = event.currentTarget;
          const given = new FormData(form);
          const roles = given.getAll('roles').map(String);
          change.add({ roles, ...((roles.length === 0 || given.has('condition')) && { when: NEVER_RULE }) });
          forgetInputs(draft);
          form.reset();
          form.closest('details')!.open = false;
        }}
      >
        <p class="hint">{wording.newRuleHint}</p>
        <RoleChoice chosen={[]} />
        <label class="check">
          <input type="checkbox" name="condition" defaultChecked />
          {wording.withCondition}
        </label>
        <button type="submit" aria-keyshortcuts="Control+Enter">
          {wording.addRule}
        </button>
      </form>
    </details>
  );
}
