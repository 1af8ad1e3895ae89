/** The rules of a collection in editors, the truth table of an action, and the difference before a save. */
import type { JSX } from 'preact';
import { address, goTo, pathTo } from '../../app/page-address.ts';
import { collectionNamed, schema } from '../../app/session-state.ts';
import type { ServedCollection } from '../../data/schema-answer.ts';
import { wording } from '../../wording.ts';
import { DraftActions } from './difference.tsx';
import type { DraftedRule } from './matrix-question.ts';
import { draftedCondition } from './policy-draft.ts';
import { RuleList } from './rule-list.tsx';
import { type RuleSet, ruleSetsOf } from './rule-sets.ts';
import { TruthTable } from './truth-table.tsx';

export function PoliciesPage(): JSX.Element {
  const { subject, query } = address.value;
  const collection = collectionNamed(subject) ?? schema.value?.collections[0];
  if (collection === undefined)
    return (
      <main id="content" class="empty">
        {wording.nothingFound}
      </main>
    );
  const sets = ruleSetsOf(collection);
  const set = sets.find(({ name }) => name === query.get('rules')) ?? sets[1]!;
  return (
    <main id="content" class="page" tabIndex={-1}>
      <h1>{wording.policies}</h1>
      <RuleSetChoice collection={collection} sets={sets} set={set} />
      <h2>{`${collection.name}: ${set.name}`}</h2>
      <RuleList key={`${collection.name} ${set.name}`} collection={collection.name} set={set} />
      <h2>{wording.truthTable}</h2>
      <TableOf key={`${collection.name} ${set.name} table`} collection={collection} set={set} />
      <DraftActions />
    </main>
  );
}

interface RuleSetChoiceProps {
  readonly collection: ServedCollection;
  readonly sets: readonly RuleSet[];
  readonly set: RuleSet;
}

function RuleSetChoice({ collection, sets, set }: RuleSetChoiceProps): JSX.Element {
  const names = (schema.value?.collections ?? []).map(({ name }) => name);
  return (
    <div class="question">
      <label>
        {wording.collection}
        <select
          name="collection"
          value={collection.name}
          onChange={(event) => goTo(pathTo('policies', event.currentTarget.value))}
        >
          {names.map((name) => (
            <option key={name}>{name}</option>
          ))}
        </select>
      </label>
      <label>
        {wording.rules}
        <select
          name="rules"
          value={set.name}
          onChange={(event) => goTo(pathTo('policies', collection.name, { rules: event.currentTarget.value }))}
        >
          {sets.map(({ name, rules }) => (
            <option key={name} value={name}>
              {`${name} (${rules.length})`}
            </option>
          ))}
        </select>
      </label>
    </div>
  );
}

/** The rules with their edits; undefined: none is edited. */
function draftedRules({ rules }: RuleSet): readonly DraftedRule[] | undefined {
  const served = schema.value!;
  const all = rules.map(({ roles, when, place }): DraftedRule => {
    return { roles, ...(when !== undefined && { when: draftedCondition(served, place, when) }) };
  });
  return all.some(({ when }, i) => when !== rules[i]!.when) ? all : undefined;
}

function TableOf({ collection, set }: Pick<RuleSetChoiceProps, 'collection' | 'set'>): JSX.Element {
  if (set.member !== undefined) return <p class="hint">{wording.noMemberTable}</p>;
  if (set.action === 'create') return <p class="hint">{wording.noCreateTable}</p>;
  return <TruthTable collection={collection} set={set} drafted={draftedRules(set)} />;
}
