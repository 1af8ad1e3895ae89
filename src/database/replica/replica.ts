/**
 * Reads from a standby while it is fresh, and from the primary otherwise: after a loss, after an
 * error that only the standby may have (it lacks a new column), while it lags behind, and for
 * callers whose last write it lacks.
 *
 * Nodes announce writers before acknowledging their writes, and receive all earlier announcements before a
 * read goes to the standby, so a caller sees its own writes through every node.
 */
import { BoundedMap } from '../../bounded-map.ts';
import { inRounds } from '../../in-rounds.ts';
import { param, raw, sql, text } from '../../sql.ts';
import { succeeds } from '../../thrown.ts';
import { QueueFull, type Reader, StoreError } from '../contract.ts';
import type { Listener } from '../listener.ts';
import { isQueryCanceled } from '../to-store-error.ts';

const WRITE_CHANNEL = 'bylaw_writers';
const MOST_WRITERS = 100_000;
/** Milliseconds: the log of asynchronous commits is written a little later. */
const MARGIN_MS = 1_000;
const SAMPLE_MS = 200;
/** The most samples that are kept while the standby replays nothing. */
const MOST_SAMPLES = 300;

/** Positions in the write-ahead log are compared as numbers of bytes. */
const PRIMARY_POSITION = raw(`SELECT (pg_current_wal_lsn() - '0/0'::pg_lsn)::text, pg_postmaster_start_time()::text`);
const STANDBY_POSITION = raw(`
SELECT CASE WHEN pg_is_in_recovery() THEN (pg_last_wal_replay_lsn() - '0/0'::pg_lsn)::text END,
       pg_postmaster_start_time()::text`);

export interface ReplicaOptions {
  readonly standby: Pick<Reader, 'rows'>;
  readonly primary: Reader;
  /** Milliseconds. Reads return no older data. */
  readonly maxLag: number;
  /** Without it, nodes announce nothing, and only this node knows of writes through it. */
  readonly listener?: Pick<Listener, 'listen' | 'drainAnnouncements'> | undefined;
}

interface Sample {
  readonly position: bigint;
  readonly at: number;
}

export class Replica {
  readonly #options: ReplicaOptions;
  /** The time after the last known write of each caller. */
  readonly #wroteAt = new BoundedMap<string, number>(MOST_WRITERS);
  readonly #unannounced = new Set<string>();
  /** An announcement names all writers during the one before it. */
  readonly #announce = inRounds(() => this.#announceAll());
  /** Positions of the primary, the oldest first. */
  readonly #samples: Sample[] = [];
  /** The standby has everything that was committed before. */
  #freshAt = Number.NEGATIVE_INFINITY;
  /** This node may have missed announcements of earlier writes through other nodes. */
  #missedAt = Number.NEGATIVE_INFINITY;
  readonly #timer: NodeJS.Timeout;

  constructor(options: ReplicaOptions) {
    this.#options = options;
    // A look that takes long delays the next.
    const look = inRounds(() => this.#look());
    this.#timer = setInterval(() => void look().catch(() => undefined), SAMPLE_MS).unref();
  }

  /** Hears of the writes through other nodes. */
  async listen(): Promise<void> {
    await this.#options.listener?.listen({
      channel: WRITE_CHANNEL,
      onMessage: (callerId) => this.#wroteAt.set(callerId, performance.now()),
      onState: (isUp) => {
        this.#missedAt = isUp ? performance.now() : Number.POSITIVE_INFINITY;
      },
    });
  }

  /** Reads for a request that has arrived. The first one waits for the announcements of earlier writes. */
  for(callerId: string): Reader {
    const { standby, primary } = this.#options;
    let mayUseStandby: Promise<boolean> | undefined;
    return {
      rows: async (...asked) => {
        mayUseStandby ??= this.#hasWritesOf(callerId);
        if (!(await mayUseStandby) || !this.#isFresh) return primary.rows(...asked);
        return standby.rows(...asked).catch((error: unknown) => {
          this.#mustFailOver(error);
          return primary.rows(...asked);
        });
      },
      run: (statement) => primary.run(statement),
    };
  }

  /** Call it after the commit. Resolves when the write is announced, or its announcement has failed. */
  async noteWrite(callerId: string): Promise<void> {
    this.#wroteAt.set(callerId, performance.now());
    this.#unannounced.add(callerId);
    // Without the announcement, a node reads data that is older by the permitted lag at most.
    await this.#announce().catch(() => undefined);
  }

  close(): void {
    clearInterval(this.#timer);
  }

  get #isFresh(): boolean {
    return performance.now() - this.#freshAt <= this.#options.maxLag && this.#hasWritesUntil(this.#missedAt);
  }

  #hasWritesUntil(time: number): boolean {
    return time + MARGIN_MS <= this.#freshAt;
  }

  async #announceAll(): Promise<void> {
    const { listener, primary } = this.#options;
    const ids = [...this.#unannounced];
    this.#unannounced.clear();
    if (listener === undefined) return;
    // A notification for each writer, because a payload has at most 8,000 bytes.
    const announcement = sql`
      SELECT pg_notify(${text(WRITE_CHANNEL)}, id)
        FROM unnest(${param('text[]', ids)}) AS writers (id)`;
    await primary.rows(announcement, { lane: 'urgent' });
  }

  /** Resolves with true if the standby has all earlier writes of this caller. Never rejects. */
  async #hasWritesOf(callerId: string): Promise<boolean> {
    const mayAnswer = (): boolean =>
      this.#isFresh && this.#hasWritesUntil(this.#wroteAt.get(callerId) ?? Number.NEGATIVE_INFINITY);
    const { listener } = this.#options;
    return mayAnswer() && (listener === undefined || (await succeeds(listener.drainAnnouncements()))) && mayAnswer();
  }

  /** Throws an error that is not the standby's own. */
  #mustFailOver(error: unknown): void {
    if (error instanceof StoreError && error.kind === 'time_limit') throw error;
    // The standby is overloaded; a failover would overload the primary.
    if (error instanceof QueueFull || isQueryCanceled(error)) throw error;
    // The next look decides whether it is used again.
    if (error instanceof StoreError && error.kind === 'unavailable') this.#freshAt = Number.NEGATIVE_INFINITY;
  }

  async #look(): Promise<void> {
    const at = performance.now();
    const [primary] = await this.#options.primary.rows(PRIMARY_POSITION, { lane: 'urgent' });
    this.#samples.push({ position: BigInt(primary![0]!), at });
    if (this.#samples.length > MOST_SAMPLES) this.#samples.shift();
    const [standby] = await this.#options.standby.rows(STANDBY_POSITION, { lane: 'urgent' });
    const [position, startedAt] = standby!;
    // A server without a position was promoted, or is the primary under another name, with the same start time.
    const replayed = position ?? (startedAt === primary![1] ? primary![0] : undefined);
    if (replayed === null || replayed === undefined) return;
    const last = this.#samples.findLastIndex((sample) => sample.position <= BigInt(replayed));
    if (last === -1) return;
    this.#freshAt = this.#samples[last]!.at;
    this.#samples.splice(0, last);
  }
}
