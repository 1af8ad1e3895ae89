/**
 * The recent writers, and the position in the log that a standby must reach to have their writes.
 * Each node announces its writers to all nodes, with a position behind their writes.
 */
import { BoundedMap } from '../../bounded-map.ts';
import { type Sql, sql, text } from '../../sql.ts';
import type { Queryable } from '../contract.ts';
import { inRounds } from '../in-rounds.ts';

export const WRITE_CHANNEL = 'bylaw_wrote';

const MOST_WRITERS = 100_000;
/** Milliseconds beyond the lag: the log of asynchronous commits is written a little later. */
const MARGIN_MS = 1_000;
/** Ids in one notification, whose payload is at most 8,000 bytes. */
const MOST_IDS = 200;

/** The payload is `POSITION:ID,ID,…`; the position is behind all that is committed so far. */
const announcement = (ids: readonly string[]): Sql => sql`
  SELECT log.position, pg_notify(${text(WRITE_CHANNEL)}, log.position || ':' || ${text(ids.join(','))})
    FROM (SELECT (pg_current_wal_insert_lsn() - '0/0'::pg_lsn)::text AS position) AS log`;

interface RecentWriter {
  readonly until: number;
  /** The greatest known position. */
  readonly position: bigint;
  /** The last write through this node, until its position is known: no standby has reached it. */
  readonly pending: symbol | undefined;
}

export class RecentWriters {
  readonly #keepMs: number;
  readonly #primary: Pick<Queryable, 'rows'> | undefined;
  readonly #entries = new BoundedMap<string, RecentWriter>(MOST_WRITERS);
  readonly #unannounced = new Set<string>();
  /** An announcement names all writers during the one before it. */
  readonly #announce = inRounds(() => this.#announceAll());

  /**
   * @param maxLag milliseconds; every readable standby has older writes
   * @param primary sends announcements; without it, only this node knows of writes through it
   */
  constructor(maxLag: number, primary?: Pick<Queryable, 'rows'>) {
    this.#keepMs = maxLag + MARGIN_MS;
    this.#primary = primary;
  }

  /** Call it after the commit. Resolves when the write is announced, or its announcement has failed. */
  async noteWrite(callerId: string): Promise<void> {
    const pending = Symbol(callerId);
    this.#note(callerId, 0n, pending);
    this.#unannounced.add(callerId);
    // Without the announcement, a node reads data that is older by the permitted lag at most.
    const position = await this.#announce().catch(() => undefined);
    if (position === undefined || this.#entries.get(callerId)?.pending !== pending) return;
    this.#note(callerId, position, undefined);
  }

  /** Takes an announcement of any node. */
  hear(payload: string): void {
    const [position = '0', ids = ''] = payload.split(':');
    for (const id of ids.split(',')) this.#note(id, BigInt(position), this.#entries.get(id)?.pending);
  }

  /** Returns true if a standby at position `replayed` may lack a write of the caller. */
  isAhead(callerId: string, replayed: bigint): boolean {
    const entry = this.#entries.get(callerId);
    if (entry === undefined || entry.until <= performance.now()) return false;
    return entry.pending !== undefined || entry.position > replayed;
  }

  async #announceAll(): Promise<bigint | undefined> {
    const ids = [...this.#unannounced];
    this.#unannounced.clear();
    let position: bigint | undefined;
    for (let at = 0; at < ids.length; at += MOST_IDS) {
      const rows = await this.#primary?.rows(announcement(ids.slice(at, at + MOST_IDS)));
      position = rows && BigInt(rows[0]![0]!);
    }
    return position;
  }

  #note(callerId: string, position: bigint, pending: symbol | undefined): void {
    const known = this.#entries.get(callerId)?.position ?? 0n;
    const greatest = known > position ? known : position;
    this.#entries.set(callerId, { until: performance.now() + this.#keepMs, position: greatest, pending });
  }
}
