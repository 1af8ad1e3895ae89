/** Calls a function after each write of this process: every statement that may write passes these three functions. */
import type { Database } from '../database/contract.ts';

export function afterWrites(db: Database, onEnd: () => void): void {
  const { run, write, transaction } = db;
  db.run = (statement) => run(statement).finally(onEnd);
  db.write = (statement, target) => write(statement, target).finally(onEnd);
  db.transaction = (work, options) => transaction(work, options).finally(onEnd);
}
