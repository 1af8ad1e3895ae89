/** The sessions of a suite's own database that wait for a lock: other suites use the same server. */
import type { Database } from '../../src/database/contract.ts';
import { param, sql } from '../../src/sql.ts';

/** @param kind default: any lock */
export async function lockWaits(db: Database, kind?: 'advisory'): Promise<number> {
  const rows = await db.rows(sql`
    SELECT 1
      FROM pg_stat_activity
     WHERE datname = current_database()
       AND wait_event_type = 'Lock'
       AND wait_event = coalesce(${param('text', kind ?? null)}, wait_event)`);
  return rows.length;
}
