/**
 * `npm run fuzz -- changes --seconds 60 --seed 1`: random commits under many list rules. After each quiet moment, the copy that a subscriber keeps
 * by events equals its list, and no event holds a record or a field that the list does not show.
 */

import { parseArgs } from 'node:util';
import type { ChangeFeeds } from '../../../src/changes/change-feeds.ts';
import type { PageBounds } from '../../../src/changes/change-log.ts';
import type { Database, Queryable } from '../../../src/database/contract.ts';
import type { Records } from '../../../src/records/records.ts';
import type { Schema } from '../../../src/schema/model/model.ts';
import { raw } from '../../../src/sql.ts';
import { manyPlaces, noFeedObserver } from '../../support/feed-observer.ts';
import { isolatedUrl, LONG_RUN, startPostgres } from '../../support/postgres.ts';
import { printShortfalls } from '../floor.ts';
import { Random } from '../random.ts';
import { FeedCaller } from './feed-caller.ts';
import { type FeedModules, loadFeedModules } from './feed-modules.ts';
import { COLLECTION, FEED_POLICIES, feedSchema, NAMED_ITEMS, type Pools, randomWrite } from './feed-schema.ts';
import { RandomPolicies } from './random-policies.ts';
import { Watcher } from './watcher.ts';

const USERS = 3;
const MOMENTS = 12;
const SMALL_PAGES: PageBounds = { entries: 3, bytes: 2_000 };
/** The team of some callers. */
const TEAM = '7e000000-0000-4000-8000-00000000000a';
/** The first tag of each world. */
const TAG = '7a900000-0000-4000-8000-00000000000a';
const CREATED = '2026-11-20T09:00:00.000000Z';
const FILTERS = [
  undefined,
  undefined,
  'n > 2',
  'secret = "s1"',
  'secret is null',
  'team.open = true',
  'parent.secret = "s1" or parent is null',
  'any(tags as t, t.name in ["a", "b"])',
  'count(tags) != 1 and n < 5',
  'cover.shown = true or parent.cover is null',
  'none(team.memberships as m, m.user = owner)',
  'any(ancestors(parent by parent) as a, a.secret is not null)',
];

const userId = (i: number): string => `0000000${i}-0000-4000-8000-000000000000`;

/** As many random policies as fixed ones, by turns. */
export function policiesOf(round: number, seed: number, modules: FeedModules): readonly string[] {
  const users = Array.from({ length: USERS }, (_, i) => userId(i));
  const ids = { users, teams: [TEAM], tags: [TAG], [COLLECTION]: NAMED_ITEMS };
  const maker = new RandomPolicies(modules, ids, new Random(seed * 104_729 + round));
  const made = maker.make(FEED_POLICIES.length);
  return FEED_POLICIES.flatMap((policy, i) => [policy, made[i]!]);
}

interface FeedWorld {
  readonly policies: readonly string[];
  readonly db: Database;
  readonly schema: Schema;
  readonly records: Records;
  readonly compileFilter: FeedModules['compileFilter'];
}

interface ObservedFeeds {
  readonly feeds: ChangeFeeds;
  /** Errors that no subscriber sees. */
  readonly failures: readonly string[];
}

interface FuzzOptions {
  /** The list rule of each collection. */
  readonly policies?: readonly string[];
  /** Pages have few entries by default, so that small worlds have several. */
  readonly pages?: PageBounds | undefined;
}

interface FeedCounts {
  worlds: number;
  events: number;
  resets: number;
}

export class FeedFuzz {
  readonly counts: FeedCounts = { worlds: 0, events: 0, resets: 0 };
  readonly #world: FeedWorld;
  readonly #feeds: ChangeFeeds;
  readonly #failures: readonly string[];
  readonly #callers: readonly FeedCaller[];

  private constructor(world: FeedWorld, { feeds, failures }: ObservedFeeds, callers: readonly FeedCaller[]) {
    this.#world = world;
    this.#feeds = feeds;
    this.#failures = failures;
    this.#callers = callers;
  }

