/** The question about one decision, and its answer. */
import { transport } from './api-service.ts';
import { askedCaller } from './asked-caller.ts';

export interface ExplainedLeaf {
  readonly text: string;
  readonly value: 'true' | 'false' | 'unknown' | null;
  readonly left: unknown;
  readonly right: unknown;
  readonly absent: string | null;
  readonly element: string | null;
}
export interface ExplainedRule {
  readonly roles: readonly string[];
  readonly when: string | null;
  readonly residual: 'allow' | 'deny' | 'depends';
  readonly value: 'true' | 'false' | 'unknown' | null;
  readonly reasons: readonly string[];
  readonly leaves: readonly ExplainedLeaf[];
}
interface ExplainedMember {
  readonly name: string;
  readonly when: string;
  readonly allowed: boolean | null;
  readonly reasons: readonly string[];
}
export interface WhyExplanation {
  readonly allowed: boolean | null;
  readonly status: number | null;
  readonly decided_by: number | null;
  readonly rules: readonly ExplainedRule[];
  readonly members: readonly ExplainedMember[];
  readonly sql: string | null;
  readonly params: readonly unknown[];
  readonly plan: readonly string[];
}

export const WHY_ACTIONS = ['list', 'read', 'create', 'update', 'delete'] as const;

export interface WhyQuestion {
  readonly collection: string;
  readonly action: string;
  /** An id; empty: about no record. */
  readonly record: string;
  /** Empty: the asker; `guest`; `role:NAME`: a made-up user; else an email or an id. */
  readonly as: string;
}

/** @param more the data of a create, or rules that are not saved */
export async function askWhy(
  { collection, action, record, as }: WhyQuestion,
  more: object = {},
): Promise<WhyExplanation> {
  const body = {
    collection,
    action,
    ...(record === '' ? {} : { id: record }),
    ...(as === '' ? {} : { as: askedCaller(as) }),
    ...more,
  };
  return (await transport.json<{ readonly data: WhyExplanation }>('/api/_explain', { method: 'POST', body })).data;
}
