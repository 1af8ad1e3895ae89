/** Deletes the old end of the change log: earlier snapshots show which entries have served their time. */
import type { Database, Queryable } from '../database/contract.ts';
import { present } from '../invariant.ts';
import { param, raw, sql, text } from '../sql.ts';
import { MILLISECONDS_OF } from './change-log.ts';

const PRUNED_TOGETHER = 5_000;
const MOST_LOGGED = 1_000_000;
const KEPT_SAMPLES = 100;
/** 'feed' as a number: one node prunes at a time. */
const PRUNE_LOCK = 0x66_65_65_64;

/** Deletes what a snapshot of `retention` seconds ago saw, and the older end of a log that is too long. */
export async function pruneLog(db: Database, retention: number, most = MOST_LOGGED): Promise<void> {
  const pruned = await db.transaction((tx) => takeSample(tx, retention, most));
  if (pruned === undefined) return;
  let deleted: number;
  do {
    deleted = await db.transaction(async (tx) => ((await prunesAlone(tx)) ? deleteSome(tx, pruned) : 0));
  } while (deleted === PRUNED_TOGETHER);
}

/** Until the end of the transaction, no other node prunes. */
async function prunesAlone(tx: Queryable): Promise<boolean> {
  const [locked] = await tx.rows(sql`SELECT pg_try_advisory_xact_lock(${param('int8', PRUNE_LOCK)})`);
  return locked?.[0] === 't';
}

const deleteSome = (tx: Queryable, pruned: string): Promise<number> =>
  tx.run(sql`
    DELETE FROM bylaw_changes
     WHERE seq IN (
           SELECT seq
             FROM bylaw_changes
            WHERE xid < pg_snapshot_xmax(${text(pruned)}::pg_snapshot)
              AND pg_visible_in_snapshot(xid, ${text(pruned)}::pg_snapshot)
            LIMIT ${raw(String(PRUNED_TOGETHER))})`);

interface LogSample {
  readonly snapshot: string;
  /** Milliseconds. */
  readonly at: number;
}

/** Remembers the present snapshot. → the snapshot whose entries have served their time. */
async function takeSample(tx: Queryable, retention: number, most: number): Promise<string | undefined> {
  if (!(await prunesAlone(tx))) return undefined;
  const [row] = await tx.rows(sql`
    SELECT samples::text, pg_current_snapshot()::text, ${MILLISECONDS_OF('statement_timestamp()')},
           (SELECT ${MILLISECONDS_OF('at')}
              FROM bylaw_changes
             ORDER BY seq DESC
             LIMIT 1 OFFSET ${raw(String(most))})
      FROM bylaw_change_log`);
  const [known, snapshot, now, beyond] = present(row, 'the state of the change log');
  const samples = [...(JSON.parse(known!) as LogSample[]), { snapshot: snapshot!, at: Number(now) }];
  const tooOld = samples.findLastIndex(({ at }) => at <= Number(now) - retention * 1000);
  // The present snapshot would leave no entry.
  const tooMany = Math.min(
    samples.findIndex(({ at }) => at > Number(beyond ?? now)),
    samples.length - 2,
  );
  const last = Math.max(tooOld, tooMany);
  const kept = thinned(samples.slice(Math.max(0, last)));
  await tx.run(sql`UPDATE bylaw_change_log SET samples = ${param('jsonb', JSON.stringify(kept))}`);
  if (last < 0) return undefined;
  const { at, snapshot: pruned } = samples[last]!;
  await tx.run(sql`UPDATE bylaw_change_log SET pruned_at = to_timestamp(${param('float8', at / 1000)})`);
  return pruned;
}

const thinned = (samples: readonly LogSample[]): readonly LogSample[] =>
  samples.length <= KEPT_SAMPLES ? samples : samples.filter((_, i) => i % 2 === 0 || i === samples.length - 1);
