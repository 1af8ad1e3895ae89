/** Whether a rule reads the body (`@request.data`), so that it is decided only once there is one. */
import type { Checked, CheckedOperand, Policy } from '../policy/types.ts';

const known = new WeakMap<Policy, boolean>();

export function readsData(policy: Policy): boolean {
  const answer = known.get(policy) ?? speaksOfData(policy.checked);
  known.set(policy, answer);
  return answer;
}

const isData = (operand: CheckedOperand): boolean => operand.kind === 'request' && operand.source === 'data';

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
