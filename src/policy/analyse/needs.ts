/** Every relation that a whole policy walks, not only what a request leaves of it: an explanation looks at every clause. */
import type { Checked, CheckedOperand, CheckedQuantified, Need, Scope } from '../types.ts';

interface Node {
  readonly relation: string;
  readonly children: Map<string, Node>;
}
type Roots = ReadonlyMap<string, Node>;

const nodeOf = (relation: string): Node => ({ relation, children: new Map() });

/** Of the record; what `@next` walks is taken to be walked from the record too. */
export function needsOf(checked: Checked): readonly Need[] {
  const root = nodeOf('');
  collect(checked, { root, variables: new Map() });
  return toNeeds(root);
}

interface Place {
  readonly root: Node;
  readonly variables: Roots;
}

const toNeeds = ({ children }: Node): readonly Need[] =>
  [...children.values()].map((child) => ({ relation: child.relation, needs: toNeeds(child) }));

const startOf = (scope: Scope, { root, variables }: Place): Node =>
  scope.kind === 'variable' ? variables.get(scope.name)! : root;

function walk(from: Node, relations: readonly string[]): Node {
  let node = from;
  for (const relation of relations) {
    const next = node.children.get(relation) ?? nodeOf(relation);
    node.children.set(relation, next);
    node = next;
  }
  return node;
}

function collect(checked: Checked, place: Place): void {
  switch (checked.kind) {
    case 'const':
      break;
    case 'and':
    case 'or':
      for (const item of checked.items) collect(item, place);
      break;
    case 'not':
      collect(checked.item, place);
      break;
    case 'compare':
      collectOperand(checked.left, place);
      collectOperand(checked.right, place);
      break;
    case 'is null':
      collectOperand(checked.operand, place);
      break;
    case 'quantified':
      collectQuantified(checked, place);
      break;
  }
}

function collectQuantified({ path, variable, condition }: CheckedQuantified, place: Place): void {
  const names = [...path.steps.map(({ relation }) => relation.name), path.relation.name];
  const element = walk(startOf(path.scope, place), names);
  collect(condition, { ...place, variables: new Map(place.variables).set(variable, element) });
}

function collectOperand(operand: CheckedOperand, place: Place): void {
  if (operand.kind !== 'column') return;
  walk(
    startOf(operand.scope, place),
    operand.steps.map(({ relation }) => relation.name),
  );
}
