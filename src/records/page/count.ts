/** How many records a query matches. An estimate must not reveal hidden rows, so it is the planner's only where nothing can be hidden. */

import type { Queryable, Reader } from '../../database/contract.ts';
import { planOf } from '../../database/planner.ts';
import { type Sql, sql, typedLiteral } from '../../sql.ts';

type Rows = Pick<Queryable, 'rows'>;
export type CountKind = 'none' | 'exact' | 'estimated';

export interface Counted {
  readonly total?: number;
  /** Given with an estimate. */
  readonly totalIsEstimate?: boolean;
}

interface Counting {
  readonly kind: CountKind;
  /** `FROM … WHERE …` */
  readonly source: Sql;
  /** Nothing that the caller may not read takes part. */
  readonly isOpen: boolean;
  /** Is asked what the planner expects, which takes no time. */
  readonly planner: Pick<Reader, 'rows'>;
}

/** Counts are exact up to here. */
const MOST_COUNTED = 10_000;

export async function countOf(q: Rows, { kind, source, isOpen, planner }: Counting): Promise<Counted> {
  if (kind === 'none') return {};
  if (kind === 'exact') return { total: await counted(q, sql`SELECT count(*) ${source}`) };
  const most = typedLiteral('int8', MOST_COUNTED + 1);
  const total = await counted(q, sql`SELECT count(*) FROM (SELECT 1 ${source} LIMIT ${most}) AS "counted"`);
  if (total <= MOST_COUNTED) return { total, totalIsEstimate: false };
  if (!isOpen) return { total: MOST_COUNTED, totalIsEstimate: true };
  const { 'Plan Rows': rows } = await planOf(planner, sql`SELECT 1 ${source}`);
  return { total: Math.max(rows, MOST_COUNTED + 1), totalIsEstimate: true };
}

/** Where nothing can match. */
export function nothingCounted(kind: CountKind): Counted {
  if (kind === 'none') return {};
  return { total: 0, ...(kind === 'estimated' && { totalIsEstimate: false }) };
}

const counted = async (q: Rows, statement: Sql): Promise<number> => Number((await q.rows(statement))[0]![0]);
