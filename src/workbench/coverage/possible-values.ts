/** The values of a leaf that some caller and row give: by its types, and by the solver. */
import { Budget } from '../../policy/analyse/solve/search.ts';
import {
  DEFAULT_BUDGET,
  findWorld,
  type RulesPlace,
  TESTED_CALLERS,
  type WorldCondition,
} from '../../policy/analyse/solve/solve.ts';
import { compileChecked, compilePolicy } from '../../policy/compile.ts';
import type { Catalog, Checked, CheckedOperand } from '../../policy/types.ts';
import { operandsOf, partsOf, scopesOf } from '../../policy/visit.ts';
import { askedPlace } from '../../schema/model/kept/soft-delete.ts';
import type { PlacedRule } from '../rule-places.ts';

export type CoveredValue = 'true' | 'false' | 'unknown';

/** The types alone. */
export function valuesByType(leaf: Checked): ReadonlySet<CoveredValue> {
  if (leaf.kind === 'const') return new Set([leaf.value ? 'true' : 'false']);
  const isUnknown = leaf.kind === 'compare' && operandsOf(leaf).some(canBeAbsent);
  return new Set(['true', 'false', ...(isUnknown ? (['unknown'] as const) : [])]);
}

/** Every caller has roles, though perhaps none. */
const canBeAbsent = (operand: CheckedOperand): boolean =>
  'nullable' in operand &&
  operand.nullable &&
  !(operand.kind === 'request' && operand.source === 'auth' && operand.name === 'roles');

/** False only if no caller, request and record give the value. */
export function isPossible(leaf: Checked, value: CoveredValue, place: LeafPlace): boolean {
  // An element of a quantifier is not a record that a world can be asked about.
  if (hasVariable(leaf)) return true;
  const { check } = place.placed;
  const asked = askedPlace(place.placed, place.catalog);
  const actions = check?.violated.create.length ? (['create', 'update'] as const) : [asked.action];
  return actions.some((action) => isPossibleOn({ ...asked, action }, leaf, value));
}

function isPossibleOn({ catalog, collection, action }: RulesPlace, leaf: Checked, value: CoveredValue): boolean {
  const everything = compilePolicy('true', { catalog, collection, action });
  const conditionOf = (checked: Checked, isTrue: boolean): WorldCondition => ({
    policy: compileChecked({ checked, text: 'leaf', catalog, action }, { codegen: false }),
    isTrue,
  });
  const negated: Checked = { kind: 'not', item: leaf, span: leaf.span };
  const conditions = {
    true: [conditionOf(leaf, true)],
    false: [conditionOf(negated, true)],
    unknown: [conditionOf(leaf, false), conditionOf(negated, false)],
  }[value];
  const asking = { allowedBy: [everything], deniedBy: [], conditions };
  const found = findWorld({ catalog, collection, action }, asking, {
    budget: new Budget(BUDGET_MS),
    callers: TESTED_CALLERS,
  });
  return found.kind !== 'none';
}

/** More than a comparison has: a busy machine must not change the coverage. */
const BUDGET_MS = 10 * DEFAULT_BUDGET;

export interface LeafPlace {
  readonly placed: PlacedRule;
  readonly catalog: Catalog;
}

const hasVariable = (checked: Checked): boolean =>
  [checked, ...partsOf(checked)].some((node) => scopesOf(node).some(({ kind }) => kind === 'variable'));
