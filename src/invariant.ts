/**
 * Throws if this program has a defect; `what` states the condition that must hold. For bad input and
 * the outside world, throw a specific error.
 */
export function invariant(holds: boolean, what: string): asserts holds {
  if (!holds) throw new Error(`invariant broken: ${what}`);
}

/** Returns the value, which the program knows to be there; `what` names it. */
export function present<T>(value: T | null | undefined, what: string): T {
  invariant(value !== null && value !== undefined, `${what} is there`);
  return value;
}
