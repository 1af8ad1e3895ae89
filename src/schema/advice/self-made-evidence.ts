/**
 * Warns of records that callers may make for themselves and that a rule takes as evidence: members who
 * may write their own membership take all that the rules give to members.
 */
import { canonical } from '../../policy/analyse/canonical.ts';
import { isMember, OPERATORS } from '../../policy/operators.ts';
import type {
  Checked,
  CheckedCompare,
  CheckedOperand,
  CheckedQuantified,
  ColumnOperand,
  Policy,
} from '../../policy/types.ts';
import { allOperandsOf, everyBranch, isOfCaller, memberName, ownMemberOf, partsOf } from '../../policy/visit.ts';
import { type DocumentPath, type Finding, pathText } from '../file/issue.ts';
import type { Collection, Schema } from '../model/model.ts';
import { placedPolicies } from './privilege-escalation.ts';
import { type AdviceContext, rulePlace } from './read-access.ts';
import { isPublic, opensTo } from './strangers.ts';

type CollectionsByName = Schema['collections'];

export function warnOfSelfMadeEvidence(collections: CollectionsByName, context: AdviceContext): void {
  const reported = new Set<string>();
  for (const collection of collections.values()) {
    for (const { policy, path } of placedPolicies(collection, context)) {
      for (const evidence of evidenceOf(policy.checked)) {
        const maker = makerOf(evidence, collections, context);
        if (maker === undefined || reported.has(pathText(maker.path))) continue;
        reported.add(pathText(maker.path));
        context.source.report(findingOf(evidence, maker, path));
      }
    }
  }
}

/** A record of `collection` that names the caller, which a rule trusts. */
interface Evidence {
  readonly collection: string;
  /** The members that say what the record is evidence of, such as `team` and `role`. */
  readonly members: ReadonlySet<string>;
}

interface Maker {
  readonly action: 'create' | 'update';
  readonly path: DocumentPath;
}

function findingOf({ collection, members }: Evidence, { action, path }: Maker, trustedBy: DocumentPath): Finding {
  const names = [...members].map((name) => `\`${name}\``).join(' or ');
  const verb = action === 'create' ? 'make' : 'change';
  const message =
    `callers may ${verb} \`${collection}\` for themselves, and the rule \`${pathText(trustedBy.slice(1))}\` trusts them: ` +
    `this gives anyone what it gives; let the rule test ${names}, or require a role`;
  return { code: 'self_made', severity: 'warning', message, path };
}

// ---------------------------------------------------------------- what a rule trusts

/** The evidence of each \`any\` that the rule requires, or could require. */
function evidenceOf(checked: Checked): readonly Evidence[] {
  if (checked.kind === 'not') return [];
  const inner = partsOf(checked).flatMap(evidenceOf);
  if (checked.kind !== 'quantified') return inner;
  if (checked.quantifier !== 'any') return [];
  const evidence = checked.path.relation.kind === 'has_many' ? evidenceIn(checked) : undefined;
  return evidence === undefined ? inner : [evidence, ...inner];
}

function evidenceIn({ path, variable, condition }: CheckedQuantified): Evidence | undefined {
  const { relation, scope } = path;
  if (relation.kind !== 'has_many') return undefined;
  const { collection, via } = relation;
  const compares = comparesIn(condition);
  const isOwn = (operand: CheckedOperand): operand is ColumnOperand =>
    operand.kind === 'column' && operand.scope.kind === 'variable' && operand.scope.name === variable;
  const beside = (test: (other: CheckedOperand) => boolean): readonly string[] =>
    compares.flatMap(({ left, right }) => {
      const [own, other] = isOwn(left) ? [left, right] : [right, left];
      return isOwn(own) && test(other) ? (ownMemberOf(own) ?? []) : [];
    });
  const tested = beside(({ kind }) => kind === 'literal');
  // The caller's own records name the caller; what they name beside that is their content.
  if (scope.kind === 'request') {
    const joining = beside((other) => other.kind === 'column' && !isOwn(other));
    return scope.operand.source === 'auth' ? { collection, members: new Set([...joining, ...tested]) } : undefined;
  }
  const isTied = beside(isOfCaller).length > 0;
  return isTied ? { collection, members: new Set([via, ...tested]) } : undefined;
}

function comparesIn(condition: Checked): readonly CheckedCompare[] {
  if (condition.kind === 'compare') return isMember(OPERATORS[condition.op]) ? [condition] : [];
  return condition.kind === 'and' || condition.kind === 'or' ? condition.items.flatMap(comparesIn) : [];
}

// ---------------------------------------------------------------- who makes it

/** The rule by which callers make evidence for themselves. */
function makerOf(evidence: Evidence, collections: CollectionsByName, context: AdviceContext): Maker | undefined {
  const collection = collections.get(evidence.collection);
  if (collection === undefined || evidence.members.size === 0) return undefined;
  if (!isReachable(evidence, collection, collections, context)) return undefined;
  const isOpen = ({ checked }: Policy): boolean =>
    opensTo(checked, context.publicRoles) &&
    !everyBranch(canonical(checked), (part) => looksAt(part, evidence.members));
  for (const action of ['create', 'update'] as const) {
    // A rule of a member's own keeps strangers from choosing it.
    const rulesOfMembers = [...evidence.members].map((name) => collection.memberAccess.get(name)?.[action]);
    if (rulesOfMembers.some((rules) => rules !== undefined && !rules.some(isOpen))) continue;
    const index = collection.access[action].findIndex(isOpen);
    if (index < 0) continue;
    const place = rulePlace({ collection: collection.name, action, index }, context);
    return { action, path: context.source.conditionPath(place) };
  }
  return undefined;
}

/** A reference to a record that the caller cannot read is rejected. */
function isReachable(
  { members }: Evidence,
  { relations }: Collection,
  collections: CollectionsByName,
  { publicRoles }: AdviceContext,
): boolean {
  return [...members].every((name) => {
    const relation = relations.get(name);
    if (relation?.kind !== 'belongs_to') return true;
    const target = collections.get(relation.collection);
    return !relation.readOnly && target !== undefined && isPublic(target, publicRoles);
  });
}

/** Tests one of the members, or other records. */
function looksAt(part: Checked, members: ReadonlySet<string>): boolean {
  if (part.kind === 'changed') return part.unchanged && part.members.some((member) => members.has(memberName(member)));
  if (part.kind === 'quantified') {
    const { scope, relation, steps } = part.path;
    if (relation.kind === 'elements' && steps.length === 0 && scope.kind !== 'variable')
      return members.has(relation.name);
    if (scope.kind !== 'request') return true;
  }
  return allOperandsOf(part).some(
    (operand) => operand.kind === 'column' && (operand.steps.length > 0 || members.has(ownMemberOf(operand) ?? '')),
  );
}
