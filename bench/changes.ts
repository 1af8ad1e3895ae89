/**
 * Measures the feeds of one process: the time from a commit to the subscriber for 10,000 of them, with the members of teams changing
 * meanwhile, what a subscriber costs, and what the log costs each write.
 */
import { Audience } from '../src/changes/audience.ts';
import { ChangeFeeds } from '../src/changes/change-feeds.ts';
import type { Database } from '../src/database/contract.ts';
import { openDatabase } from '../src/database/open-database.ts';
import { applyMigration } from '../src/migrations/apply-migration.ts';
import { decide } from '../src/policy/access.ts';
import { compileFilter } from '../src/policy/filters/filter.ts';
import { Store } from '../src/records/access-context.ts';
import { createRecords } from '../src/records/records.ts';
import { loadRelatedRows } from '../src/records/relations/related.ts';
import { importRecords } from '../src/records/transfer/import-records.ts';
import { parseSchema } from '../src/schema/load.ts';
import type { Schema } from '../src/schema/model/model.ts';
import { raw, sql } from '../src/sql.ts';
import { FeedCaller } from '../test/fuzz/changes/feed-caller.ts';
import { Random } from '../test/fuzz/random.ts';
import { manyPlaces, noFeedObserver } from '../test/support/feed-observer.ts';
import { isolatedUrl, startPostgres } from '../test/support/postgres.ts';
import type { Bench, BenchOptions } from './support/bench.ts';
import { DURABLE } from './support/documents-world.ts';
import { requestsWith } from './support/feed-requests.ts';
import { record } from './support/figures.ts';

const SUBSCRIBERS = 10_000;
const USERS = 1_000;
const TEAMS = 100;
const WRITES_A_SECOND = 500;
const MEMBERSHIP_SHARE = 0.01;
const WRITES = 992;
const EVENTS = 500;
const AT_ONCE = 16;
const RESUMED_EVENTS = 100;
const LISTS = 500;
const RESUMES = 5;
/** Streams that begin in one turn of the event loop. */
const STREAMS_A_TURN = 20;
const IMPORTS = 2;
/** Rows of an import that warms up. */
const FEW_IMPORTED = 20_000;
const DECISIONS = 200_000;
const READS = 2_000;

const RULES = {
  owner: '@record.owner = @request.auth.id',
  // No value of the record tells whom it concerns.
  unpinned: '@record.owner = @request.auth.id or @record.at < 0',
  members: 'any(@record.team.memberships as m, m.user = @request.auth.id)',
  everyone: '@record.at > 0',
} as const;
type Rule = keyof typeof RULES;

const schemaOf = (rule: string, changes: boolean): string => `
roles: [member]
register: { roles: [member] }
collections:
  users: {}
  teams: { relations: { memberships: { kind: has_many, collection: memberships, via: team } } }
  memberships:
    relations:
      team: { kind: belongs_to, collection: teams, required: true }
      user: { kind: belongs_to, collection: users, required: true }
  notes:
    changes: ${changes}
    fields: { at: float, title: string }
    relations: { owner: { kind: belongs_to, collection: users }, team: { kind: belongs_to, collection: teams } }
    access: { list: '${rule}', read: true, create: true, update: true }
`;

interface FeedWorld {
  readonly db: Database;
  readonly schema: Schema;
  readonly users: readonly string[];
  readonly teams: readonly string[];
  readonly random: Random;
}

async function openWorld(url: string, rule: string, changes: boolean): Promise<FeedWorld> {
  const db = await openDatabase({ url: await isolatedUrl(url) });
  const { schema } = parseSchema(schemaOf(rule, changes));
  await applyMigration(db, schema!);
  const random = new Random(1);
  const [users, teams] = [USERS, TEAMS].map((count) => Array.from({ length: count }, () => random.uuid()));
  const values = (ids: readonly string[], of: (id: string) => string): string => ids.map(of).join(', ');
  await runText(db, `INSERT INTO users (id, email) VALUES ${values(users!, (id) => `('${id}', '${id}@example.org')`)}`);
  await runText(db, `INSERT INTO teams (id) VALUES ${values(teams!, (id) => `('${id}')`)}`);
  const member = (id: string, i: number): string => `('${random.uuid()}', '${teams![i % TEAMS]}', '${id}')`;
  await runText(db, `INSERT INTO memberships (id, team_id, user_id) VALUES ${users!.map(member).join(', ')}`);
  return { db, schema: schema!, users: users!, teams: teams!, random };
}

