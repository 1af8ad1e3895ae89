/** A transaction that other commits overtake, and what the writes of a world share. */
import type { Database, DatabaseSession, Queryable } from '../../../src/database/contract.ts';
import { raw } from '../../../src/sql.ts';
import type { Random } from '../random.ts';
import { type Pools, randomWrite } from './feed-schema.ts';
import type { Watcher } from './watcher.ts';

export interface CommittedWorld {
  readonly i: number;
  readonly random: Random;
  readonly pools: Pools;
  readonly watchers: readonly Watcher[];
  readonly log: string[];
}

/** A transaction that other commits overtake, for some moments. */
export class LongTransaction {
  readonly #db: Database;
  readonly #world: CommittedWorld;
  #session: DatabaseSession | undefined;

  constructor(db: Database, world: CommittedWorld) {
    this.#db = db;
    this.#world = world;
  }

  async next(): Promise<void> {
    const { random, i, pools, log, watchers } = this.#world;
    if (this.#session === undefined) {
      if (!random.chance(0.1) || this.#db.openSession === undefined) return;
      this.#session = await this.#db.openSession();
      await this.#session.run(raw('BEGIN'));
    }
    await write(this.#session, `-- long\n${randomWrite(random, i, { ...pools, items: [] })}`, log);
    if (random.chance(0.7)) return;
    log.push('-- the long one ends');
    await this.#session.run(raw(random.chance(0.8) ? 'COMMIT' : 'ROLLBACK'));
    for (const watcher of watchers) await watcher.noteList();
    await this.end();
  }

  async end(): Promise<void> {
    await this.#session?.close();
    this.#session = undefined;
  }
}

export async function write(q: Queryable, statement: string, log: string[]): Promise<void> {
  log.push(statement);
  await q.run(raw(statement));
}
