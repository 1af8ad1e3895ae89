/**
 * Reads from a standby while it is fresh, and from the primary otherwise: after a loss, after an
 * error that only the standby may have (it lacks a new column), while it lags behind, and for
 * callers whose last write it lacks.
 *
 * Nodes announce writes before acknowledging them, and receive all earlier announcements before a
 * read goes to the standby, so a caller sees its own writes through every node.
 */

import { raw } from '../../sql.ts';
import { inLane, QueueFull, type Reader, StoreError } from '../contract.ts';
import type { Listener } from '../listener.ts';
import { isQueryCanceled } from '../to-store-error.ts';
import { RecentWriters, WRITE_CHANNEL } from './recent-writers.ts';

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

/** The position of the primary itself under another name. */
const EVERYTHING = 1n << 64n;

interface Sample {
  readonly position: bigint;
  readonly at: number;
}

export class Replica {
  readonly #options: ReplicaOptions;
  readonly #writers: RecentWriters;
  /** Positions of the primary, the oldest first. */
  readonly #samples: Sample[] = [];
  /** The standby has everything that was committed before. */
  #freshAt = Number.NEGATIVE_INFINITY;
  /** The position of the standby at the last look. */
  #replayed = 0n;
  /** Until then, this node may have missed announcements of writes through other nodes. */
  #mayHaveMissedUntil = Number.NEGATIVE_INFINITY;
  #timer: NodeJS.Timeout | undefined;
  #isClosed = false;

  constructor(options: ReplicaOptions) {
    this.#options = options;
    const { primary, maxLag, listener } = options;
    this.#writers = new RecentWriters(maxLag, listener && inLane(primary, 'urgent'));
    this.#tend();
  }

  /** Hears of the writes through other nodes. */
  async listen(): Promise<void> {
    await this.#options.listener?.listen(
      WRITE_CHANNEL,
      (payload) => this.#writers.hear(payload),
      (isUp) => {
        // A missed announcement is older than the allowed lag then.
        this.#mayHaveMissedUntil = isUp ? performance.now() + this.#options.maxLag : Number.POSITIVE_INFINITY;
      },
    );
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

  /** Call it after a committed write through this node. */
  noteWrite(callerId: string): Promise<void> {
    return this.#writers.noteWrite(callerId);
  }

  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#timer);
  }

  get #isFresh(): boolean {
    const now = performance.now();
    return now - this.#freshAt <= this.#options.maxLag && now >= this.#mayHaveMissedUntil;
  }

  /** Resolves with true if the standby has all earlier writes of this caller. Never rejects. */
  async #hasWritesOf(callerId: string): Promise<boolean> {
    const mayAnswer = (): boolean => this.#isFresh && !this.#writers.isAhead(callerId, this.#replayed);
    if (!mayAnswer()) return false;
    try {
      await this.#options.listener?.drainAnnouncements();
    } catch {
      return false;
    }
    return mayAnswer();
  }

  /** Throws an error that is not the standby's own. */
  #mustFailOver(error: unknown): void {
    if (error instanceof StoreError && error.kind === 'time_limit') throw error;
    // The standby is overloaded; a failover would overload the primary.
    if (error instanceof QueueFull || isQueryCanceled(error)) throw error;
    // The next look decides whether it is used again.
    if (error instanceof StoreError && error.kind === 'unavailable') this.#freshAt = Number.NEGATIVE_INFINITY;
  }

  #tend(): void {
    this.#timer = setTimeout(async () => {
      await this.#look().catch(() => undefined);
      if (!this.#isClosed) this.#tend();
    }, SAMPLE_MS).unref();
  }

  async #look(): Promise<void> {
    const at = performance.now();
    const [primary] = await this.#options.primary.rows(PRIMARY_POSITION, { lane: 'urgent' });
    this.#samples.push({ position: BigInt(primary![0]!), at });
    if (this.#samples.length > MOST_SAMPLES) this.#samples.shift();
    const [standby] = await this.#options.standby.rows(STANDBY_POSITION, { lane: 'urgent' });
    const [position, startedAt] = standby!;
    // The same server under two names; a promoted standby has another start time.
    if (position === null && startedAt === primary![1]) {
      this.#freshAt = at;
      this.#replayed = EVERYTHING;
    }
    if (position === null || position === undefined) return;
    this.#replayed = BigInt(position);
    const last = this.#samples.findLastIndex((sample) => sample.position <= this.#replayed);
    if (last === -1) return;
    this.#freshAt = this.#samples[last]!.at;
    this.#samples.splice(0, last);
  }
}