async function runText(db: Database, text: string): Promise<void> {
  await db.run(raw(text));
}

interface Subscription {
  readonly position: string;
  readonly end: () => void;
}

/** Resolves with the stream's position once it is ready. */
function subscribeTo(feeds: ChangeFeeds, { schema }: FeedWorld, user: string, since?: string): Promise<Subscription> {
  const caller = new FeedCaller(schema, { id: user, roles: [] }, decide);
  const collection = schema.collections.get('notes')!;
  const request = {
    collection,
    access: () => caller.ask('notes'),
    recheck: () => 'same' as const,
    filters: [],
    query: '',
  };
  return new Promise((resolve) => {
    const send = ({ type }: { type: string }, position: string): void => {
      if (type === 'ready') resolve({ position, end: () => feeds.leave(subscriber, 'bench') });
    };
    const sink = { send, beat: ignore, lags: () => false, drained: () => Promise.resolve(), end: ignore };
    const subscriber = feeds.subscribe({ ...request, since }, sink);
  });
}

interface Resumed {
  /** Seconds until all subscribers have resumed at once, with 100 events each. */
  readonly seconds: number;
  /** Milliseconds: the p99 of lists alone, and of lists meanwhile. */
  readonly alone: number;
  readonly beside: number;
}

/** Rounds, of which the one with the median ratio counts. */
async function resume(url: string, subscribers: number): Promise<Resumed> {
  const world = await openWorld(url, RULES.everyone, true);
  const { db, schema, users } = world;
  const feeds = (await ChangeFeeds.open({
    db,
    schema,
    places: manyPlaces,
    place: 'bench',
    observer: noFeedObserver,
    onError: (what, error) => console.error(what, error),
  }))!;
  const records = createRecords(db, schema);
  const caller = new FeedCaller(schema, { id: users[0]!, roles: [] }, decide);
  const p99While = async (isOver: (lists: number) => boolean): Promise<number> => {
    const times: number[] = [];
    while (!isOver(times.length)) {
      const began = performance.now();
      await records.list(caller.ask('notes'), { limit: 20, offset: 0 });
      times.push(performance.now() - began);
      await pause(5);
    }
    return at(ascending(times), 0.99);
  };
  const p99Alone = (): Promise<number> => p99While((lists) => lists === LISTS);
  const begin = (since: readonly (string | undefined)[]): Promise<readonly Subscription[]> =>
    all(since, (each, i) => subscribeTo(feeds, world, users[i % USERS]!, each));
  const streams = await begin(Array.from({ length: subscribers }, () => undefined));
  for (const { end } of streams) end();
  await runText(
    db,
    `INSERT INTO notes (id, at, title) SELECT gen_random_uuid(), 1, 'x' FROM generate_series(1, ${RESUMED_EVENTS})`,
  );
  const rounds: Resumed[] = [];
  for (let round = 0; round <= RESUMES; round++) {
    const alone = await p99Alone();
    let isOver = false;
    const lists = p99While(() => isOver);
    const began = performance.now();
    const resumed = await begin(streams.map(({ position }) => position));
    const seconds = (performance.now() - began) / 1000;
    isOver = true;
    const beside = await lists;
    for (const { end } of resumed) end();
    // Round 0 warms up.
    if (round > 0) rounds.push({ seconds, alone, beside });
  }
  await feeds.close();
  await db.close();
  return at(
    rounds.toSorted((a, b) => a.beside / a.alone - b.beside / b.alone),
    0.5,
  );
}

/** Streams come as requests do: some in each turn of the event loop. */
function all<T, R>(values: readonly T[], begin: (value: T, i: number) => Promise<R>): Promise<readonly R[]> {
  const begun: Promise<R>[] = [];
  return new Promise((resolve) => {
    const turn = (): void => {
      for (const value of values.slice(begun.length, begun.length + STREAMS_A_TURN))
        begun.push(begin(value, begun.length));
      if (begun.length < values.length) setImmediate(turn);
      else resolve(Promise.all(begun));
    };
    turn();
  });
}

