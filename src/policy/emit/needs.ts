/** Which related rows a condition reads. */
import { invariant } from '../../invariant.ts';
import type { Condition } from '../condition.ts';
import type { Need } from '../types.ts';

export interface Needs {
  readonly record: readonly Need[];
  readonly next: readonly Need[];
}
type Branch = Map<string, Branch>;

export function needsOf(cond: Condition): Needs {
  const [record, next]: [Branch, Branch] = [new Map(), new Map()];
  const branches = new Map<number, Branch>([
    [0, record],
    [1, next],
  ]);
  const visit = (node: Condition): void => {
    if (node.kind === 'and' || node.kind === 'or') node.items.forEach(visit);
    if (node.kind !== 'exists') return;
    let branch = branches.get(node.key.source.id);
    invariant(branch !== undefined, 'a row is bound before it is walked from');
    for (const relation of node.walk) {
      const known: Branch = branch.get(relation) ?? new Map();
      branch.set(relation, known);
      branch = known;
    }
    branches.set(node.source.id, branch);
    visit(node.condition);
  };
  visit(cond);
  return { record: listed(record), next: listed(next) };
}

const listed = (branch: Branch): readonly Need[] =>
  [...branch].map(([relation, needs]) => ({ relation, needs: listed(needs) }));
