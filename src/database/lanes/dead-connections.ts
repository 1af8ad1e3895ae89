import pg from 'pg';
import { reasonOf } from '../../thrown.ts';
import { processIdOf } from '../pg-internals.ts';

const ANSWER_MS = 2_000;

/**
 * Returns false if no process of the server works for this connection any more: its host was lost, or its flow was cut.
 * The kernel would report that only after minutes. A new connection asks.
 */
export async function isAtWork(config: pg.ClientConfig, connection: pg.ClientBase): Promise<boolean> {
  const client = new pg.Client({ ...config, connectionTimeoutMillis: ANSWER_MS, query_timeout: ANSWER_MS });
  client.on('error', () => undefined);
  try {
    await client.connect();
    // A state that the role may not see counts as at work.
    const { rows } = await client.query<{ own: number; is_at_work: boolean }>(
      `SELECT pg_backend_pid() AS own,
              EXISTS (SELECT 1
                        FROM pg_stat_activity
                       WHERE pid = $1
                         AND state IS DISTINCT FROM 'idle'
                         AND state IS DISTINCT FROM 'idle in transaction') AS is_at_work`,
      [processIdOf(connection)],
    );
    // A pooler makes the process ids up, so they identify nothing.
    return rows[0]!.is_at_work || rows[0]!.own !== processIdOf(client);
  } catch (error) {
    return !/ECONNREFUSED|EHOSTUNREACH|ENETUNREACH|ENOTFOUND|ENOENT/.test(reasonOf(error));
  } finally {
    client.end().catch(() => undefined);
  }
}
