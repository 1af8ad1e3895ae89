/** Citus: whether the database is a cluster, and its setting for statements about several tenants. */
import { raw } from '../sql.ts';
import type { Queryable } from './contract.ts';

export async function isCitus(db: Pick<Queryable, 'rows'>): Promise<boolean> {
  const [row] = await db.rows(raw(`SELECT EXISTS (SELECT 1 FROM pg_extension WHERE extname = 'citus')`));
  return row?.[0] === 't';
}

/** Comes before statements about several tenants: else no table of every node could be changed or defined later. */
export const SEQUENTIAL_SHARDS = raw(`SET LOCAL citus.multi_shard_modify_mode TO 'sequential'`);
