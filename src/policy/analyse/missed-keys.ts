/** Query parameters without which a rule is never true. */
import { CAN_BE_TRUE, canBe, outcomes } from '../check/outcomes.ts';
import type { Checked, CheckedOperand } from '../types.ts';
import { operandsOf, partsOf } from '../visit.ts';

/**
 * The keys that `checked` reads and that no request gives, where the rule is never true without
 * them; else none. `isGiven`: whether a request may give the key.
 */
export function missedKeys(checked: Checked, isGiven: (key: string) => boolean): readonly string[] {
  const isMissed = (operand: CheckedOperand): boolean =>
    operand.kind === 'request' && operand.source === 'query' && !isGiven(operand.name);
  if (!canBe(outcomes(checked), CAN_BE_TRUE) || canBe(outcomes(checked, isMissed), CAN_BE_TRUE)) return [];
  return [...new Set(queryKeysIn(checked).filter((key) => !isGiven(key)))];
}

const queryKeysIn = (checked: Checked): readonly string[] => [
  ...operandsOf(checked).flatMap((side) => (side.kind === 'request' && side.source === 'query' ? [side.name] : [])),
  ...partsOf(checked).flatMap(queryKeysIn),
];
