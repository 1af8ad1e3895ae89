/** Compares the checks of writes: what they newly let pass, and no longer, of the writes that the rules allow. */
import {
  findWorld,
  type Rules,
  type RulesComparison,
  type RulesPlace,
  relationOf,
  type SolveOptions,
} from '../policy/analyse/solve/solve.ts';

/** Everything that decides about a write. */
export interface WriteRules {
  readonly allowedBy: Rules;
  /** The rules that hold for the records that fail a check. */
  readonly violations: Rules;
}

export function compareChecks(
  place: RulesPlace,
  [old, changed]: readonly [WriteRules, WriteRules],
  options: SolveOptions,
): RulesComparison {
  const passes = (before: WriteRules, after: WriteRules) =>
    findWorld(
      place,
      { allowedBy: before.violations, alsoAllowedBy: [after.allowedBy], deniedBy: after.violations },
      options,
    );
  const [wider, narrower] = [passes(old, changed), passes(changed, old)];
  return {
    verdict: relationOf(wider.kind, narrower.kind),
    ...(wider.kind === 'world' && { wider: wider.world }),
    ...(narrower.kind === 'world' && { narrower: narrower.world }),
  };
}
