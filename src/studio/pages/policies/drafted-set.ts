/** The rules of a set with their edits, for questions to the service. */
import { schema } from '../../app/session-state.ts';
import { usePolicyTools } from '../../editor/load-editor.ts';
import type { DraftedRule } from './matrix-question.ts';
import { draftedCondition } from './policy-draft.ts';
import type { RuleSet } from './rule-sets.ts';

export interface DraftedSet {
  /** Undefined: no rule is edited. */
  readonly rules: readonly DraftedRule[] | undefined;
  /** An edit has an error, so that no question about it has an answer. */
  readonly isBroken: boolean;
}

export function useDraftedSet(collection: string, { rules, action }: RuleSet): DraftedSet {
  const tools = usePolicyTools();
  const served = schema.value!;
  const all = rules.map(({ roles, when, place }): DraftedRule => {
    return { roles, ...(when !== undefined && { when: draftedCondition(served, place, when) }) };
  });
  const edited = all.filter(({ when }, i) => when !== rules[i]!.when);
  if (edited.length === 0) return { rules: undefined, isBroken: false };
  const { catalog } = served;
  const isBroken =
    tools !== undefined &&
    catalog !== undefined &&
    edited.some(({ when = '' }) =>
      tools.issuesOf(when, { catalog, collection, action }).some(({ severity }) => severity === 'error'),
    );
  return { rules: all, isBroken };
}
