/** The value of a list's filter for one record, which sees what the caller may read and nothing else. */
import { type Clause, clauseOf } from '../policy/analyse/explanation.ts';
import { policyNeedsOf } from '../policy/analyse/policy-needs.ts';
import type { PolicyRequest, Row } from '../policy/types.ts';
import { TooMuchWork, WorkBudget } from '../policy/work-budget.ts';
import { visibilityOf } from '../records/access-context.ts';
import { loadRelated } from '../records/relations/related.ts';
import { tenantOf } from '../records/scope.ts';
import { Refusal } from '../refusal.ts';
import { accessOf } from './asked-access.ts';
import type { AskedFilterText, Question } from './question.ts';
import { requestedIn } from './requested-records.ts';
import { visibleRowsOf } from './visible-rows.ts';

export interface FilterTrace {
  readonly text: string;
  readonly clause: Clause;
}

/** Undefined without a filter, or without a record. Throws `query_too_expensive`. */
export async function filterTraceOf(question: Question): Promise<FilterTrace | undefined> {
  const { record, filter } = question;
  if (filter === undefined || record === undefined) return undefined;
  try {
    return { text: filter.text, clause: await filterClause(question, record, filter) };
  } catch (error) {
    throw error instanceof TooMuchWork ? new Refusal('query_too_expensive', TOO_EXPENSIVE) : error;
  }
}

const TOO_EXPENSIVE =
  'the filter reads too much to be explained; ask about a record with fewer related ones, or a part of it';

/** Throws `TooMuchWork`. */
async function filterClause(question: Question, record: Row, { text, filter }: AskedFilterText): Promise<Clause> {
  const { store, q, collection } = question;
  const { checked } = filter;
  const request: PolicyRequest = { ...question.request, query: {}, params: filter.params };
  const needs = policyNeedsOf(checked);
  const tenant = tenantOf(collection, record);
  const source = { store, q, tenant };
  const work = new WorkBudget();
  const related = await loadRelated(source, {
    collection: collection.name,
    stored: record,
    needs: needs.record,
    requested: requestedIn(needs, request),
    isOfFilter: true,
  });
  const seen = { ...source, visibility: visibilityOf({ ...accessOf(question), tenant }) };
  const found = { collection: collection.name, record, needs, request, related, work };
  const visible = await visibleRowsOf(seen, found);
  const policy = { checked, text, source: text };
  return clauseOf({ policy, request, record: visible.record, related: visible.related, work });
}
