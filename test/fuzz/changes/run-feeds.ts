/**
 * A world of the fuzz of feeds: random commits under one list rule, by statements and by the doors of the service, while nodes are killed, news is
 * lost, callers change and long transactions are open. After each quiet moment, the copy that a subscriber keeps by events equals its list, and no
 * event holds a record or a field that the list does not show.
 */
import type { PageBounds } from '../../../src/changes/change-log.ts';
import { type Database, StoreError } from '../../../src/database/contract.ts';
import { Problem } from '../../../src/problem.ts';
import type { Records } from '../../../src/records/records.ts';
import { importRecords } from '../../../src/records/transfer/import-records.ts';
import type { Schema } from '../../../src/schema/model/model.ts';
import { afterWrites } from '../../../src/service/after-writes.ts';
import { raw } from '../../../src/sql.ts';
import { ROOT } from '../policies/compiler.ts';
import { Random } from '../random.ts';
import { FarNode } from './far-node.ts';
import { type CallerAuth, callersOf, type FeedCaller } from './feed-caller.ts';
import type { FeedModules } from './feed-modules.ts';
import { type FeedNode, NearNode } from './feed-node.ts';
import {
  COLLECTION,
  FEED_POLICIES,
  feedSchema,
  hiddenThenShown,
  NAMED_ITEMS,
  type Pools,
  randomDoorWrite,
  randomWrite,
  repeatedWrites,
  writesBehind,
} from './feed-schema.ts';
import { type CommittedWorld, LongTransaction, write } from './long-transaction.ts';
import { RandomPolicies } from './random-policies.ts';
import { DIFFERS, Watcher } from './watcher.ts';

const USERS = 3;
const MOMENTS = 12;
export const SMALL_PAGES: PageBounds = { entries: 3, bytes: 2_000 };
/** The team of some callers. */
const TEAM = '7e000000-0000-4000-8000-00000000000a';
/** The first tag of each world. */
const TAG = '7a900000-0000-4000-8000-00000000000a';
const CONVERGENCE_MS = 10_000;
const LOSE_LISTEN = raw(`
SELECT pg_terminate_backend(pid)
  FROM pg_stat_activity
 WHERE datname = current_database()
   AND query LIKE 'LISTEN "bylaw_changes"%'`);
const CREATED = '2026-11-20T09:00:00.000000Z';
const FILTERS = [
  undefined,
  undefined,
  'n > 2',
  'secret = "s1"',
  'secret is null',
  'team.open = true',
  'team.open is not null and n < 5',
  'parent.secret = "s1" or parent is null',
  'any(tags as t, t.name in ["a", "b"])',
  'count(tags) != 1 and n < 5',
  'cover.shown = true or parent.cover is null',
  'none(team.memberships as m, m.user = owner)',
  'any(ancestors(parent by parent) as a, a.secret is not null)',
];

/** Pairs that read the same records. */
const TWIN_FILTERS = [
  ['n > 2', 'n > 3'],
  ['secret = "s1"', 'secret is null'],
  ['team.open = true', 'team.open = false'],
  ['any(tags as t, t.name = "a")', 'any(tags as t, t.name = "b")'],
] as const;
const FIELDS = ['n', 'secret', 'cover'];

/** The choice of a subscriber among the records of the collection. */
interface AskedRecords {
  readonly caller: number;
  readonly filter: string | undefined;
  readonly fields: readonly string[] | undefined;
}

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

const authOf = (i: number): CallerAuth => ({
  id: userId(i),
  roles: [],
  team: i === 0 ? null : TEAM,
  email: `u${i}@example.org`,
  email_verified: i === 1,
  created_at: CREATED,
  updated_at: CREATED,
});

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
  readonly modules: FeedModules;
}

interface FuzzOptions {
  /** The list rule of each collection. */
  readonly policies?: readonly string[];
  /** Pages have few entries by default, so that small worlds have several. */
  readonly pages?: PageBounds | undefined;
  /** The address of the database, for nodes of their own processes. */
  readonly url?: string | undefined;
  /** The program, or a copy of it. */
  readonly root?: URL;
}