/** The time of an import with a feed ÷ without. */
async function importsWith(url: string, rows: number): Promise<number> {
  const times: number[][] = [[], []];
  const worlds = await Promise.all([false, true].map((changes) => openWorld(url, RULES.owner, changes)));
  for (let round = 0; round <= IMPORTS; round++)
    for (const [i, { db, schema }] of worlds.entries()) {
      const count = round === 0 ? Math.min(rows, FEW_IMPORTED) : rows;
      const began = performance.now();
      await importRecords(db, {
        schema,
        collection: schema.collections.get('notes')!,
        now: '2026-11-27T00:00:00.000000Z',
        async *records() {
          for (let line = 1; line <= count; line++)
            yield { line, isText: false, members: new Map([['title', `n${line}`]]) };
        },
      });
      if (round > 0) times[i]!.push(performance.now() - began);
    }
  for (const { db } of worlds) await db.close();
  const [without, withFeed] = times.map((all) => Math.min(...all));
  return withFeed! / without!;
}

interface Heard {
  /** Milliseconds from a commit to the subscriber. */
  readonly lags: number[];
  resets: number;
  readonly bytes: number;
}

/** Subscribes everybody, runs the writes, and tells what the subscribers heard. */
async function hear(url: string, rule: Rule, { seconds, subscribers }: { seconds: number; subscribers: number }) {
  const world = await openWorld(url, RULES[rule], true);
  const feeds = (await ChangeFeeds.open({
    db: world.db,
    schema: world.schema,
    places: manyPlaces,
    place: 'bench',
    observer: noFeedObserver,
    onError: (what, error) => console.error(what, error),
  }))!;
  const heard = { lags: [] as number[], resets: 0, bytes: 0 };
  const before = usedBytes();
  let ready = 0;
  for (let i = 0; i < subscribers; i++) {
    const caller = new FeedCaller(world.schema, { id: world.users[i % USERS]!, roles: [] }, decide);
    const send = ({ type, data }: { type: string; data: string }): void => {
      if (type === 'ready') ready++;
      else if (type === 'reset') heard.resets++;
      else heard.lags.push(now() - Number(/"at":([\d.]+)/.exec(data)?.[1]));
    };
    feeds.subscribe(
      {
        collection: world.schema.collections.get('notes')!,
        access: () => caller.ask('notes'),
        recheck: () => 'same',
        filters: [],
        query: '',
      },
      { send, beat: ignore, lags: () => false, drained: () => Promise.resolve(), end: ignore },
    );
  }
  while (ready < subscribers) await pause(10);
  heard.bytes = (usedBytes() - before) / subscribers;
  await writeFor(world, feeds, { seconds, withMembers: rule === 'members' });
  await pause(500);
  await feeds.close();
  await world.db.close();
  return heard as Heard;
}

const ignore = (): void => undefined;
const now = (): number => performance.timeOrigin + performance.now();
const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

function usedBytes(): number {
  (globalThis as { gc?: () => void }).gc?.();
  return process.memoryUsage().heapUsed;
}

/** Writes at their own pace, which do not wait for the subscribers; each wakes the feeds after its commit. */
async function writeFor(
  { db, users, teams, random }: FeedWorld,
  feeds: ChangeFeeds,
  { seconds, withMembers }: { readonly seconds: number; readonly withMembers: boolean },
): Promise<void> {
  const began = performance.now();
  let refused = 0;
  for (let i = 0; i < seconds * WRITES_A_SECOND; i++) {
    const late = began + (i * 1000) / WRITES_A_SECOND - performance.now();
    if (late > 1) await pause(late);
    const [user, team] = [random.pick(users), random.pick(teams)];
    const text =
      withMembers && random.chance(MEMBERSHIP_SHARE)
        ? `UPDATE memberships SET team_id = '${team}' WHERE user_id = '${user}'`
        : `INSERT INTO notes (id, at, title, owner_id, team_id) VALUES ('${random.uuid()}', ${now()}, 'x', '${user}', '${team}')`;
    void runText(db, text).then(
      () => feeds.wake(),
      () => refused++,
    );
  }
  if (refused > 0) console.log(`  the machine is too busy: ${refused} writes were refused`);
}

const ascending = (values: readonly number[]): readonly number[] => values.toSorted((a, b) => a - b);
const at = <T>(sorted: readonly T[], share: number): T => sorted[Math.floor(sorted.length * share)]!;

