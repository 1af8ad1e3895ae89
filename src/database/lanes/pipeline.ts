/**
 * Quick SELECTs over a few connections, on which statements are sent without waiting for the answers before them. The
 * statements of one turn of the event loop go out in one write, a few before each Sync: for PostgreSQL too, a write
 * costs as much as a small read. A connection that stays silent is given up, with all its statements.
 */
import type pg from 'pg';
import type { Sql } from '../../sql.ts';
import { type Cells, QueueFull, StoreError } from '../contract.ts';
import { abandonConnection, bytesReadOf, type TogetherError } from '../pg-internals.ts';
import { isServerError } from '../to-store-error.ts';
import type { Plan, SessionSettings } from './session-settings.ts';
import type { Statements } from './statements.ts';

/** Milliseconds without a byte of an answer after which a quick connection is given up. */
export const SILENCE_MS = 100;
/** Statements that wait on one connection. Above it, an answer would come too late to be of use. */
export const MOST_PENDING = 2_000;
/** Statements of one turn that a connection gets before another one does, and statements before one Sync. */
const MOST_GATHERED = 4;

export interface PipelineOptions {
  readonly connect: () => Promise<pg.Client>;
  readonly statements: Statements;
  readonly settings: SessionSettings;
  /** Connections. */
  readonly size: number;
}

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

  constructor(options: PipelineOptions) {
    this.#connections = Array.from({ length: options.size }, () => new PipelinedConnection(options));
  }

  /** Rejects with `NotAnswered`, or the loss of the connection, if the statement itself is not to blame. */
  rows(statement: Sql, plan: Plan): Promise<readonly Cells[]> {
    const connection =
      this.#connections.find(({ unsent }) => unsent > 0 && unsent < MOST_GATHERED) ?? this.#leastBusy();
    if (connection.pending >= MOST_PENDING) throw new QueueFull(1_000);
    return new Promise((resolve, reject) => connection.send({ statement, plan, resolve, reject }));
  }

  async close(): Promise<void> {
    await Promise.all(this.#connections.map((connection) => connection.close()));
  }

  #leastBusy(): PipelinedConnection {
    return this.#connections.reduce((best, each) => (each.pending < best.pending ? each : best));
  }
}

/** Connects with its first statement, and again after a loss. */
class PipelinedConnection {
  readonly #options: PipelineOptions;
  #client: pg.Client | undefined;
  #connecting: Promise<pg.Client> | undefined;
  #isClosed = false;
  #unsent: PendingRead[] = [];
  /** Sent, in the order of their answers. */
  #sent: ReadGroup[] = [];
  #sentCount = 0;
  /**
   * The time of the last answer, or of the first statement after a pause; and the bytes received
   * until the last look.
   */
  #heardAt = 0;
  #bytesRead = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(options: PipelineOptions) {
    this.#options = options;
  }

  get unsent(): number {
    return this.#unsent.length;
  }

  get pending(): number {
    return this.#sentCount + this.#unsent.length;
  }

  send(asked: PendingRead): void {
    this.#unsent.push(asked);
    if (this.#unsent.length === 1) setImmediate(() => void this.#sendUnsent());
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#connecting?.catch(() => undefined);
    await this.#client?.end();
  }

  async #sendUnsent(): Promise<void> {
    const client = this.#client ?? (await this.#connect().catch((error: unknown) => this.#failUnsent(error)));
    if (client === undefined) return;
    const unsent = this.#unsent;
    this.#unsent = [];
    if (this.#sentCount === 0) this.#heardAt = performance.now();
    for (const group of gatheredGroups(unsent)) void this.#sendGroup(client, group);
    this.#watch();
  }

  #failUnsent(error: unknown): undefined {
    for (const { reject } of this.#unsent.splice(0)) reject(error);
  }

  #connect(): Promise<pg.Client> {
    this.#connecting ??= this.#open().finally(() => {
      this.#connecting = undefined;
    });
    return this.#connecting;
  }

  async #open(): Promise<pg.Client> {
    if (this.#isClosed) throw new StoreError('unavailable', undefined, new Error('the database is closed'));
    const client = await this.#options.connect();
    const lose = (): void => this.#lose(client);
    client.on('error', lose);
    client.on('end', lose);
    this.#client = client;
    return client;
  }

  /** Statements under way still get their answers or errors; new ones get another connection. */
  #lose(client: pg.Client): void {
    if (this.#client !== client) return;
    this.#client = undefined;
    client.end().catch(() => undefined);
  }

  async #sendGroup(client: pg.Client, group: ReadGroup): Promise<void> {
    const { statements, settings } = this.#options;
    this.#sent.push(group);
    this.#sentCount += group.length;
    settings.setPlan(client, group[0]!.plan);
    try {
      const outcomes = await statements.sendTogether(
        client,
        group.map(({ statement }) => statement),
      );
      const took = this.#tookOf(group) / group.length;
      for (const [i, { statement, resolve }] of group.entries()) {
        statements.history.noteAnswer(statement.text, took);
        resolve(outcomes[i]!.rows);
      }
    } catch (error) {
      this.#tookOf(group);
      this.#failGroup(group, error as TogetherError);
    }
  }

  #failGroup(group: ReadGroup, { cause, completed }: TogetherError): void {
    for (const [i, { statement, reject }] of group.entries()) {
      this.#options.statements.history.noteFailure(statement.text);
      const isCulprit = i === completed || group.length === 1;
      reject(isServerError(cause) && isCulprit ? cause : new NotAnswered('not answered', { cause }));
    }
  }

  /** Milliseconds since the answer before; a group that fails with its connection may be anywhere in the order. */
  #tookOf(group: ReadGroup): number {
    this.#sent.splice(this.#sent.indexOf(group), 1);
    this.#sentCount -= group.length;
    const now = performance.now();
    const took = now - this.#heardAt;
    this.#heardAt = now;
    return took;
  }

  /** Timers run before sockets are read, so a look after a stall of the program first lets it read the answers. */
  #watch(): void {
    this.#timer ??= setTimeout(() => {
      setImmediate(() => {
        this.#timer = undefined;
        this.#look();
      });
    }, SILENCE_MS);
  }

  #look(): void {
    const client = this.#client;
    if (client === undefined || this.#sentCount === 0) return;
    const now = performance.now();
    const bytes = bytesReadOf(client);
    if (bytes !== this.#bytesRead) this.#heardAt = Math.max(this.#heardAt, now - SILENCE_MS / 2);
    this.#bytesRead = bytes;
    if (now - this.#heardAt < SILENCE_MS) this.#watch();
    else {
      for (const { statement } of this.#sent[0]!)
        this.#options.statements.history.noteAnswer(statement.text, SILENCE_MS);
      this.#lose(client);
      abandonConnection(client);
    }
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
