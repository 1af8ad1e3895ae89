/**
 * Random queries and aggregates through the store: every walk by cursor, with new options for each page, equals the sorted list of the
 * oracle, which first hides and then filters; so do counts and capabilities, and so do groups with their measures.
 */
import type { Database } from '../../../src/database/contract.ts';
import type { Row } from '../../../src/policy/types.ts';
import { aggregated } from '../../oracle/aggregate.ts';
import type { Data, Id } from '../../oracle/database.ts';
import { inOrder } from '../../oracle/order.ts';
import { Showing } from '../../oracle/shown.ts';
import { fill, PLAIN, randomSchema, readAll } from '../doors/doors-world.ts';
import { withKeys } from '../doors/keyed-schema.ts';
import { makeOwned, withOwned } from '../doors/owned-schema.ts';
import { withReferences } from '../doors/referring-schema.ts';
import { Random } from '../random.ts';
import { FuzzCaller, type Standing, type StockedWorld } from './caller.ts';
import { wrongCan } from './capability-check.ts';
import { ChangingWalk } from './changing-walk.ts';
import { aroundDifference } from './difference.ts';
import { aggregationOf, OptionMaker, type Options, STATISTICS, sortOf } from './options.ts';
import { linesOf } from './read-rules.ts';
import { MOST_COUNTED } from './small-counts.ts';
import type { QueryDoors } from './store-modules.ts';
import { type Question, TaintCheck } from './taint.ts';

export interface PageCounts {
  worlds: number;
  walks: number;
  pages: number;
  /** Met on walks. */
  records: number;
  /** Counts the pages with relations, and those with capabilities. */
  expanded: number;
  capable: number;
  /** Counts that were given as estimates. */
  estimates: number;
  /** Walks with writes between their pages. */
  changing: number;
  aggregates: number;
  groups: number;
  /** A query, a caller and a row that it meets or does not meet. */
  decisions: number;
  /** Walks that would be others if nothing were hidden. */
  hidden: number;
  /** Hidden values, links and records that were changed before the same questions were asked again. */
  tainted: number;
  /** Queries that were refused for what they cost. */
  expensive: number;
}
export const noPageCounts = (): PageCounts => ({
  worlds: 0,
  walks: 0,
  pages: 0,
  records: 0,
  expanded: 0,
  capable: 0,
  estimates: 0,
  changing: 0,
  aggregates: 0,
  groups: 0,
  decisions: 0,
  hidden: 0,
  tainted: 0,
  expensive: 0,
});
export interface PageRun {
  readonly doors: QueryDoors;
  readonly seed: number;
  readonly counts: PageCounts;
  /** Callers of a world. Default 6. */
  readonly callers?: number;
  isOver(): boolean;
}

const ROWS = 24;
const CALLERS = 6;
const QUESTIONS = 12;

/** Runs one world in a database without tables. Returns the first disagreement in full, or undefined. */
export async function runPages(number: number, db: Database, run: PageRun): Promise<string | undefined> {
  const random = new Random((run.seed * 1_000_037 + number * 7_901) >>> 0);
  const { doors, counts } = run;
  const { schema, issues } = doors.parseSchema(
    indexed(withOwned(withReferences(withKeys(randomSchema(random), PLAIN, random), random), PLAIN, random), random),
  );
  if (schema === undefined) throw new Error(`the schema of the fuzz has errors: ${JSON.stringify(issues)}`);
  await makeOwned({ doors, schema, db }, random);
  await doors.applyMigration(db, schema);
  const stocked = { doors, schema, db };
  await fill(stocked, random, ROWS);
  // Estimates follow the statistics.
  await db.run(doors.compiler.sql.raw('ANALYZE'));
  let data = await readAll(stocked);
  counts.worlds++;
  for (let i = 0; i < (run.callers ?? CALLERS) && !run.isOver(); i++) {
    const session = new PageSession({ stocked, data, doors }, random, counts);
    const answer = await session.run();
    if (answer.found !== undefined)
      return `${answer.found}\n  again       seed ${run.seed}, world ${number} of the pages`;
    data = answer.data;
  }
  return undefined;
}

