/** A connection of a lane. It connects with its first statement, and again after a loss or a pause. */
import { reasonOf } from '../../thrown.ts';
import { abandonConnection, bytesReadOf, CellClient, processIdOf } from '../pg-internals.ts';
import type { ServerUrl } from '../server-url.ts';
import { toStoreError } from '../to-store-error.ts';
import type { Statements } from './statements.ts';

/** Milliseconds without a byte of an answer after which the connection of a quick statement is given up. */
const SILENCE_MS = 100;
/** Milliseconds without a byte after which the server is asked whether it is at work on the statement. */
const SUSPECT_MS = 2_000;
/** Milliseconds for the answer to that. */
const PROBE_MS = 2_000;
/** Milliseconds after which an unused connection is closed. */
const IDLE_MS = 30_000;

/** The connections of a lane, and the statements that they send. */
export interface LaneOptions extends Pick<ServerUrl, 'config' | 'isPooled'> {
  readonly size: number;
  readonly statements: Statements;
}

/** The statement itself is not to blame: another one of its group failed, or its lane has no time for it. */
export class NotAnswered extends Error {}

export class Connection {
  readonly #options: LaneOptions;
  #client: CellClient | undefined;
  #connected: Promise<unknown> | undefined;
  #rest: NodeJS.Timeout | undefined;

  constructor(options: LaneOptions) {
    this.#options = options;
  }

  /** Throws `unavailable`. */
  async client(): Promise<CellClient> {
    clearTimeout(this.#rest);
    if (!this.#client?.isUsable) {
      this.close().catch(() => undefined);
      const client = new CellClient({ ...this.#options.config, pipeline: true });
      this.#client = client;
      this.#connected = client.connect().catch((error: unknown) => {
        if (this.#client === client) this.#client = undefined;
        throw toStoreError(error);
      });
    }
    const client = this.#client!;
    await this.#connected;
    return client;
  }

  /** Closes the connection unless it is used again soon. */
  rest(): void {
    this.#rest = setTimeout(() => void this.close(), IDLE_MS).unref();
  }

  /** The next statement gets a new connection. */
  async close(): Promise<void> {
    clearTimeout(this.#rest);
    const client = this.#client;
    this.#client = undefined;
    await this.#connected?.catch(() => undefined);
    await client?.end();
  }

  /**
   * Waits for an answer. A connection that brings no byte of it, although the server is lost or `limitMs` have passed, is
   * given up: its statements fail with the loss of it, and the server cancels the one under way.
   * @param limitMs 0: it is given up as soon as it is silent
   */
  async watched<T>(client: CellClient, answer: Promise<T>, limitMs: number): Promise<T> {
    const deadline = performance.now() + limitMs;
    let isAnswered = false;
    let bytesRead = bytesReadOf(client);
    const look = async (): Promise<void> => {
      const isSilent = bytesReadOf(client) === bytesRead;
      bytesRead = bytesReadOf(client);
      const isGivenUp = isSilent && !isAnswered && (performance.now() >= deadline || (await this.#isLost(client)));
      if (isAnswered) return;
      if (isGivenUp) abandonConnection(client);
      else timer.refresh();
    };
    // Timers run before sockets are read, so a look after a stall of the program first lets it read the answers.
    const timer = setTimeout(() => setImmediate(() => void look()), limitMs === 0 ? SILENCE_MS : SUSPECT_MS);
    try {
      return await answer;
    } finally {
      isAnswered = true;
      clearTimeout(timer);
    }
  }

  /**
   * Returns true if no process of the server works for this connection any more: its host was lost, or its flow was
   * cut. The kernel would report that only after minutes. A new connection asks.
   */
  async #isLost(silent: CellClient): Promise<boolean> {
    if (this.#options.isPooled) return false;
    const client = new CellClient({
      ...this.#options.config,
      connectionTimeoutMillis: PROBE_MS,
      query_timeout: PROBE_MS,
    });
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
        [processIdOf(silent)],
      );
      // A pooler makes the process ids up, so they identify nothing.
      return !rows[0]!.is_at_work && rows[0]!.own === processIdOf(client);
    } catch (error) {
      return /ECONNREFUSED|EHOSTUNREACH|ENETUNREACH|ENOTFOUND|ENOENT/.test(reasonOf(error));
    } finally {
      client.end().catch(() => undefined);
    }
  }
}
