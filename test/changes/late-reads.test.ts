// @module-tag long
/** Reads of a batch that come late: a full queue refuses them, or other writes come between. */
import { setTimeout as pause } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { ChangeFeeds } from '../../src/changes/change-feeds.ts';
import { type Database, QueueFull } from '../../src/database/contract.ts';
import { openDatabase } from '../../src/database/open-database.ts';
import { applyMigration } from '../../src/migrations/apply-migration.ts';
import { decide } from '../../src/policy/access.ts';
import { asCaller, currentCaller, SERVICE } from '../../src/queued-caller.ts';
import { raw } from '../../src/sql.ts';
import { FeedCaller } from '../fuzz/changes/feed-caller.ts';
import { feedRequest, ignore, noFeedObserver as observer, manyPlaces as places } from '../support/feed-observer.ts';
import { schemaOf } from '../support/store-world.ts';
import { until } from '../support/until.ts';

const schema = schemaOf(`
collections:
  users: {}
  teams: { fields: { open: bool } }
  notes:
    changes: true
    fields: { title: string, secret: { type: string, access: { read: '@record.owner = @request.auth.id' } } }
    relations: { team: { kind: belongs_to, collection: teams }, owner: { kind: belongs_to, collection: users } }
    access: { list: '@record.team.open = true' }
  tags: {}
  tasks:
    changes: true
    fields: { title: string }
    relations:
      tags: { kind: many_to_many, collection: tags }
      owner: { kind: belongs_to, collection: users }
    access: { list: '@record.owner = @request.auth.id' }
`);
const TEAM = '7e000000-0000-4000-8000-00000000000a';
const [ANN, BOB] = ['00000001-0000-4000-8000-000000000000', '00000002-0000-4000-8000-000000000000'];

let db: Database;
let feeds: ChangeFeeds;
let isFull = false;
/** Runs before the next read of related rows. */
let before: (() => Promise<unknown>) | undefined;
/** Resolves when the other nodes know of a write. */
let noted = Promise.resolve();
let refused = 0;
let reads = 0;
/** The writes that other nodes were to hear of. */
let notes = 0;
/** The callers whose places the reads took. */
const readers = new Set<string>();
const errors: unknown[] = [];

beforeAll(async () => {
  db = await openDatabase({});
  await applyMigration(db, schema);
  await db.run(raw(`INSERT INTO users (id, email) VALUES ('${ANN}', 'ann@a.example'), ('${BOB}', 'bob@a.example')`));
  await db.run(raw(`INSERT INTO teams (id, open) VALUES ('${TEAM}', true)`));
  const rows: Database['rows'] = async (statement, options) => {
    reads++;
    readers.add(currentCaller().id);
    // The queue of urgent reads is another one.
    if (options?.lane === 'urgent') return db.rows(statement, options);
    if (isFull) {
      refused++;
      throw new QueueFull(1_000);
    }
    const work = before;
    before = undefined;
    await work?.();
    return db.rows(statement, options);
  };
  vi.useFakeTimers({ toFake: ['setInterval'] });
  const onError = (_: string, error: unknown) => errors.push(error);
  const noteWrite = () => {
    notes++;
    return noted;
  };
  feeds = (await ChangeFeeds.open({
    db: { ...db, rows, noteWrite },
    schema,
    place: 'here',
    places,
    observer,
    onError,
  }))!;
});
afterAll(async () => {
  vi.useRealTimers();
  await feeds.close();
  await db.close();
  expect(errors).toEqual([]);
});

const insert = (title: string) =>
  db.run(raw(`INSERT INTO notes (id, title, team_id) VALUES (gen_random_uuid(), '${title}', '${TEAM}')`));

const callerOf = (id: string) => new FeedCaller(schema, { id, roles: [] }, decide);

function open(since?: string, id = ANN!, caller = callerOf(id), collection = 'notes') {
  const stream = {
    seen: [] as string[],
    data: [] as string[],
    position: '',
    positions: [] as string[],
    beats: 0,
    beat: undefined as string | undefined,
    ends: [] as string[],
    leave: ignore,
  };
  let { version } = caller;
  const recheck = () => {
    if (caller.version === version) return 'same';
    version = caller.version;
    return 'changed';
  };
  const request = { ...feedRequest(caller, collection, since), recheck } as const;
  const subscriber = feeds.subscribe(request, {
    send: ({ type, data }, position) => {
      stream.seen.push(type === 'enter' ? JSON.parse(`{${data}}`).record.title : type);
      stream.data.push(data);
      stream.position = position;
      stream.positions.push(position);
    },
    beat: (position) => {
      stream.beats++;
      stream.beat = position;
    },
    lags: () => false,
    drained: async () => undefined,
    end: (reason) => stream.ends.push(reason),
  });
  stream.leave = () => feeds.leave(subscriber, 'reader');
  return stream;
}

