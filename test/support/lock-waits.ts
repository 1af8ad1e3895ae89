/** The sessions of a suite's own database that wait for a lock: other suites use the same server. */
import type { Database } from '../../src/database/contract.ts';
import { param, sql } from '../../src/sql.ts';

const OF_WRITES = ['advisory', 'transactionid', 'tuple'];

/**
 * @param kind default: locks of rows too. A notification waits for a moment for those of all suites, and a growing table for its
 * other writers.
 */
export async function lockWaits(db: Database, kind?: 'advisory'): Promise<number> {
  const rows = await db.rows(sql`
    SELECT 1
      FROM pg_stat_activity
     WHERE datname = current_database()
       AND wait_event_type = 'Lock'
       AND wait_event = ANY(${param('text[]', kind === undefined ? OF_WRITES : [kind])})`);
  return rows.length;
}
