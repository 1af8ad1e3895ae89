/**
 * One connection on which SELECTs are sent without waiting for the answers before them. Those of one turn of the event loop go
 * out in one write, and the quick ones of them before one Sync: for PostgreSQL too, a write costs as much as a small read.
 */
import type pg from 'pg';
import type { Sql } from '../../sql.ts';
import type { Cells } from '../contract.ts';
import { isServerError } from '../to-store-error.ts';
import { type Outcome, type Statements, TogetherError } from './statements.ts';

/** A SELECT on its way. It may be sent again, on another line; the first answer counts. */
export interface Asked {
  readonly statement: Sql;
  /** Lines that it is on, or will be once they are connected. */
  lines: number;
  losses: number;
  isDone: boolean;
  resolve(outcome: Outcome): void;
  reject(error: unknown): void;
}

/** Statements whose answers come together. */
export type Group = readonly Asked[];

interface Failure {
  readonly error: unknown;
  /** Whether nothing is wrong with the statement itself: another of its group failed. */
  readonly isBeside: boolean;
  /** Milliseconds since the answer before it. */
  readonly took: number;
}

export interface LineEvents {
  /** @param took milliseconds since the answer before it. */
  answered(line: Line, group: Group, took: number): void;
  failed(line: Line, asked: Asked, failure: Failure): void;
}

export class Line {
  readonly #client: pg.Client;
  readonly #statements: Statements;
  readonly #events: LineEvents;
  /** Sent, in the order of their answers. */
  readonly #waiting: Group[] = [];
  #unsent: { readonly group: Asked[]; readonly isQuick: boolean }[] = [];
  #unsentCount = 0;
  #pending = 0;
  #headSince = 0;
  /** Nothing new is sent on it: its first statement takes long. */
  isPrivate = false;

  constructor(client: pg.Client, statements: Statements, events: LineEvents) {
    this.#client = client;
    this.#statements = statements;
    this.#events = events;
  }

  get pending(): number {
    return this.#pending;
  }

  /** Statements of this turn of the event loop, which are sent at its end. */
  get unsent(): number {
    return this.#unsentCount;
  }

  /** Milliseconds for which the first statement has waited for its answer; 0 when there is none. */
  headAge(now: number): number {
    return this.#pending === 0 ? 0 : now - this.#headSince;
  }

  /** The program itself was held up: nobody could have read an answer. */
  forgive(milliseconds: number): void {
    this.#headSince += milliseconds;
  }

  send(asked: Asked, isQuick: boolean): void {
    if (this.#pending === 0) this.#headSince = performance.now();
    this.#pending++;
    const last = this.#unsent.at(-1);
    if (isQuick && last?.isQuick) last.group.push(asked);
    else this.#unsent.push({ group: [asked], isQuick });
    this.#unsentCount++;
    if (this.#unsentCount === 1) setImmediate(() => this.#sendUnsent());
  }

  /**
   * Makes the line private to its first group. Gives all others, which are to be sent elsewhere.
   */
  withdraw(): { readonly first: Group; readonly behind: Group } {
    this.#sendUnsent();
    this.isPrivate = true;
    const [first = [], ...behind] = this.#waiting;
    return { first, behind: behind.flat() };
  }

  /** Everything under way fails with a loss of the connection. */
  destroy(): void {
    this.#sendUnsent();
    destroyConnection(this.#client);
  }

  /** After what is under way. */
  async end(): Promise<void> {
    this.#sendUnsent();
    await this.#client.end();
  }

  #sendUnsent(): void {
    const unsent = this.#unsent;
    this.#unsent = [];
    this.#unsentCount = 0;
    if (unsent.length === 0) return;
    const stream = socketOf(this.#client);
    stream.cork();
    for (const { group } of unsent) {
      this.#waiting.push(group);
      this.#send(group).then(
        (outcomes) => this.#answered(group, outcomes),
        (error: unknown) => this.#failed(group, error),
      );
    }
    stream.uncork();
  }

  async #send(group: Group): Promise<readonly Outcome[]> {
    const statements = group.map(({ statement }) => statement);
    return statements.length === 1
      ? [await this.#statements.send(this.#client, statements[0]!)]
      : this.#statements.sendTogether(this.#client, statements);
  }

  #answered(group: Group, outcomes: readonly Outcome[]): void {
    const took = this.#next(group);
    for (const [i, asked] of group.entries()) {
      asked.lines--;
      asked.resolve(outcomes[i]!);
    }
    this.#events.answered(this, group, took);
  }

  #failed(group: Group, error: unknown): void {
    const took = this.#next(group);
    for (const asked of group) asked.lines--;
    const isOfOne = error instanceof TogetherError && error.isUndone;
    const cause = error instanceof TogetherError ? error.cause : error;
    // What could not be sent at all is not known to be any one's.
    const culprit = isOfOne && isServerError(cause) ? group[error.completed] : undefined;
    for (const asked of group) {
      this.#events.failed(this, asked, { error: cause, isBeside: isOfOne && asked !== culprit, took });
    }
  }

  /**
   * Answers come in the order of the statements, except for what fails with the connection. Returns
   * the milliseconds since the answer before.
   */
  #next(group: Group): number {
    const now = performance.now();
    if (this.#waiting[0] === group) this.#waiting.shift();
    else this.#waiting.splice(this.#waiting.indexOf(group), 1);
    this.#pending -= group.length;
    const took = now - this.#headSince;
    this.#headSince = now;
    return took;
  }
}

interface Socket {
  readonly bytesRead?: number;
  cork(): void;
  uncork(): void;
  destroy(): void;
}

/** Properties of the driver's client that its types leave out. */
interface DriverClient {
  readonly readyForQuery?: boolean;
  readonly processID: number | null;
  readonly connection: DriverConnection;
}
interface DriverConnection {
  readonly stream: Socket;
  attachListeners(stream: NodeJS.EventEmitter): void;
  emit(event: 'dataRow', message: { readonly fields: Cells }): void;
}

type AnyClient = Pick<pg.ClientBase, 'query'>;
export const driverOf = (client: AnyClient): DriverClient => client as unknown as DriverClient;
export const socketOf = (client: AnyClient): Socket => driverOf(client).connection.stream;

/** For a server that does not answer: closes the socket without a farewell. */
export const destroyConnection = (client: Pick<pg.ClientBase, 'query'>): void => socketOf(client).destroy();