/** The time of requests is not under test. */
export const UNHURRIED = { query_time: '60s', write_time: '60s' };

/** An index is another way to read a page. */
export function indexed(text: string, random: Random): string {
  const file = JSON.parse(text) as { collections: Record<string, { fields: Record<string, object> }> };
  for (const { fields } of Object.values(file.collections))
    for (const [name, field] of Object.entries(fields)) fields[name] = { ...field, index: random.chance(0.5) };
  return JSON.stringify({ ...file, limits: UNHURRIED });
}

/** A filter in a body, and the records that it finds, as the caller sees them. */
interface Asked {
  readonly body: Row;
  readonly found: readonly Row[];
  /** True if the page has a filter. */
  readonly isFiltered: boolean;
}
/** The rows of the database afterwards, and a disagreement in words. */
interface Outcome {
  readonly data: Data;
  readonly found?: string | undefined;
}

/** A caller, with rules for every collection. */
class PageSession {
  readonly #world: StockedWorld;
  readonly #random: Random;
  readonly #counts: PageCounts;
  readonly #caller: FuzzCaller;
  readonly #standing: Standing;
  readonly #options: OptionMaker;
  /** Questions that were answered correctly. */
  readonly #questions: Question[] = [];
  /** All pages share it, so that plans are remembered. */
  #records: ReturnType<QueryDoors['createRecords']> | undefined;

  constructor(world: StockedWorld, random: Random, counts: PageCounts) {
    this.#world = world;
    this.#random = random;
    this.#counts = counts;
    this.#caller = new FuzzCaller(world, random);
    this.#standing = this.#caller.standing(world.data);
    this.#options = new OptionMaker(this.#caller, this.#standing, { schema: world.stocked.schema, random });
  }

