/** `npm run fuzz -- changes --seconds 60 --seed 1`: worlds on both databases, under other list rules in each round. */
import type { PageBounds } from '../../../src/changes/change-log.ts';
import type { Database } from '../../../src/database/contract.ts';
import { isolatedUrl, LONG_RUN, startPostgres } from '../../support/postgres.ts';
import { readOptions } from '../../support/run-options.ts';
import { printShortfalls } from '../floor.ts';
import { type FeedModules, loadFeedModules } from './feed-modules.ts';
import { FEED_POLICIES } from './feed-schema.ts';
import { type FeedCounts, FeedFuzz, policiesOf, SMALL_PAGES } from './run-feeds.ts';

const LARGE_PAGES: PageBounds = { entries: 500, bytes: 8_388_608 };

interface FuzzedDatabase {
  readonly db: Database;
  readonly url?: string;
}

/** The worlds of one database, whose rules change after each round. */
class FeedLane {
  readonly counts: FeedCounts = { worlds: 0, events: 0, compared: 0, resets: 0, kills: 0, lost: 0 };
  readonly #db: Database;
  readonly #url: string | undefined;
  readonly #modules: FeedModules;
  readonly #seed: number;
  #round = -1;
  #fuzz: FeedFuzz | undefined;

  constructor({ db, url }: FuzzedDatabase, modules: FeedModules, seed: number) {
    this.#db = db;
    this.#url = url;
    this.#modules = modules;
    this.#seed = seed;
  }

  async run(n: number): Promise<string | undefined> {
    const round = Math.floor(n / (2 * FEED_POLICIES.length));
    if (round !== this.#round) {
      await this.close();
      const policies = policiesOf(round, this.#seed, this.#modules);
      const pages = round % 2 === 0 ? SMALL_PAGES : LARGE_PAGES;
      this.#fuzz = await FeedFuzz.open(this.#db, this.#modules, { policies, pages, url: this.#url });
      this.#round = round;
    }
    return this.#fuzz!.run(n, this.#seed);
  }

  async close(): Promise<void> {
    await this.#fuzz?.close();
    for (const each of ['worlds', 'events', 'compared', 'resets', 'kills', 'lost'] as const)
      this.counts[each] += this.#fuzz?.counts[each] ?? 0;
    this.#fuzz = undefined;
  }
}

export async function fuzzChanges(argv: readonly string[]): Promise<number> {
  const { values } = readOptions('npm run fuzz -- changes', {
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
  const databases: FuzzedDatabase[] = [{ db: await openDatabase({}) }];
  if (server !== undefined) {
    const url = await isolatedUrl(server.url);
    databases.push({ db: await openDatabase({ url }), url });
  }
  const seed = Number(values.seed);
  const lanes = databases.map((each) => new FeedLane(each, modules, seed));
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
  for (const { db } of databases) await db.close();
  await server?.stop();
  const sum = (of: keyof FeedCounts): number => lanes.reduce((total, { counts }) => total + counts[of], 0);
  console.log(
    `seed ${seed}: worlds ${sum('worlds')}, of them lost ${sum('lost')}, events ${sum('events')}, of them resets ${sum('resets')}, ` +
      `compared in their snapshots ${sum('compared')}, ` +
      `nodes killed ${sum('kills')}, differences ${failures}`,
  );
  const least = values.world === undefined ? Math.max(1, Math.floor(Number(values.seconds) / 5)) : 1;
  return failures + printShortfalls([{ what: 'worlds', count: sum('worlds') - sum('lost'), least }]) === 0 ? 0 : 1;
}
