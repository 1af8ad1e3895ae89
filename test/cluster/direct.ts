/** A service on a cluster whose workers are asked directly. */
import { setTimeout as pause } from 'node:timers/promises';
import { askWorkersDirectly } from '../../src/cluster/direct-workers.ts';
import type { Database } from '../../src/database/contract.ts';

const PATIENCE_MS = 30_000;

/** A connection to the coordinator that the service under test asks workers beside. */
export class DirectDatabase {
  #url = '';
  #db: Database | undefined;
  readonly said: string[] = [];

  readonly connect = (url: string): string => {
    this.#url = url;
    return url;
  };

  readonly watch = async (db: Database): Promise<Database> => {
    this.#db = await askWorkersDirectly(db, { url: this.#url, say: (message) => void this.said.push(message) });
    return this.#db;
  };

  get db(): Database {
    return this.#db!;
  }

  /** Waits until the worker of the tenant is known, as it is some seconds after the tables were made. */
  async knows(table: string, tenant: string): Promise<void> {
    const end = performance.now() + PATIENCE_MS;
    while (this.db.nodeFor!(table, tenant) === undefined) {
      if (performance.now() > end) throw new Error(`no worker is known: ${this.said.join('; ')}`);
      await pause(50);
    }
  }
}
