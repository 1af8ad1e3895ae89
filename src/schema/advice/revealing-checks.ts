/**
 * Warns of checks that read values with rules of their own: a caller who may write the record, and not read the
 * value, learns about it by what the check rejects.
 */
import type { Checked, ColumnOperand } from '../../policy/types.ts';
import { allOperandsOf, memberName } from '../../policy/visit.ts';
import type { Collection } from '../model/model.ts';
import { pathOfCheck } from '../rules/checks.ts';
import type { AdviceContext } from './read-access.ts';
import { opensTo } from './strangers.ts';

type CollectionMap = ReadonlyMap<string, Collection>;

export function warnOfRevealingChecks(collections: CollectionMap, context: AdviceContext): void {
  for (const { name: collection, checks } of collections.values()) {
    for (const check of checks) {
      const hidden = check.violated.update.flatMap(({ checked }) => hiddenMembers(checked, collections, context));
      if (hidden.length === 0) continue;
      const message =
        `the check reads \`${hidden.join('`, `')}\`, which not every caller may read: ` +
        'who may write the record learns about the value by what is rejected; give the rules for writing what those for reading require';
      const path = pathOfCheck(collection, check);
      context.source.report({ code: 'check_reveals', severity: 'warning', message, path });
    }
  }
}

function hiddenMembers(
  checked: Checked,
  collections: CollectionMap,
  { publicRoles }: AdviceContext,
): readonly string[] {
  const read = allOperandsOf(checked).flatMap((operand) => (operand.kind === 'column' ? membersReadBy(operand) : []));
  const hidden = read.filter(({ collection, member }) => {
    const rules = collections.get(collection)?.memberAccess.get(member)?.read;
    return rules !== undefined && !rules.some((rule) => opensTo(rule.checked, publicRoles, true));
  });
  return [...new Set(hidden.map(({ collection, member }) => `${collection}.${member}`))];
}

interface MemberRead {
  readonly collection: string;
  readonly member: string;
}

/** The members that a path reads on its way. */
function membersReadBy({ collection, steps, column }: ColumnOperand): readonly MemberRead[] {
  const walked = steps.map(({ from, relation }) => ({ collection: from, member: relation.name }));
  const last = steps.at(-1)?.relation.collection ?? collection;
  return column.kind === 'id' ? walked : [...walked, { collection: last, member: memberName(column) }];
}
