/** Gives equivalent conditions one spelling, so that an analysis compares their meaning. */
import { memoizedBy } from '../../memoized.ts';
import { equalityOf, OPERATORS } from '../operators.ts';
import type {
  Checked,
  CheckedCompare,
  CheckedOperand,
  CheckedQuantified,
  ColumnOperand,
  CountOperand,
} from '../types.ts';

/**
 * Equivalent to `checked` for every record and request, in three-valued logic. The
 * variables are named by their depth, negations are pushed to the leaves, columns are on the
 * left, the id after a belongs_to is the belongs_to, and a bool is compared by `=` only.
 */
export const canonical = memoizedBy((checked: Checked): Checked => spelling(checked, true, new Map()));

/** Equal for parts of canonical conditions that mean the same. A part is printed once, however deep it lies. */
export const canonicalKey = memoizedBy((node: object): string => {
  const { kind, op, items, left, right } = node as Partial<CheckedCompare> & { readonly items?: readonly Checked[] };
  if (items !== undefined) return `${kind}(${items.map(canonicalKey)})`;
  if (left !== undefined) return `${canonicalKey(left)} ${op} ${canonicalKey(right!)}`;
  // A path has one `nullable`, which follows from the rest of it.
  return JSON.stringify(node, (key, value: unknown) => (key === 'span' || key === 'nullable' ? undefined : value));
});

/** The order of the sides in a comparison that can be mirrored. */
const SIDES: readonly CheckedOperand['kind'][] = ['column', 'count', 'request', 'now', 'literal'];

/** The new names of the variables around a condition. */
type NewNames = ReadonlyMap<string, string>;

/** `polarity` false: of its negation. */
function spelling(checked: Checked, polarity: boolean, names: NewNames): Checked {
  switch (checked.kind) {
    case 'and':
    case 'or': {
      const kind = (checked.kind === 'and') === polarity ? 'and' : 'or';
      return { ...checked, kind, items: checked.items.map((item) => spelling(item, polarity, names)) };
    }
    case 'not':
      return spelling(checked.item, !polarity, names);
    case 'const':
      return { ...checked, value: checked.value === polarity };
    case 'is null':
      return { ...checked, negated: checked.negated === polarity, operand: ofOperand(checked.operand, names) };
    case 'changed':
      return { ...checked, unchanged: checked.unchanged === polarity };
    case 'compare':
      return ofCompare(checked, polarity, names);
    case 'quantified': {
      const spelt: Checked = { ...checked, ...ofElements(checked, names) };
      return polarity ? spelt : { kind: 'not', item: spelt, span: checked.span };
    }
  }
}

function ofCompare(checked: CheckedCompare, polarity: boolean, names: NewNames): Checked {
  const { complement } = OPERATORS[checked.op];
  if (!polarity && complement === undefined)
    return { kind: 'not', item: ofCompare(checked, true, names), span: checked.span };
  const op = polarity ? checked.op : complement!;
  const [left, right] = [ofOperand(checked.left, names), ofOperand(checked.right, names)];
  const { mirror } = OPERATORS[op];
  const isTurned = mirror !== undefined && comesFirst(right, left);
  return ofBool(isTurned ? { ...checked, op: mirror, left: right, right: left } : { ...checked, op, left, right });
}

function ofOperand(operand: CheckedOperand, names: NewNames): CheckedOperand {
  if (operand.kind === 'column') return withoutId(scoped(operand, names));
  return operand.kind === 'count' ? { ...operand, ...ofElements(operand, names) } : operand;
}

function ofElements({ path, variable: name, condition }: CheckedQuantified | CountOperand, names: NewNames) {
  const variable = `$${names.size}`;
  const inner = new Map(names).set(name, variable);
  return { path: scoped(path, names), variable, condition: spelling(condition, true, inner) };
}

function scoped<T extends Pick<ColumnOperand, 'scope'>>(holder: T, names: NewNames): T {
  const { scope } = holder;
  if (scope.kind !== 'variable') return holder;
  // A variable that is bound outside of the condition keeps its name, which none of the new ones has.
  return { ...holder, scope: { ...scope, name: names.get(scope.name) ?? scope.name } };
}

/** `pinned != true` is `pinned = false`. */
function ofBool(compare: CheckedCompare): CheckedCompare {
  const { op, right } = compare;
  if (right.kind !== 'literal' || typeof right.value !== 'boolean' || op !== equalityOf(false)) return compare;
  return { ...compare, op: equalityOf(true), right: { ...right, value: !right.value } };
}

function comesFirst(a: CheckedOperand, b: CheckedOperand): boolean {
  const [x, y] = [SIDES.indexOf(a.kind), SIDES.indexOf(b.kind)];
  return x === y ? canonicalKey(a) < canonicalKey(b) : x < y;
}

/** `@record.team.id` is `@record.team`, if a foreign key leads to a record. */
function withoutId(operand: ColumnOperand): ColumnOperand {
  const last = operand.steps.at(-1);
  if (operand.column.kind !== 'id' || last?.relation.kind !== 'belongs_to' || last.relation.mayBeLost) return operand;
  return { ...operand, steps: operand.steps.slice(0, -1), column: { kind: 'belongs_to', relation: last.relation } };
}
