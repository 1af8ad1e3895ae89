/**
 * A connection that LISTENs to all channels and reconnects after a loss. Only the heartbeat decides that a silent
 * connection is lost; a single slow answer loses no notifications.
 */
import pg from 'pg';
import { ident } from '../sql.ts';
import { deliver, type Listen, type Subscription } from './contract.ts';

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
  #connecting: Promise<void> | undefined;
  #timer: NodeJS.Timeout | undefined;
  #retry = FIRST_RETRY_MS;
  #closed = false;
  /** The round trip that is under way, and the one after it. */
  #round: Promise<unknown> = Promise.resolve();
  #nextRound: Promise<void> | undefined;
  /** The answer of an abandoned round is still outstanding. */
  #late: pg.Client | undefined;

  constructor(config: pg.ClientConfig) {
    this.#config = config;
  }

  async listen(...[channel, onMessage, onState]: Parameters<Listen>): ReturnType<Listen> {
    const subscription = { channel, onMessage, onState };
    if (!this.#client) await this.#connect();
    // A connection that is being made has read the list of channels already, so the subscription is added last.
    const client = this.#client;
    const listened = client && answered(client.query(`LISTEN ${ident(channel).text}`), HEARTBEAT_ANSWER_MS);
    const up = await listened?.then(
      () => true,
      () => false,
    );
    this.#subscriptions.add(subscription);
    onState(up === true);
    return async () => {
      this.#subscriptions.delete(subscription);
    };
  }

  /**
   * Resolves when every notification sent before the call is delivered: PostgreSQL delivers them before it answers.
   * Concurrent callers share the next round trip. Rejects while the connection is down, after a second, and immediately
   * while an earlier answer is overdue.
   */
  drainAnnouncements(): Promise<void> {
    if (this.#nextRound === undefined) {
      const round = this.#round.then(() => this.#ask());
      this.#nextRound = round;
      this.#round = round.catch(() => undefined);
    }
    return this.#nextRound;
  }

  async close(): Promise<void> {
    this.#closed = true;
    clearTimeout(this.#timer);
    await this.#connecting;
    const client = this.#client;
    this.#client = undefined;
    await client?.end().catch(() => undefined);
  }

  /** Never rejects: a failed attempt is repeated later. */
  #connect(): Promise<void> {
    this.#connecting ??= this.#open().finally(() => {
      this.#connecting = undefined;
    });
    return this.#connecting;
  }

  async #open(): Promise<void> {
    if (this.#closed) return;
    const client = new pg.Client(this.#config);
    client.on('error', () => this.#lost(client));
    client.on('end', () => this.#lost(client));
    client.on('notification', (message) => deliver(message, this.#subscriptions));
    try {
      await client.connect();
      for (const channel of this.#channels()) {
        await answered(client.query(`LISTEN ${ident(channel).text}`), HEARTBEAT_ANSWER_MS);
      }
    } catch {
      client.end().catch(() => undefined);
      this.#tryLater();
      return;
    }
    this.#client = client;
    this.#retry = FIRST_RETRY_MS;
    for (const { onState } of this.#subscriptions) onState(true);
    this.#beat(client);
  }

  async #ask(): Promise<void> {
    this.#nextRound = undefined;
    const client = this.#client;
    if (client === undefined || client === this.#late) throw new Error('no notifications are heard');
    const answer = client.query('SELECT 1');
    try {
      await answered(answer, ROUND_MS);
    } catch (error) {
      this.#late = client;
      const settled = (): void => {
        if (this.#late === client) this.#late = undefined;
      };
      answer.then(settled, settled);
      throw error;
    }
  }

  #channels(): Set<string> {
    return new Set([...this.#subscriptions].map(({ channel }) => channel));
  }

  #beat(client: pg.Client): void {
    this.#timer = setTimeout(async () => {
      try {
        await answered(client.query('SELECT 1'), HEARTBEAT_ANSWER_MS);
        if (this.#client === client) this.#beat(client);
      } catch {
        this.#lost(client);
      }
    }, HEARTBEAT_MS).unref();
  }

  #lost(client: pg.Client): void {
    if (this.#client !== client) return;
    this.#client = undefined;
    client.end().catch(() => undefined);
    for (const { onState } of this.#subscriptions) onState(false);
    this.#tryLater();
  }

  #tryLater(): void {
    if (this.#closed) return;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#connect(), this.#retry).unref();
    this.#retry = Math.min(this.#retry * 2, LAST_RETRY_MS);
  }
}

/** Rejects after `ms` without an answer. Timers run before sockets are read, so a stalled process first reads. */
async function answered(answer: Promise<unknown>, ms: number): Promise<void> {
  const late = Promise.withResolvers<never>();
  const giveUp = (): void => late.reject(new Error('the database has not answered in time'));
  const timer = setTimeout(() => setImmediate(giveUp), ms);
  try {
    await Promise.race([answer, late.promise]);
  } finally {
    clearTimeout(timer);
  }
}
