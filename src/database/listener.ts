/**
 * A connection that LISTENs to all channels and reconnects after a loss. Only the heartbeat decides that a silent
 * connection is lost; a single slow answer loses no notifications.
 */
import { setImmediate as nextTurn } from 'node:timers/promises';
import pg from 'pg';
import { inRounds } from '../in-rounds.ts';
import { ident } from '../sql.ts';
import { succeeds } from '../thrown.ts';
import { withDeadline } from '../with-deadline.ts';
import { type Database, deliver, type Subscription } from './contract.ts';

const FIRST_RETRY_MS = 100;
const LAST_RETRY_MS = 5_000;
const HEARTBEAT_MS = 5_000;
/** The heartbeat waits this long for its answer. */
const HEARTBEAT_ANSWER_MS = 5_000;
/** Reads wait for a round trip. */
const ROUND_MS = 1_000;

export class Listener {
  readonly #config: pg.ClientConfig;
  readonly #subscriptions = new Set<Subscription>();
  #client: pg.Client | undefined;
  #attempt: Promise<void> | undefined;
  #isClosed = false;
  /** The connection of a round trip whose answer is outstanding, also after it was given up. */
  #unanswered: pg.Client | undefined;

  /**
   * Resolves when every notification sent before the call is delivered: PostgreSQL delivers them before it answers.
   * Concurrent callers share the next round trip. Rejects while the connection is down, after a second, and immediately
   * while an earlier answer is overdue.
   */
  readonly drainAnnouncements = inRounds(() => this.#roundTrip());

  constructor(config: pg.ClientConfig) {
    this.#config = config;
  }

  async listen(subscription: Subscription): ReturnType<Database['listen']> {
    const { channel, onState } = subscription;
    const client = this.#client;
    this.#subscriptions.add(subscription);
    if (client === undefined) {
      if (this.#attempt === undefined) void this.#stayConnected();
      await this.#attempt;
      if (this.#client === undefined) onState(false);
    } else {
      const isHeard = await succeeds(listenOn(channel, client));
      onState(isHeard && this.#client === client);
    }
    return async () => void this.#subscriptions.delete(subscription);
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#attempt;
    const client = this.#client;
    this.#client = undefined;
    await client?.end().catch(() => undefined);
  }

  async #stayConnected(): Promise<void> {
    for (let retry = FIRST_RETRY_MS; !this.#isClosed; retry = Math.min(retry * 2, LAST_RETRY_MS)) {
      const client = new pg.Client(this.#config);
      const lost = new Promise<void>((resolve) => client.on('error', () => resolve()).on('end', resolve));
      client.on('notification', (message) => deliver(message, this.#subscriptions));
      this.#attempt = this.#open(client);
      await this.#attempt;
      if (this.#client !== undefined) {
        retry = FIRST_RETRY_MS;
        await Promise.race([lost, heartbeatLost(client)]);
        if (this.#isClosed) return;
        this.#client = undefined;
        for (const { onState } of this.#subscriptions) onState(false);
      }
      client.end().catch(() => undefined);
      await pause(retry);
    }
  }

  /** Never rejects: a failed attempt is repeated later. */
  async #open(client: pg.Client): Promise<void> {
    try {
      await client.connect();
      // INVARIANT: subscriptions that are added meanwhile are part of the loop.
      for (const { channel } of this.#subscriptions) await listenOn(channel, client);
    } catch {
      return;
    }
    this.#client = client;
    for (const { onState } of this.#subscriptions) onState(true);
  }

  async #roundTrip(): Promise<void> {
    const client = this.#client;
    if (client === undefined || client === this.#unanswered) throw new Error('no notifications are heard');
    this.#unanswered = client;
    const answer = client.query('SELECT 1').finally(() => {
      if (this.#unanswered === client) this.#unanswered = undefined;
    });
    await answered(answer, ROUND_MS);
  }
}

const listenOn = (channel: string, client: pg.Client): Promise<unknown> =>
  answered(client.query(`LISTEN ${ident(channel).text}`), HEARTBEAT_ANSWER_MS);

/** Resolves when the connection has not answered in time, or has ended. */
async function heartbeatLost(client: pg.Client): Promise<void> {
  do {
    await pause(HEARTBEAT_MS);
  } while (await succeeds(answered(client.query('SELECT 1'), HEARTBEAT_ANSWER_MS)));
}

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms).unref());

/** Rejects after `ms` without an answer. Timers run before sockets are read, so a stalled process first reads. */
const answered = (answer: Promise<unknown>, ms: number): Promise<unknown> =>
  withDeadline(answer, ms, async () => {
    await nextTurn();
    throw new Error('the database has not answered in time');
  });
