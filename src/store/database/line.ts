/**
 * One connection on which SELECTs are sent without waiting for the answers before them. Measures
 * each answer by itself.
 */
import type pg from 'pg';
import { invariant } from '../../invariant.ts';
import type { Sql } from '../../sql.ts';
import type { Cells } from './contract.ts';
import type { Outcome, Statements } from './statements.ts';

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

interface Withdrawn {
  readonly first: Asked;
  readonly behind: readonly Asked[];
}

interface Failure {
  readonly error: unknown;
  /** Milliseconds since the answer before it. */
  readonly took: number;
}

export interface LineEvents {
  /** @param took milliseconds since the answer before it. */
  answered(line: Line, asked: Asked, took: number): void;
  failed(line: Line, asked: Asked, failure: Failure): void;
}

export class Line {
  readonly #client: pg.Client;
  readonly #statements: Statements;
  readonly #events: LineEvents;
  readonly #waiting: Asked[] = [];
  #headSince = 0;
  #unsent = 0;
  /** Nothing new is sent on it: its first statement takes long. */
  isPrivate = false;

  constructor(client: pg.Client, statements: Statements, events: LineEvents) {
    this.#client = client;
    this.#statements = statements;
    this.#events = events;
  }

  get pending(): number {
    return this.#waiting.length;
  }

  /** Statements of this turn of the event loop, which are sent at its end. */
  get unsent(): number {
    return this.#unsent;
  }

  /** Milliseconds for which the first statement has waited for its answer; 0 when there is none. */
  headAge(now: number): number {
    return this.#waiting.length === 0 ? 0 : now - this.#headSince;
  }

  /** The program itself was held up: nobody could have read an answer. */
  forgive(milliseconds: number): void {
    this.#headSince += milliseconds;
  }

  send(asked: Asked): void {
    if (this.#waiting.length === 0) this.#headSince = performance.now();
    this.#waiting.push(asked);
    this.#gather();
    this.#statements.send(this.#client, asked.statement).then(
      (outcome) => {
        const took = this.#next(asked);
        asked.lines--;
        asked.resolve(outcome);
        this.#events.answered(this, asked, took);
      },
      (error: unknown) => {
        const took = this.#next(asked);
        asked.lines--;
        this.#events.failed(this, asked, { error, took });
      },
    );
  }

  /**
   * Makes the line private to its first statement. What stands behind that is to be sent elsewhere.
   */
  withdraw(): Withdrawn {
    this.isPrivate = true;
    const [first, ...behind] = this.#waiting;
    invariant(first !== undefined, 'only a line that waits is withdrawn');
    return { first, behind: behind.filter(({ isDone }) => !isDone) };
  }

  /** Everything under way fails with a loss of the connection. */
  destroy(): void {
    destroyConnection(this.#client);
  }

  /** After what is under way. */
  async end(): Promise<void> {
    await this.#client.end();
  }

  /**
   * Statements of one turn of the event loop go out in one write: the call costs as much as the rest
   * of a small read.
   */
  #gather(): void {
    this.#unsent++;
    if (this.#unsent > 1) return;
    const stream = socketOf(this.#client);
    stream.cork();
    setImmediate(() => {
      this.#unsent = 0;
      stream.uncork();
    });
  }

  /**
   * Answers come in the order of the statements, except for what fails with the connection. Returns
   * the milliseconds since the answer before.
   */
  #next(asked: Asked): number {
    const now = performance.now();
    if (this.#waiting[0] === asked) this.#waiting.shift();
    else this.#waiting.splice(this.#waiting.indexOf(asked), 1);
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
