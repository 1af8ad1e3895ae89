// @module-tag long
/** Readers that resume and do not read: each holds a page of a bounded size, however long the log is. */
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect, test } from 'vitest';
import { ChangeFeeds } from '../../src/changes/change-feeds.ts';
import { applyMigration } from '../../src/migrations/apply-migration.ts';
import { decide } from '../../src/policy/access.ts';
import { raw } from '../../src/sql.ts';
import { FeedCaller } from '../fuzz/changes/feed-caller.ts';
import { feedRequest, ignore, noFeedObserver as observer, manyPlaces as places } from '../support/feed-observer.ts';
import { openKind, schemaOf } from '../support/store-world.ts';
import { until } from '../support/until.ts';

const schema = schemaOf(`
collections:
  notes: { changes: true, fields: { title: string }, access: { list: true } }
`);
const ID = '00000001-0000-4000-8000-000000000000';
/** More than there are replays at a time. */
const READERS = 9;
const LARGE = 200;
const MIB = 1_048_576;
/** Two texts of each entry, and those of a decision, in the page that a reader holds. */
const MOST_HELD = 2.5 * MIB;
const NEVER = new Promise<void>(() => undefined);

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc') as () => void;

function usedBytes(): number {
  collect();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

test('a reader that lags holds no more than a page of the replay, and receives all in the end', async () => {
  const db = await openKind('embedded');
  await applyMigration(db, schema);
  const errors: unknown[] = [];
  const onError = (_: string, error: unknown): unknown => errors.push(error);
  const feeds = (await ChangeFeeds.open({ db, schema, place: 'here', places, observer, onError }))!;
  const subscribe = (since: string | undefined, pace: { lags: () => boolean; drained: () => Promise<void> }) => {
    const seen = { events: 0, position: '', isReady: false };
    const caller = new FeedCaller(schema, { id: ID, roles: [] }, decide);
    feeds.subscribe(
      { ...feedRequest(caller, 'notes'), since },
      {
        send: ({ type }, position) => {
          seen.position = position;
          if (type === 'ready') seen.isReady = true;
          else seen.events++;
        },
        beat: ignore,
        ...pace,
        end: ignore,
      },
    );
    return seen;
  };
  const quick = { lags: () => false, drained: () => Promise.resolve() };
  const insert = (count: number, length: number): Promise<number> =>
    db.run(
      raw(`INSERT INTO notes (id, title)
           SELECT gen_random_uuid(), repeat(md5(i::text), ${length / 32}) FROM generate_series(1, ${count}) i`),
    );
  const first = subscribe(undefined, quick);
  await until('a ready stream', () => first.isReady);
  const positions: string[] = [];
  for (let i = 0; i < READERS; i++) {
    await insert(1, 32);
    await feeds.look();
    positions.push(first.position);
  }
  // Six MiB, of which no page has more than a part.
  await insert(LARGE, 32_768);
  const before = usedBytes();
  const lagging: ReturnType<typeof subscribe>[] = [];
  for (const position of positions) {
    const reader = subscribe(position, { lags: () => true, drained: () => NEVER });
    await until('an event', () => reader.events > 0);
    lagging.push(reader);
  }
  // The buffers of the engine's answers are freed some turns after they are collected.
  await until('readers that hold a page', () => (usedBytes() - before) / READERS < MOST_HELD);
  const whole = subscribe(positions[0], quick);
  await until('the end of the replay', () => whole.isReady);
  expect(whole.events).toBe(READERS - 1 + LARGE);
  expect(lagging.every(({ events }) => events < LARGE)).toBe(true);
  await feeds.close();
  await db.close();
  expect(errors).toEqual([]);
});
