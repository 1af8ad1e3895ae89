/** Query parameters without which a rule is never true. */
import { CAN_BE_TRUE, canBe, outcomes } from '../check/outcomes.ts';
import type { Checked, CheckedOperand, RequestOperand } from '../types.ts';
import { operandsOf, partsOf, scopesOf } from '../visit.ts';

/**
 * The keys that `checked` reads and that no request gives, where the rule is never true without
 * them; else none. `isGiven`: whether a request may give the key.
 */
export function missedKeys(checked: Checked, isGiven: (key: string) => boolean): readonly string[] {
  const isMissed = (operand: CheckedOperand): boolean => {
    const key = queryKeyOf(operand);
    return key !== undefined && !isGiven(key);
  };
  if (!canBe(outcomes(checked), CAN_BE_TRUE) || canBe(outcomes(checked, { isAbsent: isMissed }), CAN_BE_TRUE))
    return [];
  return [...new Set(queryKeysIn(checked).filter((key) => !isGiven(key)))];
}

/** The query parameter that the operand is, or that holds the id of the record that it is reached from. */
function queryKeyOf(operand: CheckedOperand): string | undefined {
  if (operand.kind === 'request') return operand.source === 'query' ? operand.name : undefined;
  const scope = operand.kind === 'column' ? operand.scope : operand.kind === 'count' ? operand.path.scope : undefined;
  return scope?.kind === 'request' ? queryKeyOf(scope.operand) : undefined;
}

function queryKeysIn(checked: Checked): readonly string[] {
  const walked = scopesOf(checked).flatMap((scope): RequestOperand[] =>
    scope.kind === 'request' ? [scope.operand] : [],
  );
  const keys = [...operandsOf(checked), ...walked].map(queryKeyOf).filter((key) => key !== undefined);
  return [...keys, ...partsOf(checked).flatMap(queryKeysIn)];
}
