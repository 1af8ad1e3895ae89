/** Citus: whether the database is a cluster, and its setting for statements about several tenants. */
import { raw } from '../sql.ts';
import type { Queryable } from './contract.ts';

/** The way in which tables are stored by tenant. */
export type TenantStorage = 'citus' | 'partitions';

export async function tenantStorageOf(db: Pick<Queryable, 'rows'>): Promise<TenantStorage> {
  const [row] = await db.rows(raw(`SELECT EXISTS (SELECT 1 FROM pg_extension WHERE extname = 'citus')`));
  return row?.[0] === 't' ? 'citus' : 'partitions';
}

/**
 * Prepares a transaction for a statement about several tenants: without it, Citus writes to the shards over several
 * connections, after which the transaction can neither change nor define a table that every node has.
 */
export const SEQUENTIAL_SHARDS = raw(`SET LOCAL citus.multi_shard_modify_mode TO 'sequential'`);
