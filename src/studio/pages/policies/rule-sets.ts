/** The rule sets of a collection: one for each action, and two for each field and reference. The sets with rules of their own come first. */
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
  /** The member has no rules of its own: those of the record decide alone. */
  readonly isInherited?: true;
}

export function ruleSetsOf({ rules = {}, fields, relations }: ServedCollection): readonly RuleSet[] {
  const actions = RULE_ACTIONS.map((action) => ({ name: action, action, rules: rules[action] ?? [] }));
  const members = [...fields, ...relations.filter(({ kind }) => kind === 'belongs_to')].flatMap(
    ({ name, rules: own = {}, read_only: isReadOnly }) => [
      memberSet(`read ${name}`, { action: 'read', member: name }, own.read),
      ...(isReadOnly ? [] : [memberSet(`write ${name}`, { action: 'update', member: name }, own.update)]),
    ],
  );
  const named = members.filter(({ member, isInherited }) => !isInherited || !SERVER_FIELDS.has(member!));
  return [...actions, ...named.toSorted((a, b) => Number(a.isInherited ?? false) - Number(b.isInherited ?? false))];
}

/** The file does not declare these fields, so it has no place for their rules. */
const SERVER_FIELDS: ReadonlySet<string> = new Set(['created_at', 'updated_at']);

const memberSet = (
  name: string,
  place: Pick<RuleSet, 'action' | 'member'>,
  rules: readonly ServedRule[] | undefined,
): RuleSet => ({ name, ...place, rules: rules ?? [], ...(rules === undefined && { isInherited: true }) });