  static async open(
    db: Database,
    modules: FeedModules,
    { policies = FEED_POLICIES, pages = SMALL_PAGES }: FuzzOptions = {},
  ): Promise<FeedFuzz> {
    const { ChangeFeeds, applyMigration, createRecords, parseSchema, decide, compileFilter } = modules;
    const { schema } = parseSchema(feedSchema(policies));
    if (schema === undefined) throw new Error('the schema of the feeds has errors');
    await applyMigration(db, schema);
    await db.run(raw(`INSERT INTO teams (id, open) VALUES ('${TEAM}', true) ON CONFLICT DO NOTHING`));
    const callers: FeedCaller[] = [];
    for (let i = 0; i < USERS; i++) {
      const auth = {
        id: userId(i),
        roles: [],
        team: i === 0 ? null : TEAM,
        email: `u${i}@example.org`,
        email_verified: i === 1,
        created_at: CREATED,
        updated_at: CREATED,
      };
      const of = i === 0 ? 'NULL' : `'${TEAM}'`;
      await db.run(
        raw(`INSERT INTO users (id, email, team_id) VALUES ('${auth.id}', '${auth.email}', ${of})
          ON CONFLICT (id) DO UPDATE SET team_id = excluded.team_id`),
      );
      callers.push(new FeedCaller(schema, auth, decide));
    }
    const failures: string[] = [];
    const feeds = await ChangeFeeds.open({
      db,
      schema,
      pages,
      places: manyPlaces,
      place: 'test',
      observer: noFeedObserver,
      onError: (what, error) => failures.push(`${what}: ${error instanceof Error ? error.message : String(error)}`),
    });
    const world = { policies, db, schema, records: createRecords(db, schema), compileFilter };
    return new FeedFuzz(world, { feeds: feeds!, failures }, callers);
  }

  /** → what is wrong, with the world. */
  async run(n: number, seed: number): Promise<string | undefined> {
    const random = new Random(seed * 7_919 + n);
    const { policies, db, records, schema, compileFilter } = this.#world;
    const i = n % policies.length;
    const collection = `items${i}`;
    const pools = await this.#fill(random);
    const log: string[] = [];
    const grounds = { feeds: this.#feeds, records, schema, compileFilter, writes: () => log.length };
    const shared = random.pick(FILTERS);
    const [first] = this.#callers;
    // Subscribers who see the same share a group, and those who nearly do must not.
    const watchers = [...this.#callers, first!].map((caller) => {
      const fields = random.chance(0.3) ? ['n', 'secret', 'cover'] : undefined;
      return new Watcher(grounds, {
        collection,
        access: () => caller.ask(collection),
        filter: random.chance(0.6) ? shared : random.pick(FILTERS),
        fields,
      });
    });
    try {
      for (const watcher of watchers) await watcher.begin();
      for (let moment = 0; moment < MOMENTS; moment++) {
        await this.#quiet(watchers);
        await this.#commitSome(random, { i, pools, watchers, log });
        for (const watcher of watchers) {
          if (watcher.isPaused && random.chance(0.5))
            await this.#beginAmidWrites(random, watcher, { i, pools, watchers, log });
          else if (!watcher.isPaused && random.chance(0.1)) watcher.pause(random.below(6));
        }
        await this.#quiet(watchers);
      }
    } catch (error) {
      const cause = error instanceof Error ? error.message : String(error);
      return [`world ${n}, seed ${seed}: ${policies[i]}`, cause, ...log.slice(-14)].join('\n  ');
    } finally {
      for (const watcher of watchers) watcher.pause();
      this.counts.worlds++;
      for (const { events, resets } of watchers) {
        this.counts.events += events;
        this.counts.resets += resets;
      }
      await db.run(raw(`DELETE FROM ${collection}`));
    }
    return undefined;
  }

  async close(): Promise<void> {
    await this.#feeds.close();
  }

  async #fill(random: Random): Promise<Pools> {
    const { db } = this.#world;
    const own = [random.uuid(), random.uuid()];
    const tags = [TAG, random.uuid(), random.uuid()];
    await db.run(raw('DELETE FROM memberships'));
    for (const id of own) await db.run(raw(`INSERT INTO teams (id, open) VALUES ('${id}', ${random.chance(0.5)})`));
    for (const [i, id] of tags.entries())
      await db.run(
        raw(`INSERT INTO tags (id, name) VALUES ('${id}', '${'abc'[i]}')
          ON CONFLICT (id) DO UPDATE SET name = excluded.name`),
      );
    return { users: this.#callers.map(({ id }) => id), teams: [TEAM, ...own], tags, items: [] };
  }

