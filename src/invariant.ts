/**
 * If it throws, this program has a defect: `what` states what must hold. For bad input and the
 * outside world, throw a specific error.
 */
export function invariant(holds: boolean, what: string): asserts holds {
  if (!holds) throw new Error(`invariant broken: ${what}`);
}
