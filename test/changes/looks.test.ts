// @module-tag long
/** Looks of a node that has no news: other programs write to a server, and the connection that brings news may be lost. */
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { ChangeFeeds } from '../../src/changes/change-feeds.ts';
import { ChangeLog } from '../../src/changes/change-log.ts';
import { pruneLog } from '../../src/changes/log-pruning.ts';
import type { Database, Subscription } from '../../src/database/contract.ts';
import { openDatabase } from '../../src/database/open-database.ts';
import { applyMigration } from '../../src/migrations/apply-migration.ts';
import { decide } from '../../src/policy/access.ts';
import { raw } from '../../src/sql.ts';
import { FeedCaller } from '../fuzz/changes/feed-caller.ts';
import { feedRequest, ignore, noFeedObserver as observer, manyPlaces as places } from '../support/feed-observer.ts';
import { hasPostgres, postgresUrl, schemaOf } from '../support/store-world.ts';
import { until } from '../support/until.ts';

const schema = schemaOf(`
collections:
  notes: { changes: { retention: 1h }, fields: { title: string }, access: { list: true } }
`);
const caller = new FeedCaller(schema, { id: '00000001-0000-4000-8000-000000000000', roles: [] }, decide);
const MOST_ENTRIES = 1_000;

test('a reader waits until 200 transactions at most are in flight: a position would be too long', async () => {
  const snapshots = [201, 201, 200].map((count) => {
    const inFlight = Array.from({ length: count }, (_, i) => 1_000 + i);
    return `1000:2000:${inFlight.join()}`;
  });
  const asked: string[] = [];
  const rows = async () => {
    asked.push(snapshots.shift()!);
    return [[asked.at(-1)!, '5', 'life', '0', null, null, null, null, null, null, null, null]];
  };
  const page = await new ChangeLog({ rows } as unknown as Database).read(undefined);
  expect([asked.length, page.now.snapshot.inFlight.length]).toEqual([3, 200]);
});

describe.skipIf(!hasPostgres)('a node without news', () => {
  let db: Database;
  let feeds: ChangeFeeds;
  let news: Subscription;
  let looks = 0;
  const errors: unknown[] = [];
  beforeAll(async () => {
    db = await openDatabase({ url: await postgresUrl() });
    await applyMigration(db, schema);
    vi.useFakeTimers({ toFake: ['setInterval', 'performance'] });
    const watched: Database = {
      ...db,
      rows: (statement, options) => {
        if (statement.text.includes('FROM bylaw_change_log s')) looks++;
        return db.rows(statement, options);
      },
      listen: async (subscription) => {
        news = subscription;
        return async () => undefined;
      },
    };
    const onError = (_: string, error: unknown) => errors.push(error);
    feeds = (await ChangeFeeds.open({ db: watched, schema, place: 'here', places, observer, onError }))!;
  });
  afterAll(async () => {
    vi.useRealTimers();
    await feeds.close();
    await db.close();
    expect(errors).toEqual([]);
  });
  const subscribe = async (since?: string) => {
    const stream = { seen: [] as string[], position: '', leave: ignore };
    const subscriber = feeds.subscribe(feedRequest(caller, 'notes', since), {
      send: ({ type, data }, position) => {
        stream.seen.push(type === 'enter' ? JSON.parse(`{${data}}`).record.title : `${type}${data}`);
        stream.position = position;
      },
      beat: ignore,
      lags: () => false,
      drained: async () => undefined,
      end: ignore,
    });
    stream.leave = () => feeds.leave(subscriber, 'reader');
    await until('a ready stream', () => stream.seen.includes('ready'));
    return stream;
  };
  const insert = (title: string) => db.run(raw(`INSERT INTO notes (id, title) VALUES (gen_random_uuid(), '${title}')`));
  /** The looks of so many milliseconds. */
  const looksIn = async (ms: number): Promise<number> => {
    const before = looks;
    vi.advanceTimersByTime(ms);
    await new Promise(setImmediate);
    return looks - before;
  };

  test('it reads the log every second, and every 200 ms while the connection for news is lost', async () => {
    const { seen, leave } = await subscribe();
    await insert('a');
    expect([await looksIn(800), await looksIn(200)]).toEqual([0, 1]);
    await until('the write of another program', () => seen.includes('a'));
    news.onState(false);
    await insert('b');
    expect(await looksIn(200)).toBe(1);
    await until('a write without news', () => seen.includes('b'));
    expect(await looksIn(200)).toBe(1);
    const before = looks;
    news.onState(true);
    await until('a look for the news that were lost', () => looks > before);
    expect(await looksIn(200)).toBe(0);
    leave();
  });

  test('the log has a bounded number of entries, and a reader that has not seen an older one lists again', async () => {
    const first = await subscribe();
    first.leave();
    await insert('old');
    await pruneLog(db, 3_600, MOST_ENTRIES);
    const entries = `generate_series(1, ${MOST_ENTRIES})`;
    await db.run(
      raw(`INSERT INTO bylaw_changes (xid, source, shape) SELECT pg_current_xact_id(), 'teams', 'x' FROM ${entries}`),
    );
    const countEntries = async () => Number((await db.rows(raw('SELECT count(*) FROM bylaw_changes')))[0]![0]);
    expect(await countEntries()).toBeGreaterThan(MOST_ENTRIES);
    await pruneLog(db, 3_600, MOST_ENTRIES);
    expect(await countEntries()).toBe(MOST_ENTRIES);
    expect((await subscribe(first.position)).seen).toEqual(['reset"reason":"position"', 'ready']);
  });

  test('the bound of the log is a million entries', async () => {
    const asked: string[] = [];
    const watched: Database = {
      ...db,
      transaction: (work) =>
        db.transaction((tx) =>
          work({
            ...tx,
            rows: (statement) => {
              asked.push(statement.text);
              return tx.rows(statement);
            },
          }),
        ),
    };
    await pruneLog(watched, 3_600);
    expect(asked).toContainEqual(expect.stringMatching(/\bOFFSET 1000000\)/));
  });
});