/** Writes a second through the store, with a feed that nobody reads ÷ without one; embedded without a URL. */
async function writesWith(url: string | undefined): Promise<{ creates: number; patches: number }> {
  const worlds = await Promise.all(
    [false, true].map((changes) => (url === undefined ? openEmbedded(changes) : openWorld(url, RULES.owner, changes))),
  );
  const creates: number[][] = [[], []];
  const patches: number[][] = [[], []];
  for (let round = 0; round < 6; round++)
    for (const [i, world] of worlds.entries()) {
      const { made, rate } = await createsOf(world);
      const patched = await patchesOf(world, made);
      if (round === 0) continue;
      creates[i]!.push(rate);
      patches[i]!.push(patched);
    }
  for (const { db } of worlds) await db.close();
  const ratio = ([without, withFeed]: readonly number[][]): number => median(withFeed!) / median(without!);
  return { creates: ratio(creates), patches: ratio(patches) };
}

const median = (values: readonly number[]): number => at(ascending(values), 0.5);

/** Writes a millisecond, some at once. */
async function rateOf(write: (number: number) => Promise<unknown>): Promise<number> {
  const began = performance.now();
  for (let made = 0; made < WRITES; made += AT_ONCE)
    await Promise.all(Array.from({ length: AT_ONCE }, (_, i) => write(made + i)));
  return WRITES / (performance.now() - began);
}

async function createsOf({ db, schema, users }: FeedWorld): Promise<{ made: readonly string[]; rate: number }> {
  const records = createRecords(db, schema);
  const caller = new FeedCaller(schema, { id: users[0]!, roles: [] }, decide);
  const made: string[] = [];
  const rate = await rateOf(async () => {
    const { json } = await records.create(caller.ask('notes'), {
      data: { title: 'x', owner: users[0]! },
      relations: [],
    });
    made.push((JSON.parse(String(json)) as { id: string }).id);
  });
  return { made, rate };
}

function patchesOf({ db, schema, users }: FeedWorld, ids: readonly string[]): Promise<number> {
  const records = createRecords(db, schema);
  const caller = new FeedCaller(schema, { id: users[0]!, roles: [] }, decide);
  return rateOf((i) =>
    records.update(caller.ask('notes'), { id: ids[i]!, data: { title: 'y' }, relations: [], errors: [] }),
  );
}

/** Microseconds of a decision for a group and event, and milliseconds of the query for a subscriber and event that it replaces. */
async function decisionsOf(url: string, rule: Rule): Promise<{ inMemory: number; byQuery: number }> {
  const { db, schema, users, teams, random } = await openWorld(url, RULES[rule], true);
  const store = new Store(db, schema, { statisticsOf: () => undefined });
  const caller = new FeedCaller(schema, { id: users[0]!, roles: [] }, decide);
  const audience = new Audience(store, caller.ask('notes'), { filters: [] });
  const ids = Array.from({ length: EVENTS }, () => random.uuid());
  const values = ids.map((id, i) => `('${id}', 1, 'x', '${users[i % 2]}', '${teams[i % TEAMS]}')`);
  await runText(db, `INSERT INTO notes (id, at, title, owner_id, team_id) VALUES ${values.join(', ')}`);
  const shape = store.shape('notes');
  const cells = await db.rows(sql`SELECT ${shape.columns('t')} FROM notes t`);
  const seen = cells.map((each) => ({ cells: each, row: shape.row(each) }));
  const rows = seen.map(({ row }) => row);
  const source = { store, q: db, tenant: undefined };
  const related = await loadRelatedRows(source, [{ collection: 'notes', rows, needs: audience.needs }], []);
  const lists = audience.listing(related);
  let listed = 0;
  const times = Array.from({ length: 5 }, () => {
    const began = performance.now();
    for (let i = 0; i < DECISIONS; i++) if (lists(seen[i % EVENTS]!)) listed++;
    return ((performance.now() - began) / DECISIONS) * 1000;
  });
  if (listed === 0) throw new Error('the rule lists nothing');
  const records = createRecords(db, schema);
  const { filter } = compileFilter('id = $id', { catalog: schema, collection: 'notes', params: { id: ids[0]! } });
  const began = performance.now();
  for (let i = 0; i < READS; i += AT_ONCE)
    await Promise.all(
      Array.from({ length: AT_ONCE }, () => records.list(caller.ask('notes'), { limit: 1, offset: 0, filter })),
    );
  const byQuery = (performance.now() - began) / READS;
  await db.close();
  return { inMemory: Math.min(...times), byQuery };
}

