/** The rules of a collection in editors, the truth table of an action, and the difference before a save. */
import type { JSX } from 'preact';
import { address, goTo, pathTo } from '../../app/page-address.ts';
import { collectionNamed, schema } from '../../app/session-state.ts';
import type { ServedCollection } from '../../data/schema-answer.ts';
import { wording } from '../../en.ts';
import { DraftActions } from './difference.tsx';
import { useDraftedSet } from './drafted-set.ts';
import { RuleList } from './rule-list.tsx';
import { RuleOutcome } from './rule-outcome.tsx';
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
      <EditedSet key={`${collection.name} ${set.name}`} collection={collection} set={set} />
      <DraftActions />
    </main>
  );
}

interface EditedSetProps {
  readonly collection: ServedCollection;
  readonly set: RuleSet;
}

/** The rules, what becomes of them beside, and the truth table below. */
function EditedSet(props: EditedSetProps): JSX.Element {
  const { collection, set } = props;
  const drafted = useDraftedSet(collection.name, set);
  return (
    <>
      <div class="policy-sides">
        <RuleList collection={collection.name} set={set} drafted={drafted} />
        <RuleOutcome {...props} drafted={drafted} />
      </div>
      <h2>{wording.truthTable}</h2>
      <TruthTable {...props} drafted={drafted} />
    </>
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
          {sets.map(({ name, rules, isInherited }) => (
            <option key={name} value={name}>
              {isInherited ? name : `${name} (${rules.length})`}
            </option>
          ))}
        </select>
      </label>
    </div>
  );
}
