import { type Database, inLane } from '../../database/contract.ts';
import { sql } from '../../sql.ts';

/**
 * Finds the adopted tables whose writes may reach a trigger, also over rules, partitions and foreign keys. The
 * service's own triggers only write the change log. Another trigger may rely on the borders of transactions, so each such write gets its own.
 */
export async function separateTriggeredTables(db: Database): Promise<void> {
  const rows = await inLane(db, 'urgent').rows(sql`
    SELECT name
      FROM (
        WITH RECURSIVE triggered AS (
          SELECT id
            FROM (
              SELECT tgrelid AS id
                FROM pg_trigger
               WHERE NOT tgisinternal
                 AND tgname NOT LIKE 'bylaw\\_%'
               UNION
              SELECT ev_class
                FROM pg_rewrite
               WHERE ev_type <> '1'
            ) AS own
           UNION
          SELECT edge.to_id
            FROM triggered AS t
            JOIN (
              SELECT conrelid AS from_id, confrelid AS to_id
                FROM pg_constraint
               WHERE contype = 'f'
                 AND (confdeltype IN ('c', 'n', 'd') OR confupdtype IN ('c', 'n', 'd'))
               UNION ALL
              SELECT inhrelid, inhparent
                FROM pg_inherits
            ) AS edge ON edge.from_id = t.id
        )
        SELECT id FROM triggered
      ) AS t
      JOIN pg_class AS c ON c.oid = t.id
      JOIN pg_namespace AS n ON n.oid = c.relnamespace
     CROSS JOIN LATERAL (
        SELECT n.nspname || '.' || c.relname
         UNION ALL
        SELECT c.relname::text
         WHERE n.nspname = current_schema()) AS named (name)
     WHERE n.nspname NOT IN ('pg_catalog', 'information_schema')`);
  db.separateWritesTo?.(rows.map(([name]) => name!));
}
