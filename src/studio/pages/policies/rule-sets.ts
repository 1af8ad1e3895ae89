/** The rule sets of a collection: one for each action, and for each field or reference with rules of its own. */
import type { ServedCollection, ServedRule } from '../../data/schema-answer.ts';

export const RULE_ACTIONS = ['list', 'read', 'create', 'update', 'delete'] as const;
export type RuleAction = (typeof RULE_ACTIONS)[number];

export interface RuleSet {
  /** In the address: `read`, `read salary`, `write salary`. */
  readonly name: string;
  readonly action: RuleAction;
  /** Given for rules of a member. */
  readonly member?: string;
  readonly rules: readonly ServedRule[];
}

export function ruleSetsOf({ rules = {}, fields, relations }: ServedCollection): readonly RuleSet[] {
  const actions = RULE_ACTIONS.map((action) => ({ name: action, action, rules: rules[action] ?? [] }));
  const members = [...fields, ...relations].flatMap(({ name, rules: own }) => [
    ...(own?.read === undefined
      ? []
      : [{ name: `read ${name}`, action: 'read' as const, member: name, rules: own.read }]),
    ...(own?.update === undefined
      ? []
      : [{ name: `write ${name}`, action: 'update' as const, member: name, rules: own.update }]),
  ]);
  return [...actions, ...members];
}