async function openEmbedded(changes: boolean): Promise<FeedWorld> {
  const db = await openDatabase({});
  const { schema } = parseSchema(schemaOf(RULES.owner, changes));
  await applyMigration(db, schema!);
  const random = new Random(1);
  const id = random.uuid();
  await runText(db, `INSERT INTO users (id, email) VALUES ('${id}', 'a@example.org')`);
  return { db, schema: schema!, users: [id], teams: [], random };
}

async function run({ seconds, rows }: BenchOptions): Promise<void> {
  const server = await startPostgres({ settings: DURABLE });
  const unsafe = await startPostgres();
  if (server === undefined || unsafe === undefined) return console.log('  needs a PostgreSQL');
  const notes: string[] = [];
  const note = (text: string): void => {
    notes.push(text);
    console.log(`  ${text}`);
  };
  try {
    const p99s: number[] = [];
    for (const [rule, goal] of [
      ['owner', 150],
      ['members', 300],
    ] as const) {
      const { lags, resets, bytes } = await hear(server.url, rule, { seconds, subscribers: SUBSCRIBERS });
      const sorted = ascending(lags);
      p99s.push(at(sorted, 0.99));
      note(
        `${SUBSCRIBERS} subscribers of ${USERS} users, ${WRITES_A_SECOND} writes a second, ${RULES[rule]}: p50 ${at(sorted, 0.5).toFixed(0)} ms, ` +
          `p99 ${at(sorted, 0.99).toFixed(0)} ms (goal ${goal}), ${lags.length} events, ` +
          `${resets} resets, ${(bytes / 1024).toFixed(1)} KiB a subscriber (goal 8)`,
      );
    }
    for (const rule of ['owner', 'unpinned'] as const)
      for (const subscribers of [100, 1_000]) {
        const { lags } = await hear(server.url, rule, { seconds: seconds / 2, subscribers });
        note(`${subscribers} subscribers, ${RULES[rule]}: p99 ${at(ascending(lags), 0.99).toFixed(0)} ms`);
      }
    for (const rule of ['owner', 'members'] as const) {
      const { inMemory, byQuery } = await decisionsOf(server.url, rule);
      note(
        `a decision for a group and event, ${RULES[rule]}: ${inMemory.toFixed(2)} µs (goal ${rule === 'owner' ? 1 : 5}); ` +
          `one SQL query for each subscriber and event: ${(byQuery * 1000).toFixed(0)} µs`,
      );
    }
    for (const [place, url, goal] of [
      ['PostgreSQL', server.url, '(goal 0.85)'],
      ['PostgreSQL that waits for no disk', unsafe.url, '(no goal)'],
      ['embedded', undefined, '(goal 0.75)'],
    ] as const) {
      const { creates, patches } = await requestsWith((changes) => schemaOf(RULES.owner, changes), url);
      const own = await writesWith(url);
      note(
        `requests a second with a feed that nobody reads ÷ without, ${place}: creates ${creates.toFixed(2)}, ` +
          `patches ${patches.toFixed(2)} ${goal}; without HTTP ${own.creates.toFixed(2)}, ${own.patches.toFixed(2)}`,
      );
    }
    const { seconds: resumed, alone, beside } = await resume(server.url, SUBSCRIBERS);
    note(
      `${SUBSCRIBERS} streams resume at once, ${RESUMED_EVENTS} events each: ${resumed.toFixed(1)} s (goal 10), p99 of lists beside it ` +
        `${beside.toFixed(1)} ms, without ${alone.toFixed(1)}: ${(beside / alone).toFixed(1)} × (goal 3)`,
    );
    const imported = await importsWith(server.url, rows);
    note(`an import of ${rows} rows with a feed ÷ without: ${imported.toFixed(2)} (goal 1.05)`);
    record({
      bench: 'changes',
      title: `p99 from commit to subscriber, ${SUBSCRIBERS} subscribers`,
      unit: 'ms',
      kind: 'bars',
      labels: ['owner', 'members of a team'],
      series: [{ name: 'p99', values: p99s }],
      notes,
    });
  } finally {
    await Promise.all([server.stop(), unsafe.stop()]);
  }
}

const bench: Bench = {
  name: 'changes',
  question: 'how soon do subscribers hear of a commit, and what do the log and a subscriber cost?',
  run,
};
export default bench;
