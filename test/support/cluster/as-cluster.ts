/** A database without Citus, to which statements go as to a cluster. */
import type { Database, StatementTaker } from '../../../src/database/contract.ts';
import type { Sql } from '../../../src/sql.ts';

/** @param nodeOf makes the way to the worker that has the records of every tenant; default: none is known */
export function asCluster(
  db: Database,
  sent: (statement: Sql) => void,
  nodeOf?: (db: Database) => StatementTaker,
): Database {
  const node = nodeOf?.(db);
  return new Proxy(db, {
    get(target, key) {
      if (key === 'isCluster') return true;
      if (key === 'nodeFor') return () => node;
      const value = Reflect.get(target, key, target) as unknown;
      if (typeof value !== 'function') return value;
      return (...given: readonly unknown[]) => {
        if (key === 'rows' || key === 'write') sent(given[0] as Sql);
        return Reflect.apply(value, target, given);
      };
    },
  });
}
