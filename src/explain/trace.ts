/**
 * The answer to a question: the verdict, the value of every clause of every rule, and the statement
 * that the records room runs, with its plan.
 */
import { decide, type Permit } from '../policy/access.ts';
import { type Explanation, explain, type Situation } from '../policy/analyse/explanation.ts';
import { policyNeedsOf } from '../policy/analyse/policy-needs.ts';
import type { Action, Policy, PolicyRequest, Row, RuleParts, Verdict } from '../policy/types.ts';
import { type ErrorDetail, Problem } from '../problem.ts';
import { accessIn } from '../records/access-context.ts';
import { unreadableReferences } from '../records/constraint-errors.ts';
import { recordKeyOf } from '../records/record-key.ts';
import { heldBy, loadRelated } from '../records/relations/related.ts';
import { scopeOf, tenantOf } from '../records/scope.ts';
import { checksOn } from '../records/write/checks.ts';
import { plannedInsertion, plannedStatement, plannedUpdate } from '../records/write/planned-write.ts';
import { plannedCreate } from '../records/write/row-in-process.ts';
import type { Writing } from '../records/write/written-row.ts';
import type { Check, MemberAction } from '../schema/model/model.ts';
import { type Sql, sql } from '../sql.ts';
import { accessOf, policiesFor } from './asked-access.ts';
import { type FilterTrace, filterTraceOf } from './filter-trace.ts';
import { type PartnerTrace, partnerTraces } from './partner-traces.ts';
import type { Question } from './question.ts';
import { requestedIn } from './requested-records.ts';

export interface Trace {
  readonly question: Question;
  /** Never `depends` with a record or a write. */
  readonly verdict: Verdict;
  /** The status of the HTTP response; undefined if it depends on the record. */
  readonly status: number | undefined;
  /** The verdict by the request alone. */
  readonly residual: Verdict;
  /** The index of the rule that allows. */
  readonly decidedBy: number | undefined;
  readonly rules: readonly RuleTrace[];
  readonly members: readonly MemberTrace[];
  /** Empty unless the action is a create or an update. */
  readonly checks: readonly CheckTrace[];
  /** Given for a complete write that the rules of its record allow. */
  readonly partners: readonly PartnerTrace[];
  readonly statement: StatementTrace | undefined;
  /** The values that a create without data lacks, such as `/data/title: required`. */
  readonly missing: readonly string[];
  /** Given for the filter of a list. */
  readonly filter: FilterTrace | undefined;
}

export interface RuleTrace extends Pick<Policy, 'checked'> {
  readonly text: string;
  readonly parts: RuleParts;
  readonly residual: Verdict;
  /** Undefined without a record. */
  readonly allowed: boolean | undefined;
  /** An update with a rule without `@next` has two: for the stored record and for the result. */
  readonly explanations: readonly Explanation[];
}

export interface MemberTrace {
  readonly name: string;
  readonly text: string;
  /** The verdict on the record or the write if there is one; otherwise by the request alone. */
  readonly verdict: Verdict;
  /** The write sets it. */
  readonly isSet: boolean;
  /** Its rules, asked about the record or the write; empty without one. */
  readonly rules: readonly RuleTrace[];
}

export interface CheckTrace {
  readonly check: Check;
  /** The rule that holds where the record fails it. */
  readonly violation: RuleTrace;
}

interface StatementTrace {
  readonly sql: string;
  readonly params: readonly unknown[];
  readonly plan: readonly string[];
}

/** The records that the rules are asked about. */
interface TracedRecord {
  readonly record: Row;
  /** The result of an update. */
  readonly written?: Row;
  readonly isCreated?: boolean;
  readonly writing?: Writing;
  readonly missing?: readonly string[];
}

/** Throws `validation_failed` if the data of the write is invalid. */
export async function traceOf(question: Question): Promise<Trace> {
  const subject = await subjectOf(question);
  const permit = permitOf(question);
  return {
    ...(await decisionOf(question, permit, subject)),
    statement: await statementTrace(question, permit, subject),
    filter: await filterTraceOf(question),
  };
}

const permitOf = (question: Question): Permit =>
  decide({ rules: policiesFor(question, question.collection.name, question.action), request: question.request });

/** The rules allow the record that the data make. Required values that the data lack decide nothing. */
export async function isCreateAllowed(question: Question): Promise<boolean> {
  const { verdict } = await decisionOf(question, permitOf(question), await subjectOf(question));
  return verdict === 'allow';
}