  /** Reads the log while nothing is written. Throws what is wrong. */
  async #quiet(watchers: readonly Watcher[]): Promise<void> {
    // A reader of a burst who lags is behind after the first look.
    do {
      while (watchers.some(({ isBehind }) => isBehind) && this.#failures.length === 0)
        await new Promise((resolve) => setImmediate(resolve));
      await this.#feeds.look();
      await new Promise((resolve) => setImmediate(resolve));
    } while (watchers.some(({ isBehind }) => isBehind) && this.#failures.length === 0);
    const [failure] = this.#failures;
    if (failure !== undefined) throw new Error(failure);
    for (const watcher of watchers) {
      const wrong = watcher.isPaused ? undefined : await watcher.settle();
      if (wrong !== undefined) throw new Error(`${watcher.label}: ${wrong}`);
    }
  }

  /** The stream begins while a commit comes, and the log is read. */
  async #beginAmidWrites(random: Random, watcher: Watcher, { i, pools, watchers, log }: CommittedWorld): Promise<void> {
    const beginning = watcher.begin();
    if (random.chance(0.7)) {
      await write(this.#world.db, randomWrite(random, i, pools), log).catch(() => log.push('-- refused'));
      for (const each of watchers) await each.noteList();
      await this.#feeds.look();
    }
    await beginning;
    await this.#quiet(watchers);
  }

  /** Several commits, each of several statements; a session of its own commits late. */
  async #commitSome(random: Random, { i, pools, watchers, log }: CommittedWorld): Promise<void> {
    const { db } = this.#world;
    const late = random.chance(0.3) && db.openSession !== undefined ? await db.openSession() : undefined;
    try {
      if (late !== undefined) {
        await late.run(raw('BEGIN'));
        await write(late, `-- late\n${randomWrite(random, i, { ...pools, items: [] })}`, log);
      }
      for (let commit = 1 + random.below(3); commit > 0; commit--) {
        const statements = Array.from({ length: 1 + random.below(3) }, () => randomWrite(random, i, pools));
        log.push('BEGIN');
        await db
          .transaction(async (tx) => {
            for (const statement of statements) await write(tx, statement, log);
          })
          .catch(() => log.push('-- rolled back'));
        for (const watcher of watchers) await watcher.noteList();
        if (random.chance(0.3)) await this.#quiet(watchers);
      }
      if (late !== undefined) {
        await this.#quiet(watchers);
        log.push('-- late');
        await late.run(raw('COMMIT'));
        for (const watcher of watchers) await watcher.noteList();
      }
    } finally {
      await late?.close();
    }
  }
}

interface CommittedWorld {
  readonly i: number;
  readonly pools: Pools;
  readonly watchers: readonly Watcher[];
  readonly log: string[];
}

async function write(q: Queryable, statement: string, log: string[]): Promise<void> {
  log.push(statement);
  await q.run(raw(statement));
}

/** The worlds of one database, whose rules change after each round. */
class FeedLane {
  readonly counts: FeedCounts = { worlds: 0, events: 0, resets: 0 };
  readonly #db: Database;
  readonly #modules: FeedModules;
  readonly #seed: number;
  #round = -1;
  #fuzz: FeedFuzz | undefined;

  constructor(db: Database, modules: FeedModules, seed: number) {
    this.#db = db;
    this.#modules = modules;
    this.#seed = seed;
  }

  async run(n: number): Promise<string | undefined> {
    const round = Math.floor(n / (2 * FEED_POLICIES.length));
    if (round !== this.#round) {
      await this.close();
      const policies = policiesOf(round, this.#seed, this.#modules);
      const pages = round % 2 === 0 ? SMALL_PAGES : undefined;
      this.#fuzz = await FeedFuzz.open(this.#db, this.#modules, { policies, pages });
      this.#round = round;
    }
    return this.#fuzz!.run(n, this.#seed);
  }

  async close(): Promise<void> {
    await this.#fuzz?.close();
    for (const each of ['worlds', 'events', 'resets'] as const) this.counts[each] += this.#fuzz?.counts[each] ?? 0;
    this.#fuzz = undefined;
  }
}

export async function fuzzChanges(argv: readonly string[]): Promise<number> {
  const { values } = parseArgs({
    args: [...argv],
    options: {
      seconds: { type: 'string', default: '60' },
      seed: { type: 'string', default: String(Date.now() % 1_000_000) },
      world: { type: 'string' },
    },
  });
  const server = await startPostgres({ settings: LONG_RUN });
  const modules = await loadFeedModules();
  const { openDatabase } = modules;
  const databases = [
    await openDatabase({}),
    ...(server === undefined ? [] : [await openDatabase({ url: await isolatedUrl(server.url) })]),
  ];
  const seed = Number(values.seed);
  const lanes = databases.map((db) => new FeedLane(db, modules, seed));
  const end = Date.now() + Number(values.seconds) * 1_000;
  let failures = 0;
  let next = Number(values.world ?? 0);
  const last = values.world === undefined ? Number.POSITIVE_INFINITY : next;
  await Promise.all(
    lanes.map(async (lane) => {
      while (Date.now() < end && failures < 3 && next <= last) {
        const wrong = await lane.run(next++);
        if (wrong === undefined) continue;
        failures++;
        console.log(wrong);
      }
    }),
  );
  for (const lane of lanes) await lane.close();
  for (const db of databases) await db.close();
  await server?.stop();
  const sum = (of: keyof FeedCounts): number => lanes.reduce((total, { counts }) => total + counts[of], 0);
  console.log(
    `seed ${seed}: worlds ${sum('worlds')}, events ${sum('events')}, of them resets ${sum('resets')}, differences ${failures}`,
  );
  const least = values.world === undefined ? Math.max(1, Math.floor(Number(values.seconds) / 5)) : 1;
  return failures + printShortfalls([{ what: 'worlds', count: sum('worlds'), least }]) === 0 ? 0 : 1;
}
