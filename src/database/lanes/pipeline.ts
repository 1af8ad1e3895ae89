/**
 * Quick SELECTs over a few connections, on which statements are sent without waiting for the answers before them. The
 * statements of one turn of the event loop go out in one write, a few before each Sync: for PostgreSQL too, a write
 * costs as much as a small read. A connection that stays silent is given up, with all its statements.
 */
import type { FairQueue } from '../../fair-queue.ts';
import { currentCaller, type QueuedCaller } from '../../queued-caller.ts';
import type { Sql } from '../../sql.ts';
import type { Cells } from '../contract.ts';
import { TogetherError } from '../pg-internals.ts';
import { isServerError } from '../to-store-error.ts';
import { Connection, type LaneOptions, NotAnswered } from './connection.ts';
import { laneQueue } from './queue.ts';
import type { Plan, Statements } from './statements.ts';

/** Statements that wait on one connection. Above it, an answer would come too late to be of use. */
const MOST_PENDING = 64;
/** Statements of one turn that a connection gets before another one does. */
const MOST_GATHERED = 4;

interface PendingRead {
  readonly statement: Sql;
  readonly plan: Plan;
  readonly caller: QueuedCaller;
  resolve(rows: readonly Cells[]): void;
  reject(error: unknown): void;
}
type ReadGroup = readonly PendingRead[];

/** A connection, and the statements that it has not answered. */
interface Line {
  readonly connection: Connection;
  pending: number;
  /** The time of the last answer, or of the first statement after a pause. */
  answeredAt: number;
}

export class Pipeline {
  readonly #statements: Statements;
  readonly #queue: FairQueue;
  readonly #lines: readonly Line[];
  #unsent: PendingRead[] = [];

  constructor(options: LaneOptions) {
    this.#statements = options.statements;
    this.#queue = laneQueue({ places: MOST_PENDING * options.size });
    this.#lines = Array.from({ length: options.size }, () => ({
      connection: new Connection(options),
      pending: 0,
      answeredAt: 0,
    }));
  }

  /** Rejects with `NotAnswered`, or the loss of the connection, if the statement itself is not to blame. */
  rows(statement: Sql, plan: Plan): Promise<readonly Cells[]> {
    return this.#queue.serve(
      () =>
        new Promise((resolve, reject) => {
          this.#unsent.push({ statement, plan, caller: currentCaller(), resolve, reject });
          if (this.#unsent.length === 1) setImmediate(() => this.#sendUnsent());
        }),
    );
  }

  async close(): Promise<void> {
    await this.#queue.close();
    await Promise.all(this.#lines.map(({ connection }) => connection.close()));
  }

  #sendUnsent(): void {
    const unsent = this.#unsent.splice(0);
    // More groups than connections would cost more writes than the turn needs.
    const most = Math.max(MOST_GATHERED, Math.ceil(unsent.length / this.#lines.length));
    for (const group of gatheredGroups(unsent, most)) {
      void this.#send(
        group,
        this.#lines.reduce((best, each) => (each.pending < best.pending ? each : best)),
      );
    }
  }

  async #send(group: ReadGroup, line: Line): Promise<void> {
    if (line.pending === 0) line.answeredAt = performance.now();
    line.pending += group.length;
    const statements = group.map(({ statement }) => statement);
    try {
      const client = await line.connection.client();
      this.#statements.setPlan(client, group[0]!.plan);
      const answer = this.#statements.sendTogether(client, statements);
      const outcomes = await line.connection.watched(client, answer, 0);
      this.#note(group, line, false);
      for (const [i, { resolve }] of group.entries()) resolve(outcomes[i]!.rows);
    } catch (error) {
      if (error instanceof TogetherError) this.#note(group, line, true);
      for (const [i, { reject }] of group.entries()) reject(readFailure(error, i, group));
    }
    line.pending -= group.length;
  }

  /** A group takes the time since the answer before. A connection that was silent may have been so for any of the group. */
  #note(group: ReadGroup, line: Line, hasFailed: boolean): void {
    const now = performance.now();
    const took = (now - line.answeredAt) / (hasFailed ? 1 : group.length);
    line.answeredAt = now;
    for (const { statement, caller } of group)
      this.#statements.history.noteAnswer(statement.text, took, { hasFailed, caller });
  }
}

/** The failure of a statement of the group. Only the connection fails otherwise than by a `TogetherError`. */
function readFailure(error: unknown, index: number, group: ReadGroup): unknown {
  if (!(error instanceof TogetherError)) return error;
  const { cause, completed } = error;
  const isCulprit = index === completed || group.length === 1;
  return isServerError(cause) && isCulprit ? cause : new NotAnswered('not answered', { cause });
}

/** Statements of one plan, at most so many in each group. */
function gatheredGroups(unsent: readonly PendingRead[], most: number): readonly ReadGroup[] {
  const groups: PendingRead[][] = [];
  for (const asked of unsent) {
    const last = groups.at(-1);
    if (last === undefined || last.length === most || last[0]!.plan !== asked.plan) groups.push([asked]);
    else last.push(asked);
  }
  return groups;
}
