/** Reads the change log. A position in it is a snapshot, so a transaction that commits late is not skipped. */
import { setTimeout as sleep } from 'node:timers/promises';
import { type Cells, type Database, type Lane, type Queryable, ROWS_TOO_LARGE } from '../database/contract.ts';
import { present } from '../invariant.ts';
import { asCaller, SERVICE } from '../queued-caller.ts';
import { join, param, raw, Sql, sql, text } from '../sql.ts';
import { Snapshot } from './snapshot.ts';
import { whenServed } from './when-served.ts';

/** A change of a row, as a trigger has written it. */
export interface ChangeEntry {
  readonly seq: number;
  readonly xid: number;
  /** The collection, or the table of links. */
  readonly source: string;
  /** Null: any number of rows changed. */
  readonly id: string | null;
  readonly shape: string;
  readonly before: Cells | null;
  readonly after: Cells | null;
  /** Milliseconds. */
  readonly at: number;
}

/** A snapshot, and when it was taken: milliseconds by the clock of the database. */
export interface Moment {
  readonly snapshot: Snapshot;
  readonly at: number;
}

export interface LogPage {
  /** The snapshot that sees the entries. */
  readonly now: Moment;
  /** Milliseconds, by the clock of the database. */
  readonly readAt: number;
  readonly life: string;
  /** Entries that were older than this moment may be gone. */
  readonly prunedAt: number;
  readonly entries: readonly ChangeEntry[];
  /** There are more entries than one page holds. */
  readonly isCut: boolean;
}

export interface AskedPages {
  /** The sources of the entries. Default: all. */
  readonly sources?: readonly string[] | undefined;
  /** Subscribers wait for the entries of this moment. Default: a replay. */
  readonly isLive?: boolean;
  /** Somebody waits for the pages: those that a full queue refuses are asked for again. Default: they are not. */
  readonly isWanted?: () => boolean;
  /** The moment, by `performance`, of which the first page has the state, or of a later one. Default: any of late. */
  readonly askedAt?: number;
}

interface AskedRows {
  readonly source: string;
  readonly shape: string;
  readonly ids: readonly string[];
}

/** A page that streams share. */
interface SharedPage {
  /** Milliseconds by `performance`: it has what was committed by then. */
  readonly at: number;
  readonly page: Promise<LogPage>;
}

/** The part of the log that is read. */
interface LogRange {
  /** The present snapshot sees its entries, and this one did not. Undefined: only the present moment is asked for. */
  readonly from: Snapshot | undefined;
  readonly sources?: readonly string[] | undefined;
  readonly most: number;
  /** Entries after this one, which another snapshot sees. */
  readonly rest?: { readonly after: number; readonly to: Snapshot };
}

/** Entries that `read` gives. */
const MOST_READ = 20_000;
/** The bounds of one of several pages, which is in memory at once. */
export interface PageBounds {
  readonly entries: number;
  /** A page of more bytes is read again, with half of its entries. */
  readonly bytes: number;
}
const PAGE: PageBounds = { entries: 500, bytes: 8_388_608 };
/** Each replay holds a page until its reader has taken the events: about as much as a reader may leave unread. */
const REPLAY_PAGE_BYTES = 524_288;
/** The next page may have more entries than one whose bytes were bounded. */
const PAGE_GROWTH = 1.25;
/** Streams that begin within this time share their first page. */
const PAGE_SHARED_MS = 50;
/** Beyond so many transactions in flight, or bytes, a position would be too long: the reader waits for fewer. */
const MOST_IN_FLIGHT = 200;
const MOST_SNAPSHOT_BYTES = 320;
const IN_FLIGHT_PAUSE_MS = 20;

const STATE = raw('SELECT life::text, server FROM bylaw_change_log');
/** A server that was promoted numbers its transactions in another way. */
const TIMELINE = raw('SELECT timeline_id::text FROM pg_control_checkpoint()');
const NUMBERED_AHEAD = raw(`
SELECT coalesce(max(xid) >= pg_snapshot_xmax(pg_current_snapshot()), FALSE)
  FROM bylaw_changes`);

const ESTIMATED_ENTRIES = raw('SELECT coalesce(max(seq) - min(seq) + 1, 0)::text FROM bylaw_changes');

export class ChangeLog {
  readonly #db: Database;
  readonly #bounds: PageBounds;
  readonly #firstPages = new Map<string, SharedPage>();

  constructor(db: Database, bounds = PAGE) {
    this.#db = db;
    this.#bounds = bounds;
  }

