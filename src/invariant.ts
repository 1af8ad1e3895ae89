/** A defect of this program if it throws: `what` names what cannot be false. For input and the outside world, throw an error of their own. */
export function invariant(holds: boolean, what: string): asserts holds {
  if (!holds) throw new Error(`invariant broken: ${what}`);
}
