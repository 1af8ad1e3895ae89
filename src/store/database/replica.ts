/**
 * Reads from a standby while it is fresh, and from the primary otherwise: after a loss, after an
 * error that only the standby may have (a column that it has not got yet), while it lags behind,
 * and for callers who have just written.
 */

import type { Sql } from '../../sql.ts';
import { raw } from '../../sql.ts';
import { type Cells, type Queryable, QueueFull, type Reader, StoreError } from './contract.ts';
import { RecentWriters } from './recent-writers.ts';
import { isQueryCanceled } from './to-store-error.ts';

const SAMPLE_MS = 200;
/**
 * Who wrote once soon writes again. The news of that may arrive at another node after the next read
 * there, which then goes to the primary all the same. Milliseconds.
 */
const WRITING_MS = 10_000;
/** How many samples are waited for at most where the standby stands still. */
const MOST_SAMPLES = 300;

/** Positions in the write-ahead log are compared as numbers of bytes. */
const PRIMARY_POSITION = raw(`SELECT (pg_current_wal_lsn() - '0/0'::pg_lsn)::text, pg_postmaster_start_time()::text`);
const STANDBY_POSITION = raw(`
SELECT CASE WHEN pg_is_in_recovery() THEN (pg_last_wal_replay_lsn() - '0/0'::pg_lsn)::text END,
       pg_postmaster_start_time()::text`);

export interface ReplicaOptions {
  readonly standby: Pick<Reader, 'rows' | 'slowRows'>;
  readonly primary: Reader;
  /** Connections of the two for the look at their positions. */
  readonly standbyProbe: Pick<Queryable, 'rows'>;
  readonly primaryProbe: Pick<Queryable, 'rows'>;
  /** Milliseconds. Nothing older is read. */
  readonly maxLag: number;
}

interface Sample {
  readonly position: bigint;
  readonly at: number;
}

export class Replica implements Reader {
  readonly #options: ReplicaOptions;
  readonly #writers: RecentWriters;
  /** Positions of the primary, the oldest first. */
  readonly #samples: Sample[] = [];
  /** Everything that was committed before is on the standby. */
  #freshAt = Number.NEGATIVE_INFINITY;
  /** Until then, other nodes may have told of writes that this one did not hear of. */
  #deafUntil = Number.NEGATIVE_INFINITY;
  #timer: NodeJS.Timeout | undefined;
  #isClosed = false;

  constructor(options: ReplicaOptions) {
    this.#options = options;
    this.#writers = new RecentWriters(Math.max(options.maxLag, WRITING_MS));
    this.#tend();
  }

  get isFresh(): boolean {
    const now = performance.now();
    return now - this.#freshAt <= this.#options.maxLag && now >= this.#deafUntil;
  }

  /** Who has just written reads what was written. */
  for(callerId: string): Reader {
    return this.#writers.has(callerId) ? this.#options.primary : this;
  }

  noteWrite(callerId: string): void {
    this.#writers.add(callerId);
  }

  /** Whether the notifications of other nodes arrive. */
  hears(isUp: boolean): void {
    // What was not heard of is as old as the permitted lag by then.
    this.#deafUntil = isUp ? performance.now() + this.#options.maxLag : Number.POSITIVE_INFINITY;
  }

  rows(statement: Sql): Promise<readonly Cells[]> {
    return this.#read((reader) => reader.rows(statement));
  }

  slowRows(statement: Sql, limitMs?: number): Promise<readonly Cells[]> {
    return this.#read((reader) => reader.slowRows(statement, limitMs));
  }

  run(statement: Sql): Promise<number> {
    return this.#options.primary.run(statement);
  }

  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#timer);
  }

  async #read(
    ask: (reader: Pick<Reader, 'rows' | 'slowRows'>) => Promise<readonly Cells[]>,
  ): Promise<readonly Cells[]> {
    const { standby, primary } = this.#options;
    if (!this.isFresh) return ask(primary);
    try {
      return await ask(standby);
    } catch (error) {
      if (error instanceof StoreError && error.kind === 'time_limit') throw error;
      // It is reached, and has enough to do: the primary would get all of that at once.
      if (error instanceof QueueFull || (error instanceof StoreError && isQueryCanceled(error.cause))) throw error;
      // The next look decides whether it is used again.
      if (error instanceof StoreError && error.kind === 'unavailable') this.#freshAt = Number.NEGATIVE_INFINITY;
      return ask(primary);
    }
  }

  #tend(): void {
    this.#timer = setTimeout(async () => {
      await this.#look().catch(() => undefined);
      if (!this.#isClosed) this.#tend();
    }, SAMPLE_MS).unref();
  }

  async #look(): Promise<void> {
    const at = performance.now();
    const [primary] = await this.#options.primaryProbe.rows(PRIMARY_POSITION);
    this.#samples.push({ position: BigInt(primary![0]!), at });
    if (this.#samples.length > MOST_SAMPLES) this.#samples.shift();
    const [standby] = await this.#options.standbyProbe.rows(STANDBY_POSITION);
    const [position, startedAt] = standby!;
    // The same server under two names; a standby that was promoted is another.
    if (position === null && startedAt === primary![1]) this.#freshAt = at;
    if (position === null || position === undefined) return;
    const replayed = BigInt(position);
    const last = this.#samples.findLastIndex((sample) => sample.position <= replayed);
    if (last === -1) return;
    this.#freshAt = this.#samples[last]!.at;
    this.#samples.splice(0, last);
  }
}
