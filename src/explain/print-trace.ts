/** A trace as lines of text: the verdict, then its reasons, then the statement. */
import type { Clause } from '../policy/analyse/explanation.ts';
import type { Action, PolicyRequest } from '../policy/types.ts';
import { isBeyondLimit } from './asked-access.ts';
import type { CheckTrace, MemberTrace, RuleTrace, Trace } from './trace.ts';

export function printTrace(trace: Trace): readonly string[] {
  const { question, residual, rules, members, checks, statement, missing, filter } = trace;
  const { action, collection, request, record } = question;
  const of = record === undefined ? '' : ` ${record.id}`;
  const values = statement?.params.map((value, i) => `  $${i + 1} = ${JSON.stringify(value)}`) ?? [];
  return [
    `${verdictText(trace)} (${statusText(trace)})`,
    `${action} of ${collection.name}${of}, as ${callerText(request)}`,
    `by the request alone: ${BY_REQUEST[residual]}`,
    ...missing.map((each) => `not in the data: ${each}`),
    ...rules.flatMap(ruleLines),
    ...memberTraceLines(members, action),
    ...checks.flatMap(checkLines),
    ...(filter === undefined ? [] : ['', `filter: ${filter.text}`, ...clauseLines(filter.clause, 1)]),
    ...(statement === undefined
      ? []
      : ['', 'SQL:', ...indented(statement.sql.split('\n')), ...values, '', 'plan:', ...indented(statement.plan)]),
  ];
}

const indented = (lines: readonly string[]): readonly string[] => lines.map((line) => `  ${line}`);

const BY_REQUEST = {
  allow: 'allowed for every record',
  deny: 'denied for every record',
  depends: 'it depends on the record',
};

function verdictText({ verdict, rules, members, checks, partners, decidedBy, question, filter }: Trace): string {
  if (question.request.auth === null) return 'denied: no caller is signed in; name one with --as EMAIL';
  if (isBeyondLimit(question)) return 'denied: the limit of the key leaves the action out';
  if (rules.length === 0) return 'denied: the action has no rule';
  const isAboutRecord = question.record !== undefined || question.data !== undefined;
  if (!isAboutRecord) return BY_REQUEST[verdict];
  if (verdict === 'allow') {
    const isLeftOut = filter !== undefined && filter.clause.value !== true;
    return `allowed by rule ${decidedBy! + 1}${isLeftOut ? ', but left out by the filter' : ''}`;
  }
  if (decidedBy === undefined) return rules.length === 1 ? 'denied by the only rule' : 'denied: no rule allows it';
  const refused = members.filter((member) => member.isSet && member.verdict === 'deny');
  const stuck = partners.filter(({ isAllowed }) => !isAllowed);
  const failed = checks.filter(({ violation }) => violation.allowed === true);
  if (refused.length === 0 && failed.length > 0)
    return `rejected: rule ${decidedBy + 1} allows the record, but it fails ${failed.map(({ check }) => check.name).join(', ')}`;
  const names = [...refused, ...stuck].map(({ name }) => name).join(', ');
  const why = stuck.length > 0 ? ': the rules of the record there deny the move' : '';
  return `denied: rule ${decidedBy + 1} allows the record, but not to set ${names}${why}`;
}

/** The statuses where it depends on the record. */
const POSSIBLE: Readonly<Record<Action, string>> = {
  list: '200 with the permitted records',
  read: '200, else 404',
  create: '201, else 403',
  update: '200, else 403, or 404 if the caller may not read the record',
  delete: '204, else 403, or 404 if the caller may not read the record',
};

/** The status of the HTTP response, with its reason where the verdict does not give it. */
function statusText({ status, verdict, residual, question, missing, filter }: Trace): string {
  const { action, record, data } = question;
  if (status === undefined) return POSSIBLE[action];
  if (missing.length > 0 && status !== 401) return `${status} with valid data, 422 for these`;
  if (action === 'list' && status === 200) {
    if (record === undefined) return verdict === 'depends' ? POSSIBLE.list : '200';
    const isFound = verdict === 'allow' && (filter === undefined || filter.clause.value === true);
    return isFound ? '200 with the record' : '200 without the record';
  }
  if (status === 404) return '404: the caller may not read the record, so it looks as if there were none';
  const isAboutRecord = record !== undefined || data !== undefined;
  return status === 403 && !isAboutRecord && residual === 'deny' ? '403 for every record' : String(status);
}

function callerText({ auth, kind }: PolicyRequest): string {
  if (auth === null) return 'nobody';
  const named = kind === 'key' ? `the key ${auth.id}` : undefined;
  return `${named ?? auth.email ?? auth.id ?? 'a caller without an account'} (roles: ${(auth.roles as string[]).join(', ') || 'none'})`;
}

const LEFT = { depends: 'a condition on the record', allow: 'true', deny: 'false or unknown' };

function ruleLines({ text, residual, explanations }: RuleTrace, index: number): readonly string[] {
  const lines = ['', `rule ${index + 1}: ${text}`, `  what the request leaves: ${LEFT[residual]}`];
  const [first, second] = explanations;
  if (first === undefined) return lines;
  if (second === undefined) return [...lines, `  ${first.sentence}`, ...clauseLines(first.clause, 2)];
  return [
    ...lines,
    `  before the write: ${first.sentence}`,
    ...clauseLines(first.clause, 2),
    `  after the write: ${second.sentence}`,
    ...clauseLines(second.clause, 2),
  ];
}

function checkLines({ check, violation }: CheckTrace): readonly string[] {
  const { allowed: fails, explanations } = violation;
  const word = fails === undefined ? 'it depends on the record' : fails ? `fails (${check.message})` : 'passes';
  const clauses = explanations.flatMap(({ clause }) => clause.parts.flatMap((part) => clauseLines(part, 1)));
  return ['', `check ${check.name}: ${word}`, ...clauses];
}

function clauseLines({ text, value, absent, element, parts }: Clause, depth: number): readonly string[] {
  const word = value === undefined ? 'unknown' : String(value);
  const of = element === undefined ? '' : `[${element}] `;
  const why = absent === undefined ? '' : `  (${absent})`;
  return [
    `${'  '.repeat(depth)}${word.padEnd(7)} ${of}${text.replaceAll(/\s+/g, ' ')}${why}`,
    ...parts.flatMap((part) => clauseLines(part, depth + 1)),
  ];
}

const SHOWN = { allow: 'shown', deny: 'left out', depends: 'it depends on the record' };
const MAY_SET = { allow: 'may be set', deny: 'may not be set (403)', depends: 'it depends on the record' };

function memberTraceLines(members: readonly MemberTrace[], action: string): readonly string[] {
  if (members.length === 0) return [];
  const words = action === 'list' || action === 'read' ? SHOWN : MAY_SET;
  const lines = members.flatMap(({ name, verdict, text, rules }) => [
    `  ${name}: ${words[verdict]}  (${text || 'no rule, so nobody'})`,
    ...rules.flatMap(({ explanations }) => explanations.map(({ sentence }) => `    ${sentence}`)),
  ]);
  return ['', 'fields with rules of their own:', ...lines];
}
