/** The pairs of rules that a comparison of two schemas is about. */
import { compilePolicy } from '../../policy/compile.ts';
import { type Policy, RULED_ACTIONS, type RuledAction } from '../../policy/types.ts';
import { rulesOfAction } from '../../schema/model/kept/soft-delete.ts';
import type { Collection, Schema } from '../../schema/model/model.ts';
import type { MergedCatalog } from './merged-catalog.ts';

/** The rule that holds for the records that fail a check. */
export interface NamedViolation {
  readonly check: string;
  readonly violation: Policy;
}
/** The rules of one schema. */
export interface PairSide {
  readonly rules: readonly Policy[];
  /** The checks of a create or an update. */
  readonly violations: readonly NamedViolation[];
}
export interface RulePair {
  readonly collection: string;
  /** An action, `read salary`, `write salary`, or `create checks`. */
  readonly name: string;
  readonly action: RuledAction;
  /** Rules are compared with the checks that both have to pass; checks, for the writes that the rules allow. */
  readonly isOfChecks: boolean;
  /** Undefined: the collection, or the member, does not exist. */
  readonly old: PairSide | undefined;
  readonly changed: PairSide | undefined;
}

const WRITES = ['create', 'update'] as const;

export function rulePairsOf(old: Schema, changed: Schema, merged: MergedCatalog): readonly RulePair[] {
  const before = new Map([...old.collections.values()].map((each) => [merged.nameOf(each.name), each]));
  const names = [...new Set([...changed.collections.keys(), ...before.keys()])];
  return names.flatMap((name) => {
    const both = [before.get(name), changed.collections.get(name)] as const;
    const keepsDeleted = both.some((each) => each?.softDelete !== undefined);
    const actions = RULED_ACTIONS.filter((action) => action !== 'restore' || keepsDeleted).map((action): RulePair => {
      const [a, b] = both.map((each) => each && pairSide(each, action));
      return { collection: name, name: action, action, isOfChecks: false, old: a, changed: b };
    });
    return [...actions, ...checkPairs(name, both), ...memberPairs(name, both, merged)];
  });
}

const pairSide = (collection: Collection, action: RuledAction): PairSide => ({
  rules: rulesOfAction(collection, action),
  violations:
    action === 'create' || action === 'update'
      ? collection.checks.flatMap(({ name, violated }) =>
          violated[action].map((violation) => ({ check: name, violation })),
        )
      : [],
});

type BothCollections = readonly [Collection | undefined, Collection | undefined];

function checkPairs(collection: string, [old, changed]: BothCollections): readonly RulePair[] {
  if (old === undefined || changed === undefined) return [];
  return WRITES.flatMap((action) => {
    const [a, b] = [pairSide(old, action), pairSide(changed, action)];
    if (a.violations.length + b.violations.length === 0) return [];
    return [{ collection, name: `${action} checks`, action, isOfChecks: true, old: a, changed: b }];
  });
}

const isDeclaredIn = ({ fields, relations }: Collection, name: string): boolean =>
  fields.has(name) || relations.has(name);

function memberPairs(collection: string, [old, changed]: BothCollections, merged: MergedCatalog): readonly RulePair[] {
  if (old === undefined || changed === undefined) return [];
  const before = new Map([...old.memberAccess].map(([name, access]) => [merged.memberOf(old.name, name), access]));
  const declared = new Set(
    [...old.fields.keys(), ...old.relations.keys()].map((name) => merged.memberOf(old.name, name)),
  );
  const members = [...new Set([...before.keys(), ...changed.memberAccess.keys()])];
  return members.flatMap((member) =>
    (['read', 'update'] as const).flatMap((action) => {
      const rules = [before.get(member)?.[action], changed.memberAccess.get(member)?.[action]] as const;
      if (rules[0] === undefined && rules[1] === undefined) return [];
      const isDeclared = [declared.has(member), isDeclaredIn(changed, member)];
      const name = `${action === 'read' ? 'read' : 'write'} ${member}`;
      // Without rules of its own, the record's rules decide about the member.
      const open = [compilePolicy('true', { catalog: merged.catalog, collection, action })];
      const [a, b] = rules.map((each, i) => (isDeclared[i] ? { rules: each ?? open, violations: [] } : undefined));
      return [{ collection, name, action, isOfChecks: false, old: a, changed: b }];
    }),
  );
}
