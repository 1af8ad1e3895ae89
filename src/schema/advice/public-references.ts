/**
 * Warns of public references: relations by which any registered user may take a place that only one record
 * can have, or prevent the deletion of a record. A public caller has no other roles than those of
 * registration.
 */
import type { Action, CatalogBelongsTo, CheckedOperand, Policy } from '../../policy/types.ts';
import { allOperandsOf, ownMemberOf } from '../../policy/visit.ts';
import type { DocumentPath } from '../file/issue.ts';
import type { BelongsTo, Collection, Schema } from '../model/model.ts';
import { type AdviceContext, rulePlace } from './read-access.ts';
import { isPublic, opensTo } from './strangers.ts';

export function warnOfPublicReferences(collections: Schema['collections'], context: AdviceContext): void {
  for (const collection of collections.values()) {
    for (const relation of collection.relations.values()) {
      if (relation.kind !== 'belongs_to' || relation.readOnly) continue;
      const target = collections.get(relation.collection);
      if (target === undefined || !isPublic(target, context.publicRoles)) continue;
      const reference = { collection, relation, target };
      if (relation.unique) warnOfPlace(reference, context);
      else if (blocksDelete(reference, context)) warnOfBlock(reference, context);
    }
  }
}

/** A belongs_to, with the collections at both ends. */
interface PublicReference {
  readonly collection: Collection;
  readonly relation: BelongsTo;
  readonly target: Collection;
}

function warnOfPlace(reference: PublicReference, context: AdviceContext): void {
  const { relation, target } = reference;
  for (const { path, condition } of unguardedRules(reference, context)) {
    const message =
      `this rule does not mention \`${relation.name}\`, which is unique: anyone it allows can take the only place at any ` +
      `record of \`${target.name}\` that they can read; add a condition on it, ${condition}`;
    context.source.report({ code: 'open_place', severity: 'warning', message, path });
  }
}

/** `on_delete: restrict` that is written out is meant. */
function blocksDelete({ collection, relation, target }: PublicReference, { source }: AdviceContext): boolean {
  const written = source.has(['collections', collection.name, 'relations', relation.name, 'on_delete']);
  return relation.required && relation.onDelete === 'restrict' && !written && target.access.delete.length > 0;
}

function warnOfBlock(reference: PublicReference, context: AdviceContext): void {
  const { collection, relation, target } = reference;
  const [rule] = unguardedRules(reference, context);
  if (rule === undefined) return;
  const message =
    `anyone who can read a record of \`${target.name}\` can point \`${relation.name}\` at it, which keeps it from being ` +
    `deleted; set \`on_delete\` (\`cascade\`, or \`restrict\` if that is meant), or let the rule for ${rule.action} ` +
    `mention it, ${rule.condition}`;
  const path = ['collections', collection.name, 'relations', relation.name];
  context.source.report({ code: 'open_restrict', severity: 'warning', message, path, at: 'key' });
}

interface UnguardedRule {
  readonly action: Action;
  readonly path: DocumentPath;
  /** The condition to add to it. */
  readonly condition: string;
}

/** The rules that let any registered user choose the target and do not look at it. */
function unguardedRules(
  { collection, relation, target }: PublicReference,
  { source, shapes, publicRoles: roles }: AdviceContext,
): readonly UnguardedRule[] {
  return (['create', 'update'] as const).flatMap((action) =>
    collection.access[action].flatMap((rule, i) => {
      if (!opensTo(rule.checked, roles) || mentions(rule, relation)) return [];
      if (isGuarded(collection.memberAccess.get(relation.name)?.[action], roles, relation)) return [];
      const path = source.conditionPath(rulePlace({ collection: collection.name, action, index: i }, { shapes }));
      return [{ action, path, condition: ownerRuleExample(rule, relation, target) }];
    }),
  );
}

/** The reference has rules of its own, and a registered user meets none that does not look at it. */
function isGuarded(rules: readonly Policy[] | undefined, roles: ReadonlySet<string>, relation: BelongsTo): boolean {
  return rules !== undefined && !rules.some((rule) => opensTo(rule.checked, roles) && !mentions(rule, relation));
}

function ownerRuleExample({ namesNext }: Policy, { name }: BelongsTo, { relations }: Collection): string {
  const owner = [...relations.values()].find(({ kind, collection }) => kind === 'belongs_to' && collection === 'users');
  const path = `${namesNext ? '@next' : '@record'}.${name}`;
  return owner === undefined
    ? `such as one on a field of \`${path}\``
    : `such as \`${path}.${owner.name} = @request.auth.id\``;
}

/** A rule that names `@next` is evaluated once, so only its tests of `@next` constrain the result. */
const mentions = ({ checked, namesNext }: Policy, relation: CatalogBelongsTo): boolean =>
  allOperandsOf(checked).some((operand) => speaksOf(operand, relation, namesNext));

function speaksOf(operand: CheckedOperand, { name }: CatalogBelongsTo, namesNext: boolean): boolean {
  if (operand.kind === 'request') return operand.source === 'data' && operand.name === name;
  if (operand.kind !== 'column' || operand.scope.kind === 'variable') return false;
  if (namesNext && operand.scope.kind !== 'next') return false;
  return ownMemberOf(operand) === name;
}
