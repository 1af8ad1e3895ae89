/**
 * Every relation that a whole policy walks, not only what a request leaves of it: an explanation
 * looks at every clause.
 */
import { present } from '../../invariant.ts';
import type {
  Checked,
  CheckedChanged,
  CheckedOperand,
  CheckedQuantified,
  CountOperand,
  Need,
  RequestOperand,
  Scope,
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

interface Node {
  readonly relation: string;
  readonly isFollowed: boolean;
  readonly children: Map<string, Node>;
}
interface OperandRoot {
  readonly operand: RequestOperand;
  readonly root: Node;
}
interface NeedsPlace {
  readonly root: Node;
  readonly requested: Map<string, OperandRoot>;
  readonly variables: ReadonlyMap<string, Node>;
}

const nodeOf = (relation: string, isFollowed = false): Node => ({ relation, isFollowed, children: new Map() });

export function policyNeedsOf(checked: Checked): PolicyNeeds {
  const place: NeedsPlace = { root: nodeOf(''), requested: new Map(), variables: new Map() };
  collect(checked, place);
  const requested = [...place.requested.values()].map(({ operand, root }) => ({ operand, needs: toNeeds(root) }));
  return { record: toNeeds(place.root), requested };
}

const toNeeds = ({ children }: Node): readonly Need[] =>
  [...children.values()].map((child) => ({
    relation: child.relation,
    ...(child.isFollowed && { isFollowed: true }),
    needs: toNeeds(child),
  }));

function nodeOfScope(scope: Scope, { root, requested, variables }: NeedsPlace): Node {
  switch (scope.kind) {
    case 'record':
    case 'next':
      return root;
    case 'variable':
      return present(variables.get(scope.name), 'the variable');
    case 'request': {
      const { source, name, type } = scope.operand;
      const key = JSON.stringify([source, name, type]);
      const known = requested.get(key) ?? { operand: scope.operand, root: nodeOf('') };
      requested.set(key, known);
      return known.root;
    }
  }
}

function walk(from: Node, relations: readonly string[]): Node {
  let node = from;
  for (const relation of relations) {
    const next = node.children.get(relation) ?? nodeOf(relation);
    node.children.set(relation, next);
    node = next;
  }
  return node;
}

/** The records reached by following the relation, the first included. */
function above(from: Node, relation: string): Node {
  const key = `by ${relation}`;
  const known = from.children.get(key) ?? nodeOf(relation, true);
  from.children.set(key, known);
  return known;
}

function collect(checked: Checked, place: NeedsPlace): void {
  for (const operand of operandsOf(checked)) collectOperand(operand, place);
  if (checked.kind === 'changed') collectChanged(checked, place);
  if (checked.kind === 'quantified') collectQuantified(checked, place);
  else if (checked.kind !== 'compare') for (const part of partsOf(checked)) collect(part, place);
}

function collectQuantified({ path, variable, condition }: CheckedQuantified | CountOperand, place: NeedsPlace): void {
  const { scope, steps, relation } = path;
  const names = steps.map((step) => step.relation.name);
  const owner = walk(nodeOfScope(scope, place), names);
  const element = relation.kind === 'ancestors' ? above(owner, relation.name) : walk(owner, [relation.name]);
  collect(condition, { ...place, variables: new Map(place.variables).set(variable, element) });
}

function collectChanged({ members }: CheckedChanged, { root }: NeedsPlace): void {
  for (const member of members) if (member.kind === 'relation') walk(root, [member.relation.name]);
}

function collectOperand(operand: CheckedOperand, place: NeedsPlace): void {
  if (operand.kind === 'count') collectQuantified(operand, place);
  if (operand.kind !== 'column') return;
  walk(
    nodeOfScope(operand.scope, place),
    operand.steps.map(({ relation }) => relation.name),
  );
}
