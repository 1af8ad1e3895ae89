/** Reads and prunes the change log. A position in it is a snapshot, so a transaction that commits late is not skipped. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Cells, Database, Lane, Queryable } from '../database/contract.ts';
import { present } from '../invariant.ts';
import { param, raw, type Sql, sql, text } from '../sql.ts';
import { Snapshot } from './snapshot.ts';

/** A change of a row, as a trigger has written it. */
export interface ChangeEntry {
  readonly seq: number;
  readonly xid: string;
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
  readonly now: Moment;
  readonly life: string;
  /** Entries that were older than this moment may be gone. */
  readonly prunedAt: number;
  readonly entries: readonly ChangeEntry[];
  /** There are more entries than one page holds. */
  readonly isCut: boolean;
}

/** Entries that one page holds. */
const MOST_READ = 20_000;
/** Beyond so many transactions in flight, a position would be too long: the reader waits for fewer. */
const MOST_IN_FLIGHT = 200;
const IN_FLIGHT_PAUSE_MS = 20;
const PRUNED_TOGETHER = 5_000;
const MOST_LOGGED = 1_000_000;
const KEPT_SAMPLES = 100;
/** 'feed' as a number: one node prunes at a time. */
const PRUNE_LOCK = 0x66_65_65_64;

const STATE = raw('SELECT life::text, server FROM bylaw_change_log');
/** A server that was promoted numbers its transactions in another way. */
const TIMELINE = raw('SELECT timeline_id::text FROM pg_control_checkpoint()');
const NUMBERED_AHEAD = raw(`
SELECT coalesce(max(xid) >= pg_snapshot_xmax(pg_current_snapshot()), FALSE)
  FROM bylaw_changes`);

const ESTIMATED_ENTRIES = raw('SELECT coalesce(max(seq) - min(seq) + 1, 0)::text FROM bylaw_changes');

export class ChangeLog {
  readonly #db: Database;

  constructor(db: Database) {
    this.#db = db;
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
  async read(from: Snapshot | undefined, lane: Lane = 'urgent'): Promise<LogPage> {
    for (;;) {
      const page = pageOf(await this.#db.rows(pageStatement(from), { lane }));
      if (page.now.snapshot.inFlight.length <= MOST_IN_FLIGHT) return page;
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

  /** Deletes what a snapshot of `retention` seconds ago saw, and the older end of a log that is too long. */
  async prune(retention: number): Promise<void> {
    const pruned = await this.#db.transaction((tx) => takeSample(tx, retention));
    if (pruned === undefined) return;
    let deleted: number;
    do {
      deleted = await this.#db.transaction((tx) =>
        tx.run(sql`
          DELETE FROM bylaw_changes
           WHERE seq IN (
                 SELECT seq
                   FROM bylaw_changes
                  WHERE xid < pg_snapshot_xmax(${text(pruned)}::pg_snapshot)
                    AND pg_visible_in_snapshot(xid, ${text(pruned)}::pg_snapshot)
                  LIMIT ${raw(String(PRUNED_TOGETHER))})`),
      );
    } while (deleted === PRUNED_TOGETHER);
  }
}

async function beginLife(tx: Queryable, server: string): Promise<void> {
  await tx.run(raw('DELETE FROM bylaw_changes'));
  await tx.run(sql`
    UPDATE bylaw_change_log
       SET life = gen_random_uuid(), server = ${text(server)}, samples = '[]', pruned_at = '-infinity'`);
}

const MILLISECONDS_OF = (time: string): Sql => raw(`(extract(epoch FROM ${time}) * 1000)::text`);

function pageStatement(from: Snapshot | undefined): Sql {
  const isNew =
    from === undefined
      ? raw('FALSE')
      : sql`(e.xid >= ${text(from.xmax)}::xid8 OR e.xid = ANY(${param('text[]', from.inFlight)}::xid8[]))`;
  return sql`
    SELECT pg_current_snapshot()::text, ${MILLISECONDS_OF('statement_timestamp()')}, s.life::text,
           ${MILLISECONDS_OF("greatest(s.pruned_at, '1970-01-01')")},
           e.seq::text, e.xid::text, e.source, e.id, e.shape, to_json(e.before)::text, to_json(e.after)::text,
           ${MILLISECONDS_OF('e.at')}
      FROM bylaw_change_log s
      LEFT JOIN bylaw_changes e ON ${isNew}
     ORDER BY e.seq
     LIMIT ${raw(String(MOST_READ + 1))}`;
}

function pageOf(rows: readonly Cells[]): LogPage {
  const [snapshot, at, life, prunedAt] = present(rows[0], 'the state of the change log');
  const entries = rows[0]![4] === null ? [] : rows.slice(0, MOST_READ).map(logEntryOf);
  return {
    now: { snapshot: new Snapshot(snapshot!), at: Number(at) },
    life: life!,
    prunedAt: Number(prunedAt),
    entries,
    isCut: rows.length > MOST_READ,
  };
}

function logEntryOf(row: Cells): ChangeEntry {
  const [, , , , seq, xid, source, id, shape, before, after, at] = row;
  return {
    seq: Number(seq),
    xid: xid!,
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

interface LogSample {
  readonly snapshot: string;
  /** Milliseconds. */
  readonly at: number;
}

/** Remembers the present snapshot. → the snapshot whose entries have served their time. */
async function takeSample(tx: Queryable, retention: number): Promise<string | undefined> {
  const [locked] = await tx.rows(sql`SELECT pg_try_advisory_xact_lock(${param('int8', PRUNE_LOCK)})`);
  if (locked?.[0] !== 't') return undefined;
  const [row] = await tx.rows(sql`
    SELECT samples::text, pg_current_snapshot()::text, ${MILLISECONDS_OF('statement_timestamp()')},
           (SELECT ${MILLISECONDS_OF('at')}
              FROM bylaw_changes
             ORDER BY seq DESC
             LIMIT 1 OFFSET ${raw(String(MOST_LOGGED))})
      FROM bylaw_change_log`);
  const [known, snapshot, now, beyond] = present(row, 'the state of the change log');
  const samples = [...(JSON.parse(known!) as LogSample[]), { snapshot: snapshot!, at: Number(now) }];
  const bound = Math.max(Number(now) - retention * 1000, beyond === null ? 0 : Number(beyond));
  const last = samples.findLastIndex(({ at }) => at <= bound);
  const kept = thinned(samples.slice(Math.max(0, last)));
  await tx.run(sql`UPDATE bylaw_change_log SET samples = ${param('jsonb', JSON.stringify(kept))}`);
  if (last < 0) return undefined;
  const { at, snapshot: pruned } = samples[last]!;
  await tx.run(sql`UPDATE bylaw_change_log SET pruned_at = to_timestamp(${param('float8', at / 1000)})`);
  return pruned;
}

const thinned = (samples: readonly LogSample[]): readonly LogSample[] =>
  samples.length <= KEPT_SAMPLES ? samples : samples.filter((_, i) => i % 2 === 0 || i === samples.length - 1);
