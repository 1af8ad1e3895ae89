/**
 * Quick SELECTs over a few connections, on which statements are sent without waiting for the answers before them. The
 * statements of one turn of the event loop go out in one write, a few before each Sync: for PostgreSQL too, a write
 * costs as much as a small read. A connection that stays silent is given up, with all its statements.
 */
import type { Sql } from '../../sql.ts';
import type { Cells } from '../contract.ts';
import type { CellClient, TogetherError } from '../pg-internals.ts';
import { isServerError } from '../to-store-error.ts';
import type { Connection } from './connection.ts';
import { Queue } from './queue.ts';
import type { Plan, Statements } from './statements.ts';

/** Statements that wait on one connection. Above it, an answer would come too late to be of use. */
export const MOST_PENDING = 2_000;
/** Statements of one turn that a connection gets before another one does, and statements before one Sync. */
const MOST_GATHERED = 4;

interface PendingRead {
  readonly statement: Sql;
  readonly plan: Plan;
  resolve(rows: readonly Cells[]): void;
  reject(error: unknown): void;
}
type ReadGroup = readonly PendingRead[];

/** Another statement of the group failed, or the connection was given up for another one. */
export class NotAnswered extends Error {}

export class Pipeline {
  readonly #connections: readonly PipelinedConnection[];
  readonly #queue: Queue;

  constructor(connections: readonly Connection[], statements: Statements) {
    this.#connections = connections.map((each) => new PipelinedConnection(each, statements));
    this.#queue = new Queue({ places: MOST_PENDING * connections.length, mostWaiting: 0 });
  }

  /** Rejects with `NotAnswered`, or the loss of the connection, if the statement itself is not to blame. */
  async rows(statement: Sql, plan: Plan): Promise<readonly Cells[]> {
    await this.#queue.enter();
    try {
      return await new Promise((resolve, reject) => this.#next().gather({ statement, plan, resolve, reject }));
    } finally {
      this.#queue.leave();
    }
  }

  async close(): Promise<void> {
    await this.#queue.close();
    await Promise.all(this.#connections.map(({ connection }) => connection.close()));
  }

  /** The connection that is gathering statements, or else the least busy. */
  #next(): PipelinedConnection {
    return (
      this.#connections.find(({ unsent: { length } }) => length > 0 && length < MOST_GATHERED) ??
      this.#connections.reduce((best, each) => (each.pending < best.pending ? each : best))
    );
  }
}

class PipelinedConnection {
  readonly connection: Connection;
  readonly #statements: Statements;
  unsent: PendingRead[] = [];
  #sentCount = 0;
  /** The time of the last answer, or of the first statement after a pause. */
  #answeredAt = 0;

  constructor(connection: Connection, statements: Statements) {
    this.connection = connection;
    this.#statements = statements;
  }

  get pending(): number {
    return this.#sentCount + this.unsent.length;
  }

  gather(read: PendingRead): void {
    this.unsent.push(read);
    if (this.unsent.length === 1) setImmediate(() => void this.#sendUnsent());
  }

  async #sendUnsent(): Promise<void> {
    try {
      const client = await this.connection.client();
      if (this.#sentCount === 0) this.#answeredAt = performance.now();
      for (const group of gatheredGroups(this.unsent.splice(0))) void this.#sendGroup(client, group);
    } catch (error) {
      for (const { reject } of this.unsent.splice(0)) reject(error);
    }
  }

  async #sendGroup(client: CellClient, group: ReadGroup): Promise<void> {
    this.#sentCount += group.length;
    this.#statements.setPlan(client, group[0]!.plan);
    const texts = group.map(({ statement }) => statement);
    try {
      const outcomes = await this.connection.watchedClosely(client, this.#statements.sendTogether(client, texts));
      this.#note(group, false);
      for (const [i, { resolve }] of group.entries()) resolve(outcomes[i]!.rows);
    } catch (error) {
      this.#note(group, true);
      const { cause, completed } = error as TogetherError;
      for (const [i, { reject }] of group.entries()) {
        const isCulprit = i === completed || group.length === 1;
        reject(isServerError(cause) && isCulprit ? cause : new NotAnswered('not answered', { cause }));
      }
    }
  }

  /** A group takes the time since the answer before. A connection that was silent may have been so for any of the group. */
  #note(group: ReadGroup, hasFailed: boolean): void {
    this.#sentCount -= group.length;
    const now = performance.now();
    const took = (now - this.#answeredAt) / (hasFailed ? 1 : group.length);
    this.#answeredAt = now;
    for (const { statement } of group) this.#statements.history.noteAnswer(statement.text, took, hasFailed);
  }
}

/** Statements of one plan, a few in each group. */
function gatheredGroups(unsent: readonly PendingRead[]): readonly ReadGroup[] {
  const groups: PendingRead[][] = [];
  for (const asked of unsent) {
    const last = groups.at(-1);
    if (last === undefined || last.length === MOST_GATHERED || last[0]!.plan !== asked.plan) groups.push([asked]);
    else last.push(asked);
  }
  return groups;
}