async function decisionOf(
  question: Question,
  permit: Permit,
  subject: TracedRecord | undefined,
): Promise<Omit<Trace, 'statement' | 'filter'>> {
  const { collection, action, request } = question;
  const access = policiesFor(question, collection.name, action);
  const rules = await Promise.all(access.map((rule) => ruleTrace(question, rule, subject)));
  const allowing = rules.findIndex(({ allowed, residual }) => allowed ?? residual === 'allow');
  const decidedBy = allowing < 0 ? undefined : allowing;
  const members = await memberTraces(question, subject);
  const isRefused = members.some(({ isSet, verdict }) => isSet && verdict === 'deny');
  const isOwnAllowed = decidedBy !== undefined && !isRefused && request.auth !== null;
  const checks = await checkTraces(question, subject);
  const isFailed = checks.some(({ violation }) => violation.allowed === true);
  const moves = isOwnAllowed && !isFailed && question.isComplete ? subject?.writing : undefined;
  const partners = moves === undefined ? [] : await partnerTraces(question, moves);
  const isDone = isOwnAllowed && !isFailed && partners.every(({ isAllowed }) => isAllowed);
  const stuck = partners.some(({ isAllowed }) => !isAllowed) ? DENIES_A_PARTNER : undefined;
  const refused = isOwnAllowed && isFailed ? FAILS_A_CHECK : stuck;
  const decided: Verdict = isDone ? 'allow' : 'deny';
  // No route lets a caller without an account in.
  const verdict = request.auth === null ? 'deny' : subject === undefined ? permit.verdict : decided;
  return {
    question,
    verdict,
    status: await statusFor(question, { subject, verdict, residual: permit.verdict, refused }),
    residual: permit.verdict,
    decidedBy,
    rules,
    members,
    checks,
    partners,
    missing: subject?.missing ?? [],
  };
}

const SUCCEEDS: Readonly<Record<Action, number>> = { list: 200, read: 200, create: 201, update: 200, delete: 204 };

interface DecidedRecord {
  readonly subject: TracedRecord | undefined;
  readonly verdict: Verdict;
  readonly residual: Verdict;
  /** The status where the rules of the record allow the write, and a check, or the rules of a partner, do not. */
  readonly refused: number | undefined;
}

async function statusFor(question: Question, decided: DecidedRecord): Promise<number | undefined> {
  if (decided.residual === 'deny') return refusedBy(question.request);
  return decided.refused ?? statusOf(question, decided.subject, decided.verdict);
}
const FAILS_A_CHECK = 422;
/** The caller may update the record, so the denial reveals nothing of it. */
const DENIES_A_PARTNER = 403;

/** The status if the request alone decides. */
const refusedBy = ({ auth }: PolicyRequest): number => (auth === null ? 401 : 403);

/** A list leaves out denied records. A refusal does not reveal a record that the caller cannot read. */
async function statusOf(
  question: Question,
  subject: TracedRecord | undefined,
  verdict: Verdict,
): Promise<number | undefined> {
  const { action, collection, request } = question;
  if (request.auth === null) return refusedBy(request);
  if (verdict === 'allow' || action === 'list') return SUCCEEDS[action];
  if (verdict === 'depends' || subject === undefined) return undefined;
  if (action === 'create') return 403;
  const stored: TracedRecord = { record: subject.record };
  const readRules = action === 'read' ? [] : policiesFor(question, collection.name, 'read');
  const reads = await Promise.all(readRules.map((rule) => ruleTrace(question, rule, stored)));
  return reads.some(({ allowed }) => allowed === true) ? 403 : 404;
}

// ---------------------------------------------------------------- the records

/** An update without data changes nothing; a create with a record creates its copy now. */
async function subjectOf(question: Question): Promise<TracedRecord | undefined> {
  const { store, q, collection, action, record, data } = question;
  const access = accessOf(question);
  if (action === 'create' && data !== undefined) {
    const { written, writing, errors } = plannedCreate({ access, store }, data);
    if (question.isComplete) rejectErrors(errors);
    const missing = errors.map(({ pointer, detail }) => `${pointer}: ${detail}`);
    return { record: written, isCreated: true, writing, missing };
  }
  if (record === undefined) return undefined;
  const tenant = tenantOf(collection, record);
  if (action === 'create')
    return {
      record: { ...record, ...(await heldBy({ store, q, tenant }, collection.name, record)) },
      isCreated: true,
    };
  if (action !== 'update') return { record };
  const limitMs = store.schema.limits.queryTime * 1000;
  const planned = await store.db.transaction(
    async (tx) => {
      const reading = { store, q: tx, access, tenant };
      const { errors, references, ...made } = await plannedUpdate(reading, record, data ?? {});
      // Rules about hidden records would tell of them.
      const unreadable = question.isLimited === true ? await unreadableReferences(reading, references) : [];
      return { ...made, errors: [...errors, ...unreadable] };
    },
    { limitMs },
  );
  rejectErrors(planned.errors);
  return { record, written: planned.written, writing: planned.writing };
}

function rejectErrors(errors: readonly ErrorDetail[]): void {
  if (errors.length > 0) throw new Problem('validation_failed', 'the data is not valid', { errors });
}

// ---------------------------------------------------------------- rules

async function ruleTrace(question: Question, rule: Policy, subject: TracedRecord | undefined): Promise<RuleTrace> {
  const { verdict: residual } = rule.specialise(question.request);
  const { text, parts, checked } = rule;
  if (subject === undefined) return { checked, text, parts, residual, allowed: undefined, explanations: [] };
  const explanations = await explanationsOf(question, rule, subject);
  return { checked, text, parts, residual, allowed: explanations.every(({ allowed }) => allowed), explanations };
}

