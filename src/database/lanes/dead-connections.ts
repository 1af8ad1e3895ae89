/**
 * Finds connections whose other end is gone without a word: a lost host, a cut flow. The kernel
 * would report them only after minutes. A connection that waits for an answer and hears nothing is
 * looked up on the server, over a new connection; if no backend there works on it, nobody will ever
 * answer, and it is destroyed.
 */
import pg from 'pg';
import { reasonOf } from '../../thrown.ts';
import { isServerError } from '../to-store-error.ts';
import { destroyConnection, driverOf, socketOf } from './pipelined-connection.ts';

const LOOK_MS = 500;
/** Milliseconds without a byte after which a connection is looked up. */
const SUSPECT_MS = 2_000;
const ANSWER_MS = 2_000;
/**
 * Failures to reach the server, one after the other, after which silent connections are given up.
 */
const MOST_FAILURES = 3;

interface Watched {
  bytesRead: number;
  quietSince: number;
}

export class Silence {
  readonly #config: pg.ClientConfig;
  readonly #watched = new Map<pg.ClientBase, Watched>();
  #timer: NodeJS.Timeout | undefined;
  #isAsking = false;
  #failures = 0;

  constructor(config: pg.ClientConfig) {
    this.#config = config;
  }

  /** From now until the connection ends. */
  watch(client: pg.ClientBase): void {
    this.#watched.set(client, { bytesRead: -1, quietSince: performance.now() });
    client.on('end', () => this.#watched.delete(client));
    this.#timer ??= setInterval(() => void this.#look(), LOOK_MS).unref();
  }

  close(): void {
    clearInterval(this.#timer);
  }

  async #look(): Promise<void> {
    const suspects = this.#suspects();
    if (suspects.length === 0 || this.#isAsking) return;
    this.#isAsking = true;
    try {
      const dead = await this.#withoutBackend(suspects);
      const stillSilent = new Set(this.#suspects());
      for (const client of dead) if (stillSilent.has(client)) destroyConnection(client);
    } finally {
      this.#isAsking = false;
    }
  }

  #suspects(): readonly pg.ClientBase[] {
    const now = performance.now();
    const suspects: pg.ClientBase[] = [];
    for (const [client, watched] of this.#watched) {
      const { bytesRead = 0 } = socketOf(client);
      const isIdle = driverOf(client).readyForQuery === true;
      if (isIdle || bytesRead !== watched.bytesRead) {
        watched.bytesRead = bytesRead;
        watched.quietSince = now;
      } else if (now - watched.quietSince > SUSPECT_MS) suspects.push(client);
    }
    return suspects;
  }

  async #withoutBackend(suspects: readonly pg.ClientBase[]): Promise<readonly pg.ClientBase[]> {
    const pidOf = (client: pg.ClientBase) => driverOf(client).processID;
    try {
      const working = await this.#workingBackends(suspects.flatMap((client) => pidOf(client) ?? []));
      this.#failures = 0;
      return suspects.filter((client) => !working.has(pidOf(client)));
    } catch (error) {
      // A server that refuses with an error is there.
      if (isServerError(error)) return [];
      this.#failures++;
      const isNobodyThere = /ECONNREFUSED|EHOSTUNREACH|ENETUNREACH|ENOTFOUND|ENOENT/.test(reasonOf(error));
      return isNobodyThere || this.#failures >= MOST_FAILURES ? suspects : [];
    }
  }

  /** Of the process ids, those that are answering a statement. */
  async #workingBackends(pids: readonly number[]): Promise<ReadonlySet<number | null>> {
    const client = new pg.Client({
      ...this.#config,
      connectionTimeoutMillis: ANSWER_MS,
      query_timeout: ANSWER_MS,
    });
    client.on('error', () => undefined);
    try {
      await client.connect();
      // A state that may not be seen counts as at work.
      const { rows } = await client.query<{ own: number; working: readonly number[] }>(
        `SELECT pg_backend_pid() AS own,
                ARRAY(SELECT pid
                        FROM pg_stat_activity
                       WHERE pid = ANY($1::int[])
                         AND state IS DISTINCT FROM 'idle'
                         AND state IS DISTINCT FROM 'idle in transaction') AS working`,
        [pids],
      );
      const [{ own, working } = { own: undefined, working: [] }] = rows;
      // A pooler makes up the process ids, in session mode too: nothing can be looked up by them.
      return new Set(own === driverOf(client).processID ? working : pids);
    } finally {
      client.end().catch(() => undefined);
    }
  }
}
