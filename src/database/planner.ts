/** The expectations of PostgreSQL's planner for a statement, which is not run. */
import { type Sql, sql } from '../sql.ts';
import type { Reader } from './contract.ts';

export interface ExpectedPlan extends Readonly<Record<string, unknown>> {
  /** The cost in the planner's own unit, up to the first row and of all rows. */
  readonly 'Startup Cost': number;
  readonly 'Total Cost': number;
  readonly 'Plan Rows': number;
}

/** Citus shows the plan of a machine that has rows, or of one of them. */
interface Explained {
  readonly Plan: ExpectedPlan & { readonly 'Distributed Query'?: { readonly Job: Job } };
}
interface Job {
  readonly Tasks: readonly { readonly 'Remote Plan': readonly [readonly [Explained]] }[];
}

export async function planOf(reader: Pick<Reader, 'rows'>, statement: Sql): Promise<ExpectedPlan> {
  const cells = await reader.rows(sql`EXPLAIN (FORMAT JSON) ${statement}`, { lane: 'estimate' });
  const [{ Plan }] = JSON.parse(cells.map(([line]) => line).join('\n')) as [Explained];
  return Plan['Distributed Query']?.Job.Tasks[0]?.['Remote Plan'][0][0].Plan ?? Plan;
}