async function explanationsOf(
  question: Question,
  rule: Policy,
  subject: TracedRecord,
): Promise<readonly Explanation[]> {
  const { request } = question;
  const { record, written, isCreated = false } = subject;
  const asked = async (situation: Pick<Situation, 'record' | 'next' | 'isWritten'>) =>
    explain({ policy: rule, request, ...situation, related: await relatedOf(question, rule, subject) });
  if (written === undefined) return [await asked({ record, isWritten: isCreated })];
  if (rule.namesNext) return [await asked({ record, next: written })];
  return [await asked({ record }), await asked({ record: written, isWritten: true })];
}

function relatedOf({ store, q, collection, request }: Question, rule: Policy, subject: TracedRecord) {
  const { record, written, isCreated = false } = subject;
  const needs = policyNeedsOf(rule.checked);
  const requested = requestedIn(needs, request);
  const rows = isCreated
    ? { written: record, without: String(record.id) }
    : { stored: record, ...(written && { written }) };
  const tenant = tenantOf(collection, record);
  return loadRelated({ store, q, tenant }, { collection: collection.name, ...rows, needs: needs.record, requested });
}

/** The fields and belongs_to with own rules for the action. */
async function memberTraces(question: Question, subject: TracedRecord | undefined): Promise<readonly MemberTrace[]> {
  const { collection, action, request, data } = question;
  if (action === 'delete') return [];
  const own: MemberAction = action === 'list' ? 'read' : action;
  const traces = [...collection.memberAccess].flatMap(([name, { [own]: rules }]) =>
    rules === undefined ? [] : [{ name, rules, text: rules.map(({ text }) => text).join(' or ') }],
  );
  return Promise.all(
    traces.map(async ({ name, rules, text }): Promise<MemberTrace> => {
      const isSet = data !== undefined && Object.hasOwn(data, name);
      const { verdict } = decide({ rules, request });
      // A rule for writing is about the value that the write sets.
      if (subject === undefined || (own !== 'read' && !isSet)) return { name, text, isSet, verdict, rules: [] };
      const all = await Promise.all(rules.map((rule) => ruleTrace(question, rule, subject)));
      const isAllowed = all.some(({ allowed }) => allowed === true);
      return { name, text, isSet, verdict: isAllowed ? 'allow' : 'deny', rules: all };
    }),
  );
}

async function checkTraces(question: Question, subject: TracedRecord | undefined): Promise<readonly CheckTrace[]> {
  const { collection, action } = question;
  if (action !== 'create' && action !== 'update') return [];
  return Promise.all(
    collection.checks.flatMap((check) =>
      check.violated[action].map(async (violated) => ({
        check,
        violation: await ruleTrace(question, violated, subject),
      })),
    ),
  );
}

// ---------------------------------------------------------------- the statement

/**
 * The statements of a create and an update decide and write. The other actions have a SELECT with the
 * condition on the listed records, or on the record.
 */
async function statementTrace(
  question: Question,
  permit: Permit,
  subject: TracedRecord | undefined,
): Promise<StatementTrace | undefined> {
  if (permit.verdict !== 'depends') return undefined;
  const statement = tracedStatement(question, permit, subject);
  const plan = await question.q.rows(sql`EXPLAIN ${statement}`);
  return { sql: laidOut(statement.text), params: statement.values, plan: plan.map(([line]) => String(line)) };
}

function tracedStatement(question: Question, permit: Permit, subject: TracedRecord | undefined): Sql {
  const { store, collection, action, data = {} } = question;
  if (action !== 'create' && action !== 'update') return selectOf(question, permit);
  const tenant = subject && tenantOf(collection, subject.record);
  const access = accessIn(accessOf(question), tenant);
  const members = Object.keys(data).flatMap((name) => access.member(collection.name, name, action) ?? []);
  const permits = [tenant === undefined ? permit : permit.within(tenant), ...members];
  const violations = checksOn(access, collection, action).map(({ violation }) => violation);
  const reading = { store, access, tenant };
  // Without data, the create has its defaults only.
  if (action === 'create')
    return plannedInsertion(reading, {
      writing: subject?.writing ?? plannedCreate(reading, data).writing,
      permits,
      violations,
    });
  const writing = subject?.writing ?? { values: [], members: [], partners: [] };
  return plannedStatement(reading, {
    id: String(subject?.record.id ?? recordKeyOf(collection).unused),
    writing,
    permits,
    violations,
  });
}

function selectOf({ store, collection, action, record }: Question, permit: Permit): Sql {
  const rows = scopeOf({ store }).from(collection.name, 't');
  const key = recordKeyOf(collection);
  const id = key.of('t');
  if (action === 'list') return sql`SELECT ${id} FROM ${rows.where(permit.where('t'))} ORDER BY ${id} LIMIT 21`;
  return sql`SELECT ${id} FROM ${rows.where(permit.where('t'), key.is('t', String(record?.id ?? key.unused)))}`;
}

/** Removes the indentation of the source. */
function laidOut(text: string): string {
  const lines = text.split('\n').filter((line) => line.trim() !== '');
  const least = Math.min(...lines.map((line) => line.length - line.trimStart().length));
  return lines.map((line) => line.slice(least).trimEnd()).join('\n');
}
