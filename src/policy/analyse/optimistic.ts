/** Rules that read the body (`@request.data`): what of them is decided before there is one. */
import { compileChecked } from '../compile.ts';
import type { Catalog, Checked, CheckedOperand, Policy } from '../types.ts';

const known = new WeakMap<Policy, Policy>();

/**
 * The rule as the best of all bodies would meet it: where this one denies, no body makes it true. The rule itself, where it does not read the body.
 * INVARIANT: true wherever the rule can be true. It only refuses: what it leaves open, the rule itself decides with the body.
 */
export function optimistic(policy: Policy, catalog: Catalog): Policy {
  const answer = known.get(policy) ?? (speaksOfData(policy.checked) ? assumeBody(policy, catalog) : policy);
  known.set(policy, answer);
  return answer;
}

const assumeBody = ({ text, checked }: Policy, catalog: Catalog): Policy =>
  compileChecked({ text, checked: towards(checked, true), catalog });

const isData = (operand: CheckedOperand): boolean => operand.kind === 'request' && operand.source === 'data';

/** Every test of the body counts as `wanted`; under a `not`, and in `none`, the opposite is wanted. */
function towards(checked: Checked, wanted: boolean): Checked {
  switch (checked.kind) {
    case 'and':
    case 'or':
      return { ...checked, items: checked.items.map((item) => towards(item, wanted)) };
    case 'not':
      return { ...checked, item: towards(checked.item, !wanted) };
    case 'quantified':
      return { ...checked, condition: towards(checked.condition, checked.quantifier === 'none' ? !wanted : wanted) };
    case 'const':
    case 'compare':
    case 'is null':
      return speaksOfData(checked) ? { kind: 'const', value: wanted, span: checked.span } : checked;
  }
}

function speaksOfData(checked: Checked): boolean {
  switch (checked.kind) {
    case 'const':
      return false;
    case 'and':
    case 'or':
      return checked.items.some(speaksOfData);
    case 'not':
      return speaksOfData(checked.item);
    case 'compare':
      return isData(checked.left) || isData(checked.right);
    case 'is null':
      return isData(checked.operand);
    case 'quantified':
      return speaksOfData(checked.condition);
  }
}