export interface FeedCounts {
  worlds: number;
  events: number;
  /** Events amid writes that were compared with the list of their snapshot. */
  compared: number;
  resets: number;
  kills: number;
  /** Worlds that a busy machine ended: the database could not be reached. */
  lost: number;
}

export class FeedFuzz {
  readonly counts: FeedCounts = { worlds: 0, events: 0, compared: 0, resets: 0, kills: 0, lost: 0 };
  readonly #world: FeedWorld;
  readonly #options: FuzzOptions;
  readonly #callers: readonly FeedCaller[];
  readonly #near: NearNode[] = [];
  /** The databases of the nodes that have their own. */
  readonly #own: Database[] = [];
  #far: FarNode | undefined;
  /** The writes of the present world. */
  #log: string[] = [];
  /** The number of the present quiet moment; undefined amid writes. Moments without a write between have the same one. */
  #still: number | undefined;
  #bursts = 0;

  private constructor(world: FeedWorld, callers: readonly FeedCaller[], options: FuzzOptions) {
    this.#world = world;
    this.#callers = callers;
    this.#options = options;
  }

  static async open(given: Database, modules: FeedModules, options: FuzzOptions = {}): Promise<FeedFuzz> {
    const db = { ...given };
    const { policies = FEED_POLICIES, url } = options;
    const { applyMigration, createRecords, parseSchema, decide, openDatabase } = modules;
    const { schema } = parseSchema(feedSchema(policies));
    if (schema === undefined) throw new Error('the schema of the feeds has errors');
    await applyMigration(db, schema);
    await db.run(raw(`INSERT INTO teams (id, open) VALUES ('${TEAM}', true) ON CONFLICT DO NOTHING`));
    const auths = Array.from({ length: USERS }, (_, i) => authOf(i));
    for (const { id, email, team } of auths)
      await db.run(
        raw(`INSERT INTO users (id, email, team_id) VALUES ('${id}', '${email}', ${team === null ? 'NULL' : `'${team}'`})
          ON CONFLICT (id) DO UPDATE SET team_id = excluded.team_id`),
      );
    const callers = callersOf(schema, auths, decide);
    const world = { policies, db, schema, records: createRecords(db, schema), modules };
    const fuzz = new FeedFuzz(world, callers, { ...options, policies });
    await fuzz.#openNear(db);
    // Streams of the embedded engine never look by the clock.
    if (db.kind === 'embedded') afterWrites(db, () => fuzz.#near[0]!.wake());
    if (url === undefined) return fuzz;
    fuzz.#own.push(await openDatabase({ url, poolSize: 2, pipelines: 1 }));
    await fuzz.#openNear(fuzz.#own[0]!);
    return fuzz;
  }

  async #openNear(db: Database): Promise<void> {
    const { pages = SMALL_PAGES } = this.#options;
    const { modules, schema } = this.#world;
    const grounds = { modules, schema, callers: this.#callers, pages, still: () => this.#still };
    this.#near.push(await NearNode.open(db, grounds));
  }

  async #openFar(): Promise<void> {
    const { url, policies = [], pages = SMALL_PAGES, root = ROOT } = this.#options;
    if (url === undefined || this.#far !== undefined) return;
    const auths = this.#callers.map(({ auth }) => auth);
    this.#far = await FarNode.open({ url, root: root.href, policies, pages, auths });
  }

  get #nodes(): readonly FeedNode[] {
    return this.#far === undefined ? this.#near : [...this.#near, this.#far];
  }

