/** Every change of a check, or of the transitions of a field, in one place. */
import { examineErrors } from '../../policy/check/checker.ts';
import type { Checked } from '../../policy/types.ts';
import { comparesOf } from '../../policy/visit.ts';
import type { Check, Schema, Transitions } from '../../schema/model/model.ts';
import { transitionsText } from '../../schema/rules/checks.ts';
import type { PlacedRule } from '../rule-places.ts';
import { MOST_MUTATIONS, type Mutation, mutationsOf } from './mutations.ts';

export function mutationsOfCheck(placed: PlacedRule, { when, transitions }: Check, schema: Schema) {
  const checked = heldCondition(placed.rule.checked);
  return transitions === undefined
    ? mutationsOf({ checked, text: when, source: when, dropped: 'no check' }, schema)
    : transitionMutations(placed, transitions, { schema, checked });
}

/** The condition that a violation negates. */
const heldCondition = (violation: Checked): Checked => (violation.kind === 'not' ? violation.item : violation);

type Possible = Transitions['possible'];

interface TransitionsPlace {
  readonly schema: Schema;
  readonly checked: Checked;
}

function transitionMutations(
  { collection }: PlacedRule,
  { field, possible }: Transitions,
  { schema, checked }: TransitionsPlace,
): readonly Mutation[] {
  const values = schema.collections.get(collection)!.fields.get(field)!.enum!;
  const dropped: Mutation = {
    operator: 'dropped rule',
    node: checked,
    from: `the transitions of ${field}`,
    to: 'no transitions',
    checked: undefined,
  };
  const changed = values.flatMap((from) =>
    otherSuccessors(from, possible, values).flatMap((to): readonly Mutation[] => {
      const text = transitionsText(field, new Map(possible).set(String(from), to), values);
      const made = examineErrors(text, { catalog: schema, collection, action: 'update' }).checked;
      const place = { operator: 'transition', node: nodeOf(from, checked) ?? checked } as const;
      const before = possible.get(String(from)) ?? [];
      return made === undefined
        ? []
        : [{ ...place, from: successorsText(from, before), to: successorsText(from, to), checked: made }];
    }),
  );
  return [dropped, ...changed].slice(0, MOST_MUTATIONS);
}

type EnumValue = string | number;

const successorsText = (from: EnumValue, to: readonly EnumValue[]): string => `${from}: [${to.join(', ')}]`;

/** The successors without one of them, and with one more: the next value of the enum. */
function otherSuccessors(
  from: EnumValue,
  possible: Possible,
  values: readonly EnumValue[],
): readonly (readonly EnumValue[])[] {
  const own = possible.get(String(from)) ?? [];
  const at = values.indexOf(from);
  const following = [...values.slice(at + 1), ...values.slice(0, at)].find((value) => !own.includes(value));
  return [...own.map((_, i) => own.toSpliced(i, 1)), ...(following === undefined ? [] : [[...own, following]])];
}

/** The part of the condition about the successors of a value. */
const nodeOf = (from: EnumValue, checked: Checked): Checked | undefined =>
  comparesOf(checked).find(
    ({ left, right }) =>
      left.kind === 'column' && left.scope.kind === 'record' && 'value' in right && right.value === from,
  );
