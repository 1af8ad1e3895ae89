/** Compares the checks of writes: what they newly let pass, and no longer, of the writes that the rules allow. */
import {
  findWorld,
  type Rules,
  type RulesComparison,
  type RulesPlace,
  relationOf,
  type SolveOptions,
  type SolverQuestion,
} from '../policy/analyse/solve/solve.ts';

/** Everything that decides about a write. */
export interface WriteRules {
  readonly allowedBy: Rules;
  /** The rules that hold for the records that fail a check. */
  readonly violations: Rules;
}

/** A write that the second rules allow, whose record fails a check of the first alone. */
export const newlyPassing = (from: WriteRules, to: WriteRules): SolverQuestion => ({
  allowedBy: from.violations,
  alsoAllowedBy: [to.allowedBy],
  deniedBy: to.violations,
});

export function compareChecks(
  place: RulesPlace,
  [old, changed]: readonly [WriteRules, WriteRules],
  options: SolveOptions,
): RulesComparison {
  const wider = findWorld(place, newlyPassing(old, changed), options);
  const narrower = findWorld(place, newlyPassing(changed, old), options);
  return {
    verdict: relationOf(wider.kind, narrower.kind),
    ...(wider.kind === 'world' && { wider: wider.world }),
    ...(narrower.kind === 'world' && { narrower: narrower.world }),
  };
}