  /** → what is wrong, with the world. */
  async run(n: number, seed: number): Promise<string | undefined> {
    const random = new Random(seed * 7_919 + n);
    const { policies, db, records, schema, modules } = this.#world;
    const i = n % policies.length;
    const collection = `items${i}`;
    const asked = this.#asked(random);
    const texts = [policies[i]!, ...asked.flatMap(({ filter }) => filter ?? [])];
    const pools = await this.#fill(random, writesBehind(texts.join('\n')));
    this.#log = [];
    const { compileFilter } = modules;
    const grounds = { records, schema, compileFilter };
    if (random.chance(0.3)) await this.#openFar();
    const watchers = asked.map((each) => {
      const access = () => this.#callers[each.caller]!.ask(collection);
      return new Watcher(grounds, { ...each, collection, access });
    });
    const world: CommittedWorld = { i, random, pools, watchers, log: this.#log };
    const long = new LongTransaction(db, world);
    this.#beginWrites();
    try {
      const node = random.pick(this.#nodes);
      for (const watcher of watchers) await watcher.begin(watcher.caller === 0 ? node : random.pick(this.#nodes));
      for (let moment = 0; moment < MOMENTS; moment++) {
        await this.#quiet(watchers);
        await long.next();
        await this.#disturb(world);
        await this.#commitSome(world);
        if (random.chance(0.04)) await this.#killFar(world);
        for (const watcher of watchers) {
          if (watcher.isPaused && random.chance(0.5)) await this.#beginAmidWrites(watcher, world);
          else if (!watcher.isPaused && random.chance(0.1)) watcher.pause(random.below(6));
        }
        if (random.chance(0.04)) await this.#converge(watchers);
        await this.#quiet(watchers);
      }
    } catch (error) {
      const cause = error instanceof Error ? error.message : String(error);
      if (cause.includes('the database cannot be reached')) {
        await this.#forgetFailures();
        this.counts.lost++;
        return undefined;
      }
      return [`world ${n}, seed ${seed}: ${policies[i]}`, cause, ...this.#log.slice(-14)].join('\n  ');
    } finally {
      for (const watcher of watchers) watcher.pause();
      await this.#replaceDead();
      await long.end();
      this.counts.worlds++;
      for (const { events, compared, resets } of watchers) {
        this.counts.events += events;
        this.counts.compared += compared;
        this.counts.resets += resets;
      }
      await db.run(raw(`DELETE FROM ${collection}`));
    }
    return undefined;
  }

  /** Subscribers who see the same share a group, and those who nearly do must not: the last one is a twin of the first. */
  #asked(random: Random): readonly AskedRecords[] {
    const shared = random.pick(FILTERS);
    const asked = [0, 1, 2, 0].map((caller): AskedRecords => {
      const fields = random.chance(0.3) ? FIELDS : undefined;
      // A filter may hide what the rule shows, or reset the stream whenever a record changes.
      const isWhole = caller > 0 && random.chance(0.5);
      return { caller, fields, filter: isWhole ? undefined : random.chance(0.6) ? shared : random.pick(FILTERS) };
    });
    const [first] = asked;
    const other = random.below(4);
    if (other === 0) {
      const [filter, twin] = random.pick(TWIN_FILTERS);
      return asked.with(0, { ...first!, filter }).with(-1, { ...first!, filter: twin });
    }
    if (other === 1) return asked.with(-1, { ...first!, fields: first!.fields === undefined ? FIELDS : undefined });
    return asked;
  }

  /** The next world opens another one. */
  async #replaceDead(): Promise<void> {
    if (this.#far?.isDead !== true) return;
    await this.#far.close();
    this.#far = undefined;
  }

  async #forgetFailures(): Promise<void> {
    for (const { failures } of this.#near) failures.length = 0;
    await this.#far?.close();
    this.#far = undefined;
  }

  async close(): Promise<void> {
    for (const node of this.#nodes) await node.close();
    for (const db of this.#own) await db.close();
  }

  async #fill(random: Random, related: readonly number[]): Promise<Pools> {
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
    return { users: this.#callers.map(({ id }) => id), teams: [TEAM, ...own], tags, items: [], related };
  }

  /** Reads the log while nothing is written. Throws what is wrong. */
  async #quiet(watchers: readonly Watcher[]): Promise<void> {
    this.#still = this.#bursts;
    const isBehind = (): boolean => watchers.some((each) => each.isBehind) && this.#failure === undefined;
    // A reader of a burst who lags is behind after the first look.
    do {
      while (isBehind()) await new Promise((resolve) => setImmediate(resolve));
      for (const node of this.#nodes) await node.look();
      await new Promise((resolve) => setImmediate(resolve));
    } while (isBehind());
    if (this.#failure !== undefined) throw new Error(this.#failure);
    const wrong = await wrongOf(watchers, this.#still);
    if (wrong !== undefined) throw new Error(wrong);
    this.#beginWrites();
  }

  #beginWrites(): void {
    this.#still = undefined;
    this.#bursts++;
  }

  /** An error that no subscriber sees. */
  get #failure(): string | undefined {
    return this.#nodes.flatMap(({ failures }) => failures)[0];
  }

  /** The streams learn of the writes by news and by the clock. */
  async #converge(watchers: readonly Watcher[]): Promise<void> {
    const end = performance.now() + CONVERGENCE_MS;
    for (const watcher of watchers) watcher.forgetCommits();
    let wrong = await wrongOf(watchers, this.#still);
    while (wrong?.includes(DIFFERS) === true && performance.now() < end) {
      await pause(20);
      wrong = await wrongOf(watchers, this.#still);
    }
    if (wrong !== undefined) throw new Error(`without a look, ${wrong}`);
  }

  async #disturb(world: CommittedWorld): Promise<void> {
    const { random, watchers, i } = world;
    const { db, schema } = this.#world;
    const readsCaller = this.#world.policies[i]!.includes('auth.team');
    if (random.chance(readsCaller ? 0.3 : 0.08)) await this.#changeCaller(world);
    if (random.chance(0.04) && db.kind === 'postgres') {
      world.log.push('-- LISTEN is lost');
      await db.rows(LOSE_LISTEN);
    }
    if (random.chance(0.04)) {
      world.log.push('-- an import');
      await importRecords(db, {
        schema,
        collection: schema.collections.get(`items${i}`)!,
        now: CREATED,
        records: async function* () {
          for (const line of [1, 2, 3])
            yield {
              line,
              isText: false,
              members: new Map<string, unknown>([
                ['label', 'a'],
                ['n', line],
              ]),
            };
        },
      });
      for (const watcher of watchers) await watcher.noteList();
    }
  }

  /** A caller gets another team or other roles: each of its streams has to list again. */
  async #changeCaller(world: CommittedWorld): Promise<void> {
    const { random, watchers, log, i } = world;
    const number = random.below(USERS);
    const caller = this.#callers[number]!;
    const team = random.chance(0.7) ? (caller.auth.team === null ? TEAM : null) : caller.auth.team;
    const auth = { ...caller.auth, roles: random.pick([[], ['editor']]), team };
    const value = team === null ? 'NULL' : `'${team}'`;
    await write(this.#world.db, `UPDATE users SET team_id = ${value} WHERE id = '${caller.id}'`, log);
    for (const watcher of watchers) await watcher.noteList();
    await this.#quiet(watchers);
    log.push(`-- caller ${number} becomes ${JSON.stringify(auth)}`);
    caller.become(auth);
    this.#far?.become(number, auth);
    const concerned = watchers.filter((each) => each.caller === number && !each.isPaused);
    const end = performance.now() + CONVERGENCE_MS;
    while (concerned.some(({ waiting }) => !waiting.some((each) => each.includes('caller')))) {
      if (performance.now() > end) throw new Error(`no reset came when caller ${number} changed`);
      await pause(10);
    }
    await this.#quiet(watchers);
    // Each record has another text, which only the new rules decide on; some come to the team.
    const n = 'CASE n WHEN 2 THEN 3 ELSE coalesce(4 - n, 1) END';
    await write(this.#world.db, `UPDATE items${i} SET n = ${n}`, log);
    for (const watcher of watchers) await watcher.noteList();
    await write(
      this.#world.db,
      `UPDATE items${i} SET team_id = '${TEAM}' WHERE ${random.pick(['flag', 'n < 3'])}`,
      log,
    );
    for (const watcher of watchers) await watcher.noteList();
    await this.#quiet(watchers);
  }

  /** Its streams end without a word; the readers have lost some of the last events, and resume elsewhere. */
  async #killFar({ random, watchers, log }: CommittedWorld): Promise<void> {
    const far = this.#far;
    if (far === undefined) return;
    const own = watchers.filter((each) => each.isOf(far));
    this.#far = undefined;
    await far.kill();
    this.counts.kills++;
    log.push(`-- a node is killed, ${own.length} streams end`);
    for (const watcher of own) watcher.pause(random.below(6));
  }

  /** The stream begins while a commit comes, and the log is read. */
  async #beginAmidWrites(watcher: Watcher, { i, random, pools, watchers, log }: CommittedWorld): Promise<void> {
    const node = random.pick(this.#nodes);
    const isAlone = random.chance(0.3);
    if (isAlone) this.#still = this.#bursts;
    else this.#beginWrites();
    // Otherwise the replay is soon over, and no batch comes between it and the live events.
    const release = !isAlone && random.chance(0.8) ? node.hold() : () => undefined;
    const beginning = watcher.begin(node);
    try {
      const ofAll = repeatedWrites(random, i, pools).slice(random.below(4));
      for (const statement of isAlone ? [] : [randomWrite(random, i, pools), ...ofAll]) {
        await write(this.#world.db, statement, log).catch(() => log.push('-- refused'));
        for (const each of watchers) await each.noteList();
        await node.look();
      }
    } finally {
      release();
    }
    await beginning;
    await this.#quiet(watchers);
  }

  /** Several commits, each of several statements or one of the service; a session of its own commits late. */
  async #commitSome(world: CommittedWorld): Promise<void> {
    const { i, random, pools, watchers, log } = world;
    const { db } = this.#world;
    const late = random.chance(0.3) && db.openSession !== undefined ? await db.openSession() : undefined;
    try {
      if (late !== undefined) {
        await late.run(raw('BEGIN'));
        await write(late, `-- late\n${randomWrite(random, i, { ...pools, items: [] })}`, log);
      }
      for (let commit = 1 + random.below(3); commit > 0; commit--) {
        if (random.chance(0.2)) await this.#writeByDoor(world);
        else if (pools.items.length > 0 && random.chance(0.1)) await this.#hideThenShow(world);
        else await this.#commitStatements(world);
        for (const watcher of watchers) await watcher.noteList();
        if (random.chance(0.3)) random.pick(this.#nodes).wake();
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

  async #hideThenShow({ i, random, pools, watchers, log }: CommittedWorld): Promise<void> {
    for (const statement of hiddenThenShown(random, i, pools)) {
      await write(this.#world.db, statement, log);
      for (const watcher of watchers) await watcher.noteList();
    }
  }

  async #commitStatements({ i, random, pools, log }: CommittedWorld): Promise<void> {
    const statements = random.chance(0.15)
      ? repeatedWrites(random, i, pools)
      : Array.from({ length: 1 + random.below(3) }, () => randomWrite(random, i, pools));
    log.push('BEGIN');
    await this.#world.db
      .transaction(async (tx) => {
        for (const statement of statements) await write(tx, statement, log);
      })
      .catch(() => log.push('-- rolled back'));
  }

  async #writeByDoor({ i, random, pools, log }: CommittedWorld): Promise<void> {
    const { records } = this.#world;
    const access = random.pick(this.#callers).ask(`items${i}`);
    const { id, data } = randomDoorWrite(random, pools);
    log.push(`-- door: ${id} ${JSON.stringify(data)}`);
    try {
      if (data === null) await records.remove(access, { id: id! });
      else if (id !== undefined) await records.update(access, { id, data, relations: [], errors: [] });
      else await records.create(access, { data, relations: [] });
    } catch (error) {
      if (!(error instanceof Problem) && !(error instanceof StoreError)) log.push(`-- refused: ${error}`);
    }
  }
}

async function wrongOf(watchers: readonly Watcher[], still: number | undefined): Promise<string | undefined> {
  for (const watcher of watchers) {
    const wrong = watcher.isPaused ? undefined : await watcher.settle(still);
    if (wrong !== undefined) return `${watcher.label}: ${wrong}`;
  }
  return undefined;
}
