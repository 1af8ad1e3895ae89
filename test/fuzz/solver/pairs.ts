/** Pairs of policies: two at random, one with a small change, and two that mean the same. */
import type { CompareOp, Expr, QuantifierWord } from '../../../grammar/syntax.ts';
import { disguise } from '../policies/disguise.ts';
import { PolicyMaker, type Setting, SPAN } from '../policies/policies.ts';
import type { Random } from '../random.ts';

export type PairKind = 'random' | 'changed' | 'extended' | 'equal';
export interface PairOfTrees {
  readonly kind: PairKind;
  readonly old: Expr;
  readonly changed: Expr;
}

const OTHER_OPS: readonly (readonly CompareOp[])[] = [
  ['=', '!=', '<', '<=', '>', '>='],
  ['in', 'not in'],
  ['contains', 'starts with', 'ends with'],
];
const QUANTIFIERS: readonly QuantifierWord[] = ['any', 'all', 'none'];

export class PairMaker {
  readonly #maker: PolicyMaker;
  readonly #setting: Setting;
  readonly #random: Random;

  constructor(setting: Setting, ids: ReadonlyMap<string, readonly string[]>, random: Random) {
    this.#maker = new PolicyMaker(setting, { random, ids });
    this.#setting = setting;
    this.#random = random;
  }

  make(): PairOfTrees {
    const old = this.#maker.make();
    const kind = this.#random.pick<PairKind>(['random', 'changed', 'changed', 'extended', 'equal']);
    return { kind, old, changed: this.#other(old, kind) };
  }

  #other(old: Expr, kind: PairKind): Expr {
    switch (kind) {
      case 'random':
        return this.#maker.make();
      case 'changed':
        return this.#changed(old);
      case 'extended': {
        const junction = this.#random.chance(0.5) ? 'and' : 'or';
        return { kind: junction, items: this.#random.shuffled([old, this.#maker.make()]), span: SPAN };
      }
      case 'equal':
        return this.#equal(old);
    }
  }

  /** Other names, the items in another order, and two negations. */
  #equal(old: Expr): Expr {
    const { expr, conditions } = disguise(old, this.#setting, this.#random);
    const named = conditions.length > 0 ? old : expr;
    const item: Expr = { kind: 'not', item: { kind: 'not', item: named, span: SPAN }, span: SPAN };
    return this.#random.chance(0.5) ? this.#dual(named) : item;
  }

  #dual(node: Expr): Expr {
    if (node.kind !== 'and' && node.kind !== 'or') return node;
    const items = this.#random
      .shuffled(node.items)
      .map((item): Expr => ({ kind: 'not', item: this.#dual(item), span: SPAN }));
    return { kind: 'not', item: { kind: node.kind === 'and' ? 'or' : 'and', items, span: SPAN }, span: SPAN };
  }

  #changed(node: Expr): Expr {
    const random = this.#random;
    switch (node.kind) {
      case 'and':
      case 'or': {
        const roll = random.next();
        if (roll < 0.15) return { ...node, kind: node.kind === 'and' ? 'or' : 'and' };
        if (roll < 0.4) return random.pick(node.items);
        const at = random.below(node.items.length);
        return { ...node, items: node.items.map((item, i) => (i === at ? this.#changed(item) : item)) };
      }
      case 'not':
        return random.chance(0.3) ? node.item : { ...node, item: this.#changed(node.item) };
      case 'quantified':
        if (random.chance(0.4)) return { ...node, quantifier: random.pick(QUANTIFIERS) };
        return { ...node, condition: this.#changed(node.condition) };
      case 'is null':
        return { ...node, negated: !node.negated };
      case 'compare': {
        const family = OTHER_OPS.find((ops) => ops.includes(node.op)) ?? [node.op];
        return random.chance(0.7) ? { ...node, op: random.pick(family) } : { kind: 'not', item: node, span: SPAN };
      }
      default:
        return { kind: 'not', item: node, span: SPAN };
    }
  }
}
