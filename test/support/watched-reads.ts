import type { Database, ReadOptions } from '../../src/database/contract.ts';
import type { Sql } from '../../src/sql.ts';

/** The same database, which shows each read of the records room before it is sent. */
export function watchedReads(
  db: Database,
  onRead: (statement: Sql, options: ReadOptions | undefined) => void,
): Database {
  const rows: Database['rows'] = (statement, options) => {
    onRead(statement, options);
    return db.rows(statement, options);
  };
  return { ...db, replicaFor: () => ({ ...db, rows }) };
}
