/** Warnings about a whole rule: the caller, the request or the stored record has no say in it. */
import type { Span } from '../../../../grammar/syntax.ts';
import { canonical } from '../../analyse/canonical.ts';
import type { CheckContext, Checked, CheckedOperand, RequestOperand } from '../../types.ts';
import {
  allOperandsOf,
  everyBranch,
  isOfCaller,
  memberName,
  operandsOf,
  ownMemberOf,
  partsOf,
  readsNext,
  scopesOf,
} from '../../visit.ts';
import { isAlwaysKnown } from '../outcomes.ts';
import type { Warning } from './warning-list.ts';

export function callerWarnings(checked: Checked, context: CheckContext): readonly Warning[] {
  // The body of a named condition is a part of rules, which are reviewed.
  if (context.parameters !== undefined || !isOpenToStrangers(context)) return [];
  const whole = { start: 0, end: context.text.length };
  const place = ({ span }: Checked): Span => (span.source === undefined ? span : whole);
  const isChange = !context.isOfMember && (context.action === 'update' || context.action === 'delete');
  const replacing = isChange ? nextAlone(checked, context) : undefined;
  if (replacing !== undefined) return [{ ...replacing, span: place(checked) }];
  const deciding = decidedByQuery(checked).map((branch): Warning => {
    const key = queryKeysOf(branch)[0]!;
    const message =
      `the caller decides this by the query key \`${key}\`, for every record; ` +
      'require something of `@request.auth` or `@record` as well';
    return { code: 'query_decides', message, span: place(branch) };
  });
  const isNamed = context.roles !== undefined && context.roles.length > 0;
  const unnamed = isChange && !isNamed ? withoutCaller(checked) : [];
  return [
    ...deciding,
    ...unnamed
      .filter((branch) => !deciding.some(({ span }) => span === branch.span))
      .map((branch): Warning => {
        const message =
          `this names no caller: everyone who is signed in may ${context.action} each record that meets it; ` +
          'add a condition on `@request.auth`, or `roles`';
        return { code: 'no_caller', message, span: place(branch) };
      }),
  ];
}

/** Strangers may have one of the rule's roles, or it has none. */
const isOpenToStrangers = ({ roles = [], publicRoles }: CheckContext): boolean =>
  roles.length === 0 || roles.some((role) => publicRoles?.has(role) === true);

// ---------------------------------------------------------------- @next alone

function nextAlone(checked: Checked, { publicRoles, text }: CheckContext): Omit<Warning, 'span'> | undefined {
  if (!readsNext(checked)) return undefined;
  if (storedDependence(canonical(checked), publicRoles ?? new Set()) !== 'next') return undefined;
  const { span } = checked;
  const isSingle = checked.kind === 'compare' && span.source === undefined;
  const fix = isSingle && { span, replacement: text.slice(span.start, span.end).replaceAll('@next.', '@record.') };
  const message =
    'this tests the resulting record (`@next`) and nothing of the stored one: anyone may take any record over; ' +
    'add a condition on `@record`, or write `@record` instead, which holds before and after';
  return { code: 'next_alone', message, ...(fix && { fix }) };
}

/** `bound`: by the stored record, or to certain callers. `next`: by the resulting record only. `free`: by neither. */
type StoredDependence = 'bound' | 'next' | 'free';

/** The dependence of the loosest branch of a canonical condition. */
function storedDependence(node: Checked, publicRoles: ReadonlySet<string>): StoredDependence {
  const ofItems = (items: readonly Checked[]) => items.map((item) => storedDependence(item, publicRoles));
  switch (node.kind) {
    case 'or':
      return firstFound(['next', 'free', 'bound'], ofItems(node.items));
    case 'and':
      return keepsTested(node.items) ? 'bound' : firstFound(['bound', 'next', 'free'], ofItems(node.items));
    case 'const':
      return node.value ? 'free' : 'bound';
    case 'changed':
      return 'free';
    default:
      if (scopesIn(node).includes('record') || asksForRole(node, publicRoles)) return 'bound';
      return scopesIn(node).includes('next') ? 'next' : 'free';
  }
}