  async run(): Promise<Outcome> {
    for (let i = 0; i < QUESTIONS; i++) {
      const asked = this.#asked();
      const question = this.#random.chance(0.7) ? this.#walk(asked) : this.#aggregate(asked);
      const found = await question.catch((error: unknown) => this.#tooExpensive(error));
      if (found !== undefined) return { data: this.#world.data, found };
    }
    const tainted = await this.#taint();
    const { managed } = this.#caller.collection;
    if (tainted.found !== undefined || !managed || this.#random.chance(0.3)) return tainted;
    this.#counts.changing++;
    const walk = new ChangingWalk({ ...this.#world, data: tainted.data }, this.#caller, this.#random);
    const { data, found } = await walk.run();
    return { data, found: found && this.#withRules(found) };
  }

  /** A filter may take long; that is not under test. */
  #tooExpensive(error: unknown): undefined {
    if ((error as { readonly code?: string }).code !== 'query_too_expensive') throw error;
    this.#counts.expensive++;
    return undefined;
  }

  /** The same questions, after a change of what the caller may not see. */
  async #taint(): Promise<Outcome> {
    const check = new TaintCheck(this.#world, this.#caller, this.#random);
    const { data, changes, expensive, found } = await check.run(this.#questions);
    this.#counts.tainted += changes;
    this.#counts.expensive += expensive;
    return { data, found: found && this.#withRules(found) };
  }

  #withRules(found: string): string {
    const { request, rules } = this.#caller;
    return [found, `  request     ${JSON.stringify(request)}`, ...linesOf(rules)].join('\n');
  }

  // -------------------------------------------------------------- the filter

  #asked(): Asked {
    const { name } = this.#caller.collection;
    const { listed, seen, visible, everything } = this.#standing;
    const all = listed.map((row) => seen.masked(name, row));
    const filter = this.#random.chance(0.4) ? undefined : this.#caller.filter(name);
    if (filter === undefined) return { body: {}, found: all, isFiltered: false };
    const { text, params, finds } = filter;
    const found = all.filter((row) => finds(row, visible));
    if (listed.filter((row) => finds(row, everything)).length !== found.length) this.#counts.hidden++;
    return { body: { filter: text, params }, found, isFiltered: true };
  }

  // -------------------------------------------------------------- pages

  async #walk({ body: filter, found, isFiltered }: Asked): Promise<string | undefined> {
    const random = this.#random;
    const { collection } = this.#caller;
    const { schema } = this.#world.stocked;
    const sort = sortOf(collection, { schema, random, masked: this.#caller.rules.members });
    const offset = random.chance(0.2) ? random.below(8) : undefined;
    const ordering = { catalog: schema, collection: collection.name, related: this.#standing.visible };
    const expected = inOrder(found, sort, ordering).map(({ id }) => id as Id);
    this.#counts.walks++;
    this.#counts.decisions += this.#world.data.rows.get(collection.name)!.length;
    let at = offset ?? 0;
    let cursor: string | undefined;
    for (;;) {
      const options = this.#options.make();
      const limit = 1 + random.below(random.chance(0.7) ? 6 : 100);
      const count = random.pick(['none', 'exact', 'estimated'] as const);
      const capabilities = random.chance(0.3);
      const more = { ...options.body, limit, count, capabilities };
      const body = withoutUndefined({ ...filter, sort, ...more, ...(cursor === undefined ? { offset } : { cursor }) });
      const { nextCursor, records, ...counted } = await this.#page(body);
      const page = { ids: expected.slice(at, at + limit), options, capabilities };
      const wanted = { records: this.#shown(page), hasMore: expected.length > at + limit };
      this.#questions.push({ kind: 'query', body });
      this.#countPage(body, records);
      const wrong =
        this.#wrongCapabilities(page, records) ??
        this.#wrongCount(count, { ...counted, count: expected.length, isFiltered });
      const shown = { records: records.map(({ can: _, ...record }) => record), hasMore: nextCursor !== undefined };
      if (wrong !== undefined || text(shown) !== text(wanted)) return this.#told({ body, wanted, shown, wrong });
      if (nextCursor === undefined) return undefined;
      cursor = nextCursor;
      const misused = random.chance(0.1) ? await this.#misuse({ ...filter, sort }, cursor) : undefined;
      if (misused !== undefined) return misused;
      at += limit;
    }
  }

  #countPage({ expand, capabilities }: Row, records: readonly Row[]): void {
    this.#counts.pages++;
    this.#counts.records += records.length;
    if (expand !== undefined) this.#counts.expanded++;
    if (capabilities === true) this.#counts.capable++;
  }

  #shown({ ids, options }: PageWanted): readonly Row[] {
    const { name } = this.#caller.collection;
    const showing = new Showing({ catalog: this.#world.stocked.schema, ...this.#standing });
    return ids.map((id) => showing.record(name, this.#standing.everything.one(name, id)!, options.wanted));
  }

  #wrongCapabilities({ ids, capabilities }: PageWanted, records: readonly Row[]): string | undefined {
    const { name } = this.#caller.collection;
    const about = { caller: this.#caller, standing: this.#standing, random: this.#random };
    for (const record of records) {
      if (!capabilities && 'can' in record) return 'can where it was not asked for';
      if (!capabilities || !ids.includes(record.id as Id)) continue;
      const wrong = wrongCan(record.can, this.#standing.everything.one(name, record.id as Id)!, about);
      if (wrong !== undefined) return `${String(record.id)}: ${wrong}`;
    }
    return undefined;
  }

  /** An estimate above what is counted is the planner's only where nothing may be hidden. */
  #wrongCount(kind: string, { total, totalIsEstimate, count, isFiltered }: CountShown): string | undefined {
    if (kind === 'none') return total === undefined ? undefined : 'a total that was not asked for';
    if (kind === 'exact' || count <= MOST_COUNTED) {
      const isSaid = totalIsEstimate === (kind === 'exact' ? undefined : false);
      return total === count && isSaid ? undefined : `total ${total} (${totalIsEstimate}), expected ${count}`;
    }
    this.#counts.estimates++;
    if (totalIsEstimate !== true || total === undefined)
      return `total ${total} (${totalIsEstimate}), expected an estimate`;
    if (total === MOST_COUNTED) return undefined;
    const rows = this.#world.data.rows.get(this.#caller.collection.name)!.length;
    if (this.#standing.listed.length < rows)
      return `total ${total}: the planner's, although the list rule hides records`;
    // The tables of a world grow by what is written between the callers.
    const isNear = total > MOST_COUNTED && (isFiltered || (total >= count / 4 && total <= count * 4));
    return isNear ? undefined : `total ${total}, expected about ${count}`;
  }

  async #page(body: Row) {
    const { doors, stocked } = this.#world;
    this.#records ??= doors.createRecords(stocked.db, stocked.schema, { statisticsOf: this.#random.pick(STATISTICS) });
    const request = doors.queryRequestOf(body, stocked.schema, this.#caller.collection);
    const { json, ...page } = await this.#records.list(this.#caller.access(), request);
    return { records: JSON.parse(String(json)) as readonly Row[], ...page };
  }

  /** A cursor of another order, or of another signature, is none. */
  async #misuse(body: Row & { readonly sort: readonly string[] }, cursor: string): Promise<string | undefined> {
    const { sort } = body;
    const other = sort.length > 0 ? [] : ['-id'];
    const first = cursor.startsWith('A') ? 'B' : 'A';
    const wrong = this.#random.chance(0.5)
      ? { ...body, sort: other, cursor }
      : { ...body, cursor: `${first}${cursor.slice(1)}` };
    try {
      const shown = await this.#page(wrong);
      return this.#told({ body: wrong, wanted: { code: 'invalid_cursor' }, shown });
    } catch (error) {
      if ((error as { readonly code?: string }).code === 'invalid_cursor') return undefined;
      throw error;
    }
  }

  // -------------------------------------------------------------- aggregates

  async #aggregate({ body: filter, found }: Asked): Promise<string | undefined> {
    const { doors, stocked, data } = this.#world;
    const { collection } = this.#caller;
    const asked = aggregationOf(collection, this.#random);
    const limit = this.#random.chance(0.5) ? 1 + this.#random.below(6) : 1000;
    const body = { ...filter, ...asked, limit };
    const rows = aggregated(found, asked, collection);
    const request = doors.aggregateRequestOf(body, stocked.schema, collection);
    const { json, hasMore } = await doors
      .createRecords(stocked.db, stocked.schema)
      .aggregate(this.#caller.access(), request);
    const shown = { rows: JSON.parse(String(json)) as readonly Row[], hasMore };
    const wanted = { rows: rows.slice(0, limit), hasMore: rows.length > limit };
    this.#questions.push({ kind: 'aggregate', body });
    this.#counts.aggregates++;
    this.#counts.decisions += data.rows.get(collection.name)!.length;
    this.#counts.groups += shown.rows.length;
    return text(shown) === text(wanted) ? undefined : this.#told({ body, wanted, shown });
  }

  #told({ body, wanted, shown, wrong }: Told): string {
    const lines = [
      `DISAGREEMENT: the store, in an answer about ${this.#caller.collection.name}`,
      `  body        ${JSON.stringify(body)}`,
      ...(wrong === undefined ? [] : [`  wrong       ${wrong}`]),
      `  expected    ${aroundDifference(text(wanted), text(shown))}`,
      `  found       ${aroundDifference(text(shown), text(wanted))}`,
    ];
    return this.#withRules(lines.join('\n'));
  }
}

interface PageWanted {
  readonly ids: readonly Id[];
  readonly options: Options;
  readonly capabilities: boolean;
}
interface CountShown {
  readonly total?: number;
  readonly totalIsEstimate?: boolean;
  /** The records that the query finds. */
  readonly count: number;
  readonly isFiltered: boolean;
}
interface Told {
  readonly body: object;
  readonly wanted: object;
  readonly shown: object;
  readonly wrong?: string | undefined;
}

const withoutUndefined = (row: Row): Row =>
  Object.fromEntries(Object.entries(row).filter(([, value]) => value !== undefined));

/** Equal for equal answers, in any order of their members. Zero has one sign. */
const text = (value: unknown): string =>
  JSON.stringify(value, (_, each) =>
    each !== null && typeof each === 'object' && !Array.isArray(each)
      ? Object.fromEntries(Object.entries(each).sort(([a], [b]) => (a < b ? -1 : 1)))
      : each,
  );
