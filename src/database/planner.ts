/** The expectations of PostgreSQL's planner for a statement, which is not run. */
import { type Sql, sql } from '../sql.ts';
import type { Reader } from './contract.ts';

interface ExpectedPlan {
  /** The cost in the planner's own unit. */
  readonly 'Total Cost': number;
  readonly 'Plan Rows': number;
}

export async function planOf(reader: Pick<Reader, 'rows'>, statement: Sql): Promise<ExpectedPlan> {
  const cells = await reader.rows(sql`EXPLAIN (FORMAT JSON) ${statement}`, { lane: 'estimate' });
  const [{ Plan }] = JSON.parse(cells.map(([line]) => line).join('\n')) as [{ readonly Plan: ExpectedPlan }];
  return Plan;
}