/** The record leaves its team in the commit that opens the team: no list ever shows it. */
const openTeam = () =>
  db.transaction(async (tx) => {
    await tx.run(raw('UPDATE notes SET team_id = NULL'));
    await tx.run(raw('UPDATE teams SET open = true'));
  });

async function left(id = ANN!): Promise<string> {
  const stream = open(undefined, id);
  await until('a ready stream', () => stream.seen.includes('ready'));
  stream.leave();
  return stream.position;
}

test('a replay goes on when the queue has room, and comments keep its stream meanwhile', async () => {
  const since = await left();
  await insert('a');
  isFull = true;
  const stream = open(since);
  await until('a refusal', () => refused > 0);
  vi.advanceTimersByTime(15_000);
  expect(stream).toMatchObject({ seen: [], beats: 1, ends: [] });
  isFull = false;
  await until('the end of the replay', () => stream.seen.includes('ready'));
  expect(stream.seen).toEqual(['a', 'ready']);
  stream.leave();
});

test('a live batch waits, takes no place of its writer, and no stream has to list again', async () => {
  const stream = open();
  await until('a ready stream', () => stream.seen.includes('ready'));
  [isFull, refused] = [true, 0];
  await insert('b');
  readers.clear();
  asCaller({ id: ANN, isKept: false, hasLeft: () => true }, () => feeds.wake());
  await until('a refusal', () => refused > 0);
  isFull = false;
  await until('the event', () => stream.seen.includes('b'));
  expect(stream).toMatchObject({ seen: ['ready', 'b'], ends: [] });
  expect(readers).toEqual(new Set([SERVICE.id]));
  stream.leave();
});

test('a stream that its reader has left asks no more', async () => {
  const since = await left();
  await insert('c');
  [isFull, refused] = [true, 0];
  const stream = open(since);
  await until('a refusal', () => refused > 0);
  stream.leave();
  const asked = refused;
  await pause(1_100);
  isFull = false;
  expect([stream.ends, stream.seen, refused]).toEqual([['reader'], [], asked]);
});

test('streams whose readers leave before their turn ask nothing', async () => {
  const kept = open();
  await until('a ready stream', () => kept.seen.includes('ready'));
  const since = kept.position;
  await insert('e');
  reads = 0;
  for (const each of Array.from({ length: 20 }, () => open(since))) each.leave();
  await new Promise(setImmediate);
  expect(reads).toBe(0);
  const next = open(since);
  await until('the next stream', () => next.seen.includes('ready'));
  expect(next.seen).toContain('e');
  for (const each of [kept, next]) each.leave();
});

test('a stream is ready when the other nodes know of it', async () => {
  const wait = Promise.withResolvers<void>();
  noted = wait.promise;
  const stream = open();
  await feeds.look();
  await new Promise(setImmediate);
  expect(stream.seen).toEqual([]);
  wait.resolve();
  noted = Promise.resolve();
  await until('a ready stream', () => stream.seen.includes('ready'));
  stream.leave();
});

test('no event and no position overtakes a reset that waits for other nodes', async () => {
  await db.run(raw('UPDATE teams SET open = false'));
  const stream = open();
  await until('a ready stream', () => stream.seen.includes('ready'));
  const waits = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  noted = waits[0]!.promise;
  await db.run(raw('UPDATE teams SET open = true'));
  await feeds.look();
  await insert('in the list of the second reset');
  await feeds.look();
  noted = waits[1]!.promise;
  await db.run(raw('UPDATE teams SET open = true'));
  await feeds.look();
  await insert('f');
  await feeds.look();
  vi.advanceTimersByTime(15_000);
  expect([stream.seen, stream.beats, stream.beat]).toEqual([['ready'], 1, undefined]);
  waits[0]!.resolve();
  await new Promise(setImmediate);
  expect(stream.seen).toEqual(['ready', 'reset']);
  waits[1]!.resolve();
  noted = Promise.resolve();
  await until('the event behind the resets', () => stream.seen.length > 3);
  expect(stream.seen).toEqual(['ready', 'reset', 'reset', 'f']);
  vi.advanceTimersByTime(15_000);
  expect(stream.beat).toBeTypeOf('string');
  stream.leave();
});

test('a stream is ready behind all resets that wait for other nodes', async () => {
  const caller = new FeedCaller(schema, { id: ANN!, roles: [] }, decide);
  const waits = [0, 1, 2].map(() => Promise.withResolvers<void>());
  const noting = async (wait: PromiseWithResolvers<void>, work: () => void): Promise<void> => {
    const before = notes;
    noted = wait.promise;
    work();
    await until('a wait for other nodes', () => notes > before);
  };
  const change = (): void => {
    caller.become({ id: ANN!, roles: [`of version ${caller.version}`] });
    vi.advanceTimersByTime(300);
  };
  let stream = undefined as unknown as ReturnType<typeof open>;
  await noting(waits[0]!, () => {
    stream = open(undefined, ANN!, caller);
  });
  await noting(waits[1]!, change);
  waits[0]!.resolve();
  await new Promise(setImmediate);
  await noting(waits[2]!, change);
  waits[1]!.resolve();
  await new Promise(setImmediate);
  expect(stream.seen).toEqual(['reset']);
  noted = Promise.resolve();
  waits[2]!.resolve();
  await until('a ready stream', () => stream.seen.includes('ready'));
  expect(stream.seen).toEqual(['reset', 'reset', 'ready']);
  stream.leave();
});

