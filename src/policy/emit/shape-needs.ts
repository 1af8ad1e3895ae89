/** Which related rows a condition reads. */
import { invariant } from '../../invariant.ts';
import type { Condition, Exists } from '../condition.ts';
import type { Need, NeedsBy } from '../types.ts';
import { innerOf } from '../visit.ts';

/** The needs of a shape, whose slots the request has not filled with ids yet. */
export type ShapeNeeds = NeedsBy<{ readonly slot: number }>;
/** Needs by the name of the relation, with `by ` before it if it is followed. */
export type NeedTree = Map<string, NeedTree>;
interface SlotRoot {
  readonly collection: string;
  readonly slot: number;
  isRead: boolean;
  readonly branch: NeedTree;
}

export function shapeNeedsOf(cond: Condition): ShapeNeeds {
  const [record, next]: [NeedTree, NeedTree] = [new Map(), new Map()];
  const requested = new Map<string, SlotRoot>();
  const branches = new Map<number, NeedTree>([
    [0, record],
    [1, next],
  ]);
  const rootOf = ({ key, from }: Exists): NeedTree | undefined => {
    if (key.kind === 'column') return branches.get(key.source.id);
    const place = `${key.slot} ${from}`;
    const root = requested.get(place) ?? { collection: from, slot: key.slot, isRead: false, branch: new Map() };
    requested.set(place, root);
    return root.branch;
  };
  const visit = (node: Condition): void => {
    if (node.kind === 'exists') bind(node);
    innerOf(node).forEach(visit);
  };
  const bind = (node: Exists): void => {
    const branch = rootOf(node);
    invariant(branch !== undefined, 'a row is bound before it is walked from');
    if (node.key.kind === 'slot' && node.walk.length === 0)
      requested.get(`${node.key.slot} ${node.from}`)!.isRead = true;
    branches.set(node.source.id, branchAt(branch, walkedSteps(node)));
  };
  visit(cond);
  const roots = [...requested.values()].map(({ branch, ...root }) => ({ ...root, needs: listed(branch) }));
  return { record: listed(record), next: listed(next), requested: roots };
}

/** Follows the steps from the tree, and adds those that it does not have. */
export function branchAt(tree: NeedTree, steps: readonly string[]): NeedTree {
  let branch = tree;
  for (const step of steps) {
    const known: NeedTree = branch.get(step) ?? new Map();
    branch.set(step, known);
    branch = known;
  }
  return branch;
}

export const FOLLOWED = 'by ';

const walkedSteps = ({ walk, relation }: Exists): readonly string[] =>
  relation.kind === 'ancestors' ? [...walk.slice(0, -1), FOLLOWED + relation.name] : walk;

export const listed = (branch: NeedTree): readonly Need[] =>
  [...branch].map(([step, inner]) => {
    const needs = listed(inner);
    return step.startsWith(FOLLOWED)
      ? { relation: step.slice(FOLLOWED.length), isFollowed: true, needs }
      : { relation: step, needs };
  });
