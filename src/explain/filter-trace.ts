/** The value of a list's filter for one record, which sees what the caller may read and nothing else. */
import { type Clause, clauseOf } from '../policy/analyse/explanation.ts';
import { policyNeedsOf } from '../policy/analyse/policy-needs.ts';
import type { PolicyRequest } from '../policy/types.ts';
import { visibilityOf } from '../records/access-context.ts';
import { boundedRelated, TooManyRows } from '../records/relations/bounded-related.ts';
import { loadRelated } from '../records/relations/related.ts';
import { tenantOf } from '../records/scope.ts';
import { Refusal } from '../refusal.ts';
import { accessOf } from './asked-access.ts';
import type { Question } from './question.ts';
import { requestedIn } from './requested-records.ts';
import { visibleRowsOf } from './visible-rows.ts';

export interface FilterTrace {
  readonly text: string;
  readonly clause: Clause;
}

/** Undefined without a filter, or without a record. Throws `query_too_expensive`. */
export async function filterTraceOf(question: Question): Promise<FilterTrace | undefined> {
  const { store, q, collection, record, filter: asked } = question;
  if (asked === undefined || record === undefined) return undefined;
  const { text, filter } = asked;
  const { checked } = filter;
  const request: PolicyRequest = { ...question.request, query: {}, params: filter.params };
  const needs = policyNeedsOf(checked);
  const tenant = tenantOf(collection, record);
  const source = { store, q, tenant };
  const related = await loadRelated(source, {
    collection: collection.name,
    stored: record,
    needs: needs.record,
    requested: requestedIn(needs, request),
  });
  const seen = { ...source, visibility: visibilityOf({ ...accessOf(question), tenant }) };
  const visible = await visibleRowsOf(seen, { collection: collection.name, record, needs, request, related });
  const policy = { checked, text, source: text };
  const read = boundedRelated(visible.related, MOST_EXPLAINED);
  try {
    return { text, clause: clauseOf({ policy, request, record: visible.record, related: read }) };
  } catch (error) {
    throw error instanceof TooManyRows ? new Refusal('query_too_expensive', TOO_EXPENSIVE) : error;
  }
}

/** Related rows of which the answer has a clause. */
const MOST_EXPLAINED = 10_000;
const TOO_EXPENSIVE = `the filter reads more than ${MOST_EXPLAINED} related records; quantifiers within others read them again each time`;