test('a related row that changes behind a batch shows no record as it was before', async () => {
  const stream = open();
  await until('a ready stream', () => stream.seen.includes('ready'));
  await db.run(raw('UPDATE teams SET open = false'));
  await feeds.look();
  await insert('hidden');
  before = openTeam;
  await feeds.look();
  expect(stream.seen).toEqual(['ready', 'reset', 'reset']);
  stream.leave();
});

test('nor does one that changes behind a replay', async () => {
  await db.run(raw('UPDATE teams SET open = false'));
  const since = await left();
  await insert('hidden');
  // The first read is that of the log.
  before = async () => {
    before = openTeam;
  };
  const stream = open(since);
  await until('a ready stream', () => stream.seen.includes('ready'));
  expect(stream.seen).toEqual(['reset', 'ready']);
  stream.leave();
});

test('a record that members join enters once it is shown, not when they join', async () => {
  const stream = open(undefined, ANN, callerOf(ANN!), 'tasks');
  await until('a ready stream', () => stream.seen.includes('ready'));
  const show = (title: string) => db.run(raw(`UPDATE tasks SET owner_id = '${ANN}' WHERE title = '${title}'`));
  for (const title of ['behind', 'in one batch']) {
    await db.run(raw(`INSERT INTO tasks (id, title) VALUES (gen_random_uuid(), '${title}')`));
    await feeds.look();
    await db.transaction(async (tx) => {
      await tx.run(raw('INSERT INTO tags (id) VALUES (gen_random_uuid())'));
      await tx.run(
        raw(`INSERT INTO tasks__tags (record_id, member_id)
             SELECT tasks.id, tags.id FROM tasks, tags WHERE title = '${title}'`),
      );
    });
    if (title === 'behind') before = () => show(title);
    else await show(title);
    await feeds.look();
    await feeds.look();
  }
  expect(stream.seen).toEqual(['ready', 'behind', 'in one batch']);
  stream.leave();
});

test('streams that resume at once share what they see alike, and nothing else', async () => {
  await db.run(raw('UPDATE teams SET open = true'));
  const [ann, bob] = [await left(ANN), await left(BOB)];
  await db.run(
    raw(`INSERT INTO notes (id, title, secret, team_id, owner_id)
         VALUES (gen_random_uuid(), 'd', 'of ann', '${TEAM}', '${ANN}')`),
  );
  reads = 0;
  const streams = [open(ann, ANN), open(bob, BOB), open(ann, ANN), open(bob, BOB)];
  await until('ready streams', () => streams.every(({ seen }) => seen.includes('ready')));
  const secrets = streams.map(({ data }) => JSON.parse(`{${data[0]}}`).record.secret);
  expect(secrets).toEqual(['of ann', undefined, 'of ann', undefined]);
  // The moment, the page, and for each audience the team and later changes of it.
  expect(reads).toBeLessThanOrEqual(6);
  for (const each of streams) each.leave();
});

test('a stream that resumes behind a write is not served what another one read before it', async () => {
  await db.run(raw('UPDATE teams SET open = true'));
  const since = await left(ANN);
  await insert('shown before');
  const first = open(since, ANN);
  await until('a ready stream', () => first.seen.includes('ready'));
  await db.run(raw(`UPDATE notes SET team_id = NULL WHERE title = 'shown before'`));
  const second = open(since, ANN);
  await until('a ready stream', () => second.seen.includes('ready'));
  expect([first.seen.includes('shown before'), second.seen.includes('shown before')]).toEqual([true, false]);
  for (const each of [first, second]) each.leave();
});

test('a caller who changes in a replay has to list again, also from its last position', async () => {
  await db.run(raw('UPDATE teams SET open = true'));
  const since = await left();
  await insert('e');
  const caller = new FeedCaller(schema, { id: ANN!, roles: [] }, decide);
  // The first read is that of the log: the rules are those of the new caller, and the copy is that of the former one.
  before = async () => caller.become({ ...caller.auth, roles: ['editor'] });
  const stream = open(since, ANN, caller);
  await until('a ready stream', () => stream.seen.includes('ready'));
  stream.leave();
  expect(stream.seen).toEqual(['e', 'ready']);
  for (const position of stream.positions) {
    const resumed = open(position, ANN, caller);
    await until('a ready stream', () => resumed.seen.includes('ready'));
    expect(resumed.data).toEqual(['"reason":"caller"', '']);
    resumed.leave();
  }
});
