/** The rules of a set with their edits: to show, and for questions to the service. */
import { schema } from '../../app/session-state.ts';
import type { DraftedRule } from '../../data/matrix-question.ts';
import type { RulePlace, ServedSchema } from '../../data/schema-answer.ts';
import { type SchemaTextTools, usePolicyTools, useSchemaText } from '../../editor/load-editor.ts';
import { draftedCondition, draftedOutline, draftedText, editWhole } from './policy-draft.ts';
import type { RuleSet } from './rule-sets.ts';

export interface EditedRule extends DraftedRule {
  /** The condition without its edit. */
  readonly before?: string;
  /** Absent for a condition that is not a text of the file. */
  readonly place?: RulePlace;
}
export interface DraftedSet {
  /** Undefined: the text of the file cannot be read, or not yet. */
  readonly shown: readonly EditedRule[] | undefined;
  /** Undefined: the rules are the served ones. */
  readonly rules: readonly DraftedRule[] | undefined;
  /** An edit has an error, so that no question about it has an answer. */
  readonly isBroken: boolean;
  /** Undefined: the file is not shown to this page. */
  readonly change?: RuleChanges;
}
export interface RuleChanges {
  readonly add: (rule: DraftedRule) => void;
  readonly remove: (index: number) => void;
  readonly setRoles: (index: number, roles: readonly string[]) => void;
}

export function useDraftedSet(collection: string, set: RuleSet): DraftedSet {
  const tools = usePolicyTools();
  const text = useSchemaText();
  const served = schema.value!;
  const shown = shownRules(served, collection, set, text);
  const change = draftedChanges(served, collection, set, text);
  const asked = shown?.map(({ roles, when }): DraftedRule => ({ roles, ...(when !== undefined && { when }) }));
  if (asked === undefined) return { shown, rules: undefined, isBroken: true, ...change };
  const kept = set.rules.map(({ roles, when }): DraftedRule => ({ roles, ...(when !== undefined && { when }) }));
  if (JSON.stringify(asked) === JSON.stringify(kept)) return { shown, rules: undefined, isBroken: false, ...change };
  const { catalog } = served;
  const hasError = (when: string): boolean =>
    tools !== undefined &&
    catalog !== undefined &&
    tools.issuesOf(when, { catalog, collection, action: set.action }).some(({ severity }) => severity === 'error');
  return { shown, rules: asked, isBroken: asked.some(({ when }) => when !== undefined && hasError(when)), ...change };
}

/** The served rules while the file has the same ones, else those of its text. */
function shownRules(
  served: ServedSchema,
  collection: string,
  set: RuleSet,
  text: SchemaTextTools | undefined,
): readonly EditedRule[] | undefined {
  const outline = draftedOutline(served);
  const rules =
    outline === (served.text ?? '') ? set.rules : text?.readRules(outline, text.rulePathIn(outline, collection, set));
  return rules?.map(({ roles, when, place }) => ({
    roles,
    ...(when !== undefined && { when: draftedCondition(served, place, when), before: when }),
    ...(place && { place }),
  }));
}

function draftedChanges(
  served: ServedSchema,
  collection: string,
  set: RuleSet,
  text: SchemaTextTools | undefined,
): Pick<DraftedSet, 'change'> {
  const drafted = draftedText(served);
  if (drafted === undefined || text === undefined) return {};
  const path = text.rulePathIn(drafted, collection, set);
  const keep = (changed: string | undefined): void => {
    if (changed !== undefined) editWhole(served, changed);
  };
  return {
    change: {
      add: (rule) => keep(text.withRule(drafted, path, rule)),
      remove: (index) => keep(text.withoutRule(drafted, path, index)),
      setRoles: (index, roles) => keep(text.withRoles(drafted, path, { index, roles })),
    },
  };
}