/** The first of `order` that is among the others. */
const firstFound = <T>(order: readonly [T, ...T[]], found: readonly T[]): T =>
  order.find((each) => found.includes(each)) ?? order[0];

function asksForRole(node: Checked, publicRoles: ReadonlySet<string>): boolean {
  if (node.kind !== 'compare') return false;
  const roles = [node.left, node.right].find((side) => isOfCaller(side) && side.name === 'roles');
  const literal = [node.left, node.right].find(({ kind }) => kind === 'literal');
  if (roles === undefined) return false;
  return !(literal?.kind === 'literal' && publicRoles.has(String(literal.value)));
}

/** A member that the resulting record is tested for stays as it was: the test is of the stored record, too. */
function keepsTested(items: readonly Checked[]): boolean {
  const kept = items.flatMap((item) => (item.kind === 'changed' && item.unchanged ? item.members : []));
  const names = new Set(kept.map(memberName));
  return names.size > 0 && items.flatMap(nextMembersIn).some((name) => names.has(name));
}

function nextMembersIn(node: Checked): readonly string[] {
  const own = operandsOf(node).flatMap((operand) => {
    return operand.kind === 'column' && operand.scope.kind === 'next' ? (ownMemberOf(operand) ?? []) : [];
  });
  const walked =
    node.kind === 'quantified' && node.path.scope.kind === 'next'
      ? [node.path.steps[0]?.relation.name ?? node.path.relation.name]
      : [];
  return [...own, ...walked, ...partsOf(node).flatMap(nextMembersIn)];
}

const scopesIn = (node: Checked): readonly string[] => [
  ...scopesOf(node).map(({ kind }) => kind),
  ...partsOf(node).flatMap(scopesIn),
];

// ---------------------------------------------------------------- the query string

/** The branches that the query string alone decides. */
function decidedByQuery(node: Checked): readonly Checked[] {
  if (node.kind === 'or') return node.items.flatMap(decidedByQuery);
  return sourceOf(node) === 'query' ? [node] : [];
}

type DecidedBy = 'query' | 'nothing' | 'others';

function sourceOf(node: Checked): DecidedBy {
  switch (node.kind) {
    case 'const':
      return node.value ? 'nothing' : 'others';
    case 'not':
      return sourceOf(node.item);
    case 'and':
      return firstFound(['others', 'query', 'nothing'], node.items.map(sourceOf));
    case 'or':
      return firstFound(['query', 'others', 'nothing'], node.items.map(sourceOf));
    case 'is null':
      if (node.negated && isAlwaysKnown(node.operand)) return 'nothing';
      return ofOperands([node.operand]);
    case 'compare':
      return ofOperands([node.left, node.right]);
    case 'quantified':
    case 'changed':
      return 'others';
  }
}

function ofOperands(operands: readonly CheckedOperand[]): DecidedBy {
  const isChosen = operands.every((each) => isQuery(each) || each.kind === 'literal' || each.kind === 'now');
  return isChosen && operands.some(isQuery) ? 'query' : 'others';
}

const isQuery = (operand: CheckedOperand): operand is RequestOperand =>
  operand.kind === 'request' && operand.source === 'query';

const queryKeysOf = (node: Checked): readonly string[] =>
  allOperandsOf(node)
    .filter(isQuery)
    .map(({ name }) => name);

// ---------------------------------------------------------------- the caller

/** The branches that name no caller. */
function withoutCaller(node: Checked): readonly Checked[] {
  if (node.kind === 'const' || everyBranch(node, mentionsCaller)) return [];
  if (node.kind === 'or' && node.items.some(mentionsCaller)) return node.items.flatMap(withoutCaller);
  const mixed = node.kind === 'and' ? node.items.find(mentionsCaller) : undefined;
  return mixed === undefined ? [node] : withoutCaller(mixed);
}

const mentionsCaller = (node: Checked): boolean => allOperandsOf(node).some(isOfCaller);
