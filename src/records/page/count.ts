/**
 * Counts the records that match. An estimate must not reveal hidden rows, so it is the planner's
 * only where nothing can be hidden.
 */
import type { Reader } from '../../database/contract.ts';
import { planOf } from '../../database/planner.ts';
import { type Sql, sql, typedLiteral } from '../../sql.ts';
import type { ReadBudget } from '../read-budget.ts';

export type CountKind = 'none' | 'exact' | 'estimated';

export interface Counted {
  readonly total?: number;
  /** Given with an estimate. */
  readonly totalIsEstimate?: boolean;
}

interface Counting {
  /** `FROM … WHERE …` */
  readonly source: Sql;
  /** Nothing that the caller may not read takes part. */
  readonly isOpen: boolean;
  readonly reader: Reader;
  readonly budget: ReadBudget;
}

/** Counts are exact up to here. */
const MOST_COUNTED = 10_000;

export async function countRows(kind: Exclude<CountKind, 'none'>, counting: Counting): Promise<Counted> {
  const { source, isOpen, reader, budget } = counting;
  const counted = async (statement: Sql): Promise<number> => {
    const rows = await budget.rows(statement, { lane: 'slow' });
    return Number(rows[0]![0]);
  };
  if (kind === 'exact') return { total: await counted(sql`SELECT count(*) ${source}`) };
  const most = typedLiteral('int8', MOST_COUNTED + 1);
  const total = await counted(sql`SELECT count(*) FROM (SELECT 1 ${source} LIMIT ${most}) AS "counted"`);
  if (total <= MOST_COUNTED) return { total, totalIsEstimate: false };
  if (!isOpen) return { total: MOST_COUNTED, totalIsEstimate: true };
  // The planner's figure takes no time, so it is outside the budget.
  const { 'Plan Rows': rows } = await planOf(reader, sql`SELECT 1 ${source}`);
  return { total: Math.max(rows, MOST_COUNTED + 1), totalIsEstimate: true };
}

/** The count where no record can match. */
export function nothingCounted(kind: CountKind): Counted {
  if (kind === 'none') return {};
  return { total: 0, ...(kind === 'estimated' && { totalIsEstimate: false }) };
}
