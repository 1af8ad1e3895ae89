/**
 * Warns of hidden unique values that strangers may set: a conflict reveals that a value is taken, and a dry
 * run leaves no trace.
 */
import type { Policy } from '../../policy/types.ts';
import type { DocumentPath } from '../file/issue.ts';
import { type Collection, isUniqueMember } from '../model/model.ts';
import { type AdviceContext, memberRulePlace } from './read-access.ts';
import { opensTo } from './strangers.ts';

export function warnOfGuessableValues(collections: ReadonlyMap<string, Collection>, context: AdviceContext): void {
  for (const collection of collections.values()) {
    for (const [member, { read }] of collection.memberAccess) {
      if (read === undefined || !isUnique(member, collection)) continue;
      if (read.some(({ checked }) => opensTo(checked, context.publicRoles, true))) continue;
      const action = (['create', 'update'] as const).find((each) =>
        isSetByStrangers({ collection, member }, each, context),
      );
      if (action === undefined) continue;
      const message =
        `\`${member}\` is unique, and callers who may not read it may set it (${action}): a conflict tells them that a value ` +
        'is taken, and a dry run lets them guess unseen; give it a rule for `write` that requires what its rule for `read` does';
      const path = readRulePath(collection, member, context);
      context.source.report({ code: 'guessable', severity: 'warning', message, path });
    }
  }
}

function readRulePath({ name }: Collection, member: string, { source, shapes }: AdviceContext): DocumentPath {
  const path = source.conditionPath(memberRulePlace({ collection: name, member, key: 'read', index: 0 }, { shapes }));
  return source.has(path) ? path : path.slice(0, -1);
}

function isUnique(member: string, { fields, relations }: Collection): boolean {
  const field = fields.get(member);
  if (field !== undefined) return isUniqueMember(field);
  const relation = relations.get(member);
  return relation?.kind === 'belongs_to' && isUniqueMember(relation);
}

interface HiddenMember {
  readonly collection: Collection;
  readonly member: string;
}

function isSetByStrangers(
  { collection: { access, memberAccess }, member }: HiddenMember,
  action: 'create' | 'update',
  { publicRoles }: AdviceContext,
): boolean {
  const isOpen = (rules: readonly Policy[]): boolean => rules.some(({ checked }) => opensTo(checked, publicRoles));
  const own = memberAccess.get(member)?.[action];
  return isOpen(access[action]) && (own === undefined || isOpen(own));
}
