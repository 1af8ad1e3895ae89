/** Gives equivalent conditions one spelling, so that an analysis compares their meaning. */
import { equalityOf, OPERATORS } from '../operators.ts';
import type { Checked, CheckedCompare, CheckedOperand, ColumnOperand } from '../types.ts';

/**
 * Equivalent to `checked` for every record and request, in three-valued logic. Without spans, and
 * with the variables named by their depth; negations are pushed to the leaves, columns are on the
 * left, the id after a belongs_to is the belongs_to, and a bool is compared by `=` only.
 */
export function canonical(checked: Checked): Checked {
  const spelt = new Canonical(new Map()).spell(checked, true);
  return JSON.parse(printedTree(spelt)) as Checked;
}

const printedTree = (node: object): string =>
  JSON.stringify(node, (key, value: unknown) => (LEFT_OUT.has(key) ? undefined : value));

/** A path has one `nullable`, which follows from the rest of it. */
const LEFT_OUT: ReadonlySet<string> = new Set(['span', 'nullable']);

/** The order of the sides in a comparison that can be mirrored. */
const SIDES: readonly CheckedOperand['kind'][] = ['column', 'count', 'request', 'now', 'literal'];

class Canonical {
  readonly #names: ReadonlyMap<string, string>;

  constructor(names: ReadonlyMap<string, string>) {
    this.#names = names;
  }

  /** `polarity` false: of its negation. */
  spell(checked: Checked, polarity: boolean): Checked {
    switch (checked.kind) {
      case 'and':
      case 'or': {
        const kind = (checked.kind === 'and') === polarity ? 'and' : 'or';
        return { ...checked, kind, items: checked.items.map((item) => this.spell(item, polarity)) };
      }
      case 'not':
        return this.spell(checked.item, !polarity);
      case 'const':
        return { ...checked, value: checked.value === polarity };
      case 'is null':
        return { ...checked, negated: checked.negated === polarity, operand: this.#operand(checked.operand) };
      case 'changed':
        return { ...checked, unchanged: checked.unchanged === polarity };
      case 'compare':
        return this.#compare(checked, polarity);
      case 'quantified': {
        const { variable, inner } = this.#bound(checked.variable);
        const condition = inner.spell(checked.condition, true);
        const spelt: Checked = { ...checked, path: this.#scoped(checked.path), variable, condition };
        return polarity ? spelt : { kind: 'not', item: spelt, span: checked.span };
      }
    }
  }

  #compare(checked: CheckedCompare, polarity: boolean): Checked {
    const { complement } = OPERATORS[checked.op];
    if (!polarity && complement === undefined)
      return { kind: 'not', item: this.#compare(checked, true), span: checked.span };
    const op = polarity ? checked.op : complement!;
    const [left, right] = [this.#operand(checked.left), this.#operand(checked.right)];
    const { mirror } = OPERATORS[op];
    const isTurned = mirror !== undefined && comesFirst(right, left);
    return ofBool(isTurned ? { ...checked, op: mirror, left: right, right: left } : { ...checked, op, left, right });
  }

  #operand(operand: CheckedOperand): CheckedOperand {
    if (operand.kind === 'column') return withoutId(this.#scoped(operand));
    if (operand.kind !== 'count') return operand;
    const { variable, inner } = this.#bound(operand.variable);
    const condition = inner.spell(operand.condition, true);
    return { ...operand, path: this.#scoped(operand.path), variable, condition };
  }

  #bound(name: string): { readonly variable: string; readonly inner: Canonical } {
    const variable = `$${this.#names.size}`;
    return { variable, inner: new Canonical(new Map(this.#names).set(name, variable)) };
  }

  #scoped<T extends Pick<ColumnOperand, 'scope'>>(holder: T): T {
    const { scope } = holder;
    if (scope.kind !== 'variable') return holder;
    // A variable that is bound outside of the condition keeps its name, which none of the new ones has.
    return { ...holder, scope: { ...scope, name: this.#names.get(scope.name) ?? scope.name } };
  }
}

/** `pinned != true` is `pinned = false`. */
function ofBool(compare: CheckedCompare): CheckedCompare {
  const { op, right } = compare;
  if (right.kind !== 'literal' || typeof right.value !== 'boolean' || op !== equalityOf(false)) return compare;
  return { ...compare, op: equalityOf(true), right: { ...right, value: !right.value } };
}

function comesFirst(a: CheckedOperand, b: CheckedOperand): boolean {
  const [x, y] = [SIDES.indexOf(a.kind), SIDES.indexOf(b.kind)];
  return x === y ? printedTree(a) < printedTree(b) : x < y;
}

/** `@record.team.id` is `@record.team`: a foreign key leads to a record. */
function withoutId(operand: ColumnOperand): ColumnOperand {
  const last = operand.steps.at(-1);
  if (operand.column.kind !== 'id' || last?.relation.kind !== 'belongs_to') return operand;
  return { ...operand, steps: operand.steps.slice(0, -1), column: { kind: 'belongs_to', relation: last.relation } };
}
