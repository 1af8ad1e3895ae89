/** Finds quantifiers over lists of values within others: in memory, they compare each element with each. */
import type { Checked, ToManyPath } from '../types.ts';
import { isOfList, operandsOf, partsOf } from '../visit.ts';

/** @param isWithin a quantifier over a list is around it */
export function nestsLists(checked: Checked, isWithin = false): boolean {
  const isNested = (path: ToManyPath, condition: Checked): boolean => {
    const isList = isOfList(path);
    return (isList && isWithin) || nestsLists(condition, isWithin || isList);
  };
  if (checked.kind === 'quantified') return isNested(checked.path, checked.condition);
  const counts = operandsOf(checked).filter((operand) => operand.kind === 'count');
  return (
    counts.some(({ path, condition }) => isNested(path, condition)) ||
    (checked.kind !== 'compare' && partsOf(checked).some((part) => nestsLists(part, isWithin)))
  );
}

export const NESTED_LISTS =
  'a quantifier over a list is within another one, which a decision in memory does not take; use `contains`, or one of them';