  /**
   * Begins another life of the log if its positions would mean other transactions now.
   *
   * @param place of the database, which its copies do not share
   */
  async open(place: string): Promise<void> {
    const history = await this.#timeline();
    await this.#db.transaction(async (tx) => {
      const server = `${place}/${history}`;
      const [state] = await tx.rows(STATE);
      const [ahead] = await tx.rows(NUMBERED_AHEAD);
      const known = present(state, 'the state of the change log')[1]!;
      if ((known === server || known === '') && ahead![0] !== 't') {
        if (known === '') await tx.run(sql`UPDATE bylaw_change_log SET server = ${text(server)}`);
        return;
      }
      await beginLife(tx, server);
    });
  }

  /** The entries that the present snapshot sees and `from` did not. Undefined: only the present moment is asked for. */
  read(from: Snapshot | undefined, lane: Lane = 'urgent'): Promise<LogPage> {
    return this.#page({ from, most: MOST_READ }, lane, Number.POSITIVE_INFINITY);
  }

  /** The same of some sources, but one page at most. */
  readOf(from: Snapshot, sources: readonly string[]): Promise<LogPage> {
    return this.#page({ from, sources, most: this.#bounds.entries }, 'urgent');
  }

  /** Rows as a snapshot has them, of those that have changed since and existed then. @param shape of the source */
  async rowsAt(snapshot: Snapshot, { source, shape, ids }: AskedRows): Promise<ReadonlyMap<string, Cells>> {
    const rows = await this.#db.rows(
      sql`
      SELECT DISTINCT ON (e.id) e.id, to_json(e.before)::text
        FROM bylaw_changes e
       WHERE ${notSeenBy(snapshot)}
         AND e.source = ${text(source)}
         AND e.shape = ${text(shape)}
         AND e.id = ANY(${param('text[]', ids)})
       ORDER BY e.id, e.seq`,
      { lane: 'urgent' },
    );
    return new Map(rows.flatMap(([id, before]) => (before == null ? [] : [[id!, loggedCellsOf(before)!] as const])));
  }

  /**
   * The same entries, however many, in pages that divide no commit of a record. The first one has the snapshot of all.
   */
  async *pages(
    from: Snapshot,
    { sources, isLive = false, isWanted = () => false, askedAt = 0 }: AskedPages = {},
  ): AsyncGenerator<LogPage> {
    const lane: Lane = isLive ? 'urgent' : 'slow';
    const served = <T>(work: () => Promise<T>): Promise<T> => (isLive ? work() : whenServed(work, isWanted));
    const commits = new DividedCommits();
    const range = { from, sources, most: this.#bounds.entries };
    const bytes = isLive ? this.#bounds.bytes : Math.min(this.#bounds.bytes, REPLAY_PAGE_BYTES);
    let page = await served(() => (isLive ? this.#page(range, lane) : this.#firstPage(range, bytes, askedAt)));
    const { now } = page;
    while (page.isCut) {
      const after = page.entries.at(-1)!.seq;
      const most = Math.min(this.#bounds.entries, Math.ceil(page.entries.length * PAGE_GROWTH));
      const met = commits.unknownOf(page.entries);
      const rest = { after, to: now.snapshot };
      if (met.length > 0) commits.add(await served(() => this.#db.rows(dividedStatement(met, rest), { lane })));
      yield { ...page, now, entries: commits.join(page.entries) };
      page = await served(() => this.#page({ ...range, most, rest }, lane, bytes));
    }
    yield { ...page, now, entries: commits.join(page.entries) };
  }

  /** Streams that resume at once, as after a restart, are at few places, and share the reading, which belongs to no caller. */
  #firstPage(range: LogRange, bytes: number, askedAt: number): Promise<LogPage> {
    const key = `${range.from?.text} ${range.sources}`;
    const known = this.#firstPages.get(key);
    if (known !== undefined && known.at >= askedAt) return known.page;
    const page = asCaller(SERVICE, () => this.#page(range, 'slow', bytes));
    const read = { at: performance.now(), page };
    const forget = (): boolean => this.#firstPages.get(key) === read && this.#firstPages.delete(key);
    this.#firstPages.set(key, read);
    page.then(() => setTimeout(forget, PAGE_SHARED_MS), forget);
    return page;
  }

  async #page(range: LogRange, lane: Lane, mostBytes = this.#bounds.bytes): Promise<LogPage> {
    for (let { most } = range; ; ) {
      const { shape, params } = pageStatement({ ...range, most });
      const rowBytes = { most: most === 1 ? Number.POSITIVE_INFINITY : mostBytes, read: 0 };
      const rows = await this.#db.rows(new Sql(shape, params, rowBytes), { lane });
      if (rows === ROWS_TOO_LARGE) {
        most = Math.floor(most / 2);
        continue;
      }
      const page = pageOf(rows, most);
      const { inFlight, bytes } = page.now.snapshot;
      if (inFlight.length <= MOST_IN_FLIGHT && bytes.length <= MOST_SNAPSHOT_BYTES) return page;
      await sleep(IN_FLIGHT_PAUSE_MS);
    }
  }

  /** Empty where the server does not say. */
  async #timeline(): Promise<string> {
    const rows = await this.#db.rows(TIMELINE, { lane: 'urgent' }).catch(() => []);
    return rows[0]?.[0] ?? '';
  }

  /** The numbers of failed transactions count too. */
  async estimatedEntries(): Promise<number> {
    const [row] = await this.#db.rows(ESTIMATED_ENTRIES, { lane: 'slow' });
    return Number(row![0]);
  }
}

async function beginLife(tx: Queryable, server: string): Promise<void> {
  await tx.run(raw('DELETE FROM bylaw_changes'));
  await tx.run(sql`
    UPDATE bylaw_change_log
       SET life = gen_random_uuid(), server = ${text(server)}, samples = '[]', pruned_at = '-infinity'`);
}

export const MILLISECONDS_OF = (time: string): Sql => raw(`(extract(epoch FROM ${time}) * 1000)::text`);

/** The entries that a snapshot does not see. */
const notSeenBy = ({ xmax, inFlight }: Snapshot): Sql =>
  sql`(e.xid >= ${text(String(xmax))}::xid8 OR e.xid = ANY(${param('text[]', inFlight.map(String))}::xid8[]))`;

function pageStatement({ from, sources, most, rest }: LogRange): Sql {
  const isAsked = [
    from === undefined ? raw('FALSE') : notSeenBy(from),
    ...(sources === undefined ? [] : [sql`e.source = ANY(${param('text[]', sources)})`]),
    ...(rest === undefined ? [] : [sql`e.seq > ${param('int8', rest.after)}`, sql`NOT ${notSeenBy(rest.to)}`]),
  ];
  return sql`
    SELECT pg_current_snapshot()::text, ${MILLISECONDS_OF('statement_timestamp()')}, s.life::text,
           ${MILLISECONDS_OF("greatest(s.pruned_at, '1970-01-01')")},
           e.seq::text, e.xid::text, e.source, e.id, e.shape, to_json(e.before)::text, to_json(e.after)::text,
           ${MILLISECONDS_OF('e.at')}
      FROM bylaw_change_log s
      LEFT JOIN bylaw_changes e ON ${join(isAsked, ' AND ')}
     ORDER BY e.seq
     LIMIT ${raw(String(most + 1))}`;
}

/** The last entries of commits that change a record again behind a page. Each entry of a table of links counts by itself. */
function dividedStatement(xids: readonly number[], { after, to }: NonNullable<LogRange['rest']>): Sql {
  return sql`
    SELECT e.xid::text, e.source, e.id, max(e.seq)::text
      FROM bylaw_changes e
     WHERE e.xid = ANY(${param('text[]', xids.map(String))}::xid8[])
       AND NOT ${notSeenBy(to)}
       AND e.id IS NOT NULL
       AND position('__' IN e.source) = 0
     GROUP BY e.xid, e.source, e.id
    HAVING count(*) > 1 AND max(e.seq) > ${param('int8', after)}`;
}

/** The changes of a record in one commit whose entries are in several pages: the page of the last one has all. */
class DividedCommits {
  readonly #known = new Set<number>();
  readonly #last = new Map<string, number>();
  readonly #first = new Map<string, ChangeEntry>();

  /** The commits that no earlier page has met. */
  unknownOf(entries: readonly ChangeEntry[]): readonly number[] {
    const met = new Set(entries.map(({ xid }) => xid)).difference(this.#known);
    for (const xid of met) this.#known.add(xid);
    return [...met];
  }

  add(rows: readonly Cells[]): void {
    for (const [xid, source, id, last] of rows) this.#last.set(`${xid} ${source} ${id}`, Number(last));
  }

  join(entries: readonly ChangeEntry[]): readonly ChangeEntry[] {
    if (this.#last.size === 0) return entries;
    return entries.flatMap((entry) => {
      const key = `${entry.xid} ${entry.source} ${entry.id}`;
      const last = this.#last.get(key);
      if (last === undefined) return [entry];
      const first = this.#first.get(key) ?? entry;
      this.#first.set(key, first);
      if (entry.seq < last) return [];
      this.#last.delete(key);
      this.#first.delete(key);
      return [{ ...entry, before: first.before }];
    });
  }
}

function pageOf(rows: readonly Cells[], most: number): LogPage {
  const [snapshot, at, life, prunedAt] = present(rows[0], 'the state of the change log');
  const entries = rows[0]![4] === null ? [] : rows.slice(0, most).map(logEntryOf);
  return {
    now: { snapshot: Snapshot.of(snapshot!), at: Number(at) },
    readAt: Number(at),
    life: life!,
    prunedAt: Number(prunedAt),
    entries,
    isCut: rows.length > most,
  };
}

function logEntryOf(row: Cells): ChangeEntry {
  const [, , , , seq, xid, source, id, shape, before, after, at] = row;
  return {
    seq: Number(seq),
    xid: Number(xid),
    source: source!,
    id: id ?? null,
    shape: shape!,
    before: loggedCellsOf(before),
    after: loggedCellsOf(after),
    at: Number(at),
  };
}

const loggedCellsOf = (json: string | null | undefined): Cells | null =>
  json == null ? null : (JSON.parse(json) as Cells);
