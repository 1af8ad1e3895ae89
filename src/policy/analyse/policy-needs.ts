/**
 * Every relation that a whole policy walks, not only what a request leaves of it: an explanation
 * looks at every clause.
 */
import { present } from '../../invariant.ts';
import { branchAt, FOLLOWED, listed, type NeedTree } from '../emit/shape-needs.ts';
import type {
  Checked,
  CheckedChanged,
  CheckedOperand,
  CheckedQuantified,
  CountOperand,
  Need,
  RequestOperand,
  RowScope,
} from '../types.ts';
import { operandsOf, partsOf } from '../visit.ts';

/** A record whose id the request holds. */
interface OperandNeed {
  readonly operand: RequestOperand;
  readonly needs: readonly Need[];
}
export interface PolicyNeeds {
  /** The needs of the record; a walk from `@next` counts as one from the record too. */
  readonly record: readonly Need[];
  readonly requested: readonly OperandNeed[];
}

interface OperandRoot {
  readonly operand: RequestOperand;
  readonly root: NeedTree;
}
interface NeedsPlace {
  readonly root: NeedTree;
  readonly requested: Map<string, OperandRoot>;
  readonly variables: ReadonlyMap<string, NeedTree>;
}

/** The decision depends on other records than the record itself. */
export function walksRelations(checked: Checked): boolean {
  const { record, requested } = policyNeedsOf(checked);
  return record.length + requested.length > 0;
}

export function policyNeedsOf(checked: Checked): PolicyNeeds {
  const place: NeedsPlace = { root: new Map(), requested: new Map(), variables: new Map() };
  collect(checked, place);
  const requested = [...place.requested.values()].map(({ operand, root }) => ({ operand, needs: listed(root) }));
  return { record: listed(place.root), requested };
}

function treeOf(scope: RowScope, { root, requested, variables }: NeedsPlace): NeedTree {
  switch (scope.kind) {
    case 'record':
    case 'next':
      return root;
    case 'variable':
      return present(variables.get(scope.name), 'the variable');
    case 'request': {
      const { source, name, type } = scope.operand;
      const key = JSON.stringify([source, name, type]);
      const known = requested.get(key) ?? { operand: scope.operand, root: new Map() };
      requested.set(key, known);
      return known.root;
    }
  }
}

function collect(checked: Checked, place: NeedsPlace): void {
  for (const operand of operandsOf(checked)) collectOperand(operand, place);
  if (checked.kind === 'changed') collectChanged(checked, place);
  if (checked.kind === 'quantified') collectQuantified(checked, place);
  else if (checked.kind !== 'compare') for (const part of partsOf(checked)) collect(part, place);
}

function collectQuantified({ path, variable, condition }: CheckedQuantified | CountOperand, place: NeedsPlace): void {
  const { scope, steps, relation } = path;
  const last = relation.kind === 'ancestors' ? FOLLOWED + relation.name : relation.name;
  // The record itself has the elements of its lists.
  const walked = [...steps.map((step) => step.relation.name), ...(relation.kind === 'elements' ? [] : [last])];
  const element = branchAt(treeOf(scope, place), walked);
  collect(condition, { ...place, variables: new Map(place.variables).set(variable, element) });
}

function collectChanged({ members }: CheckedChanged, { root }: NeedsPlace): void {
  for (const member of members) if (member.kind === 'relation') branchAt(root, [member.relation.name]);
}

function collectOperand(operand: CheckedOperand, place: NeedsPlace): void {
  if (operand.kind === 'count') collectQuantified(operand, place);
  if (operand.kind !== 'column') return;
  branchAt(
    treeOf(operand.scope, place),
    operand.steps.map(({ relation }) => relation.name),
  );
}
