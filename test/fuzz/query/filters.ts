/**
 * Random filters × policies × masks × callers: the rows that a filter finds under the list rule are those that the interpreter finds in what
 * is left of the database after everything that the caller may not read has been taken out.
 */
import type { CatalogCollection, PolicyRequest, Row } from '../../../src/policy/types.ts';
import type { Readable, Visibility } from '../../../src/policy/visibility.ts';
import { relatedOf } from '../../oracle/database.ts';
import { hide } from '../../oracle/hide.ts';
import { interpret } from '../../oracle/interpret.ts';
import { ask, type Question } from '../batch.ts';
import type { Finding } from '../differential.ts';
import { Random } from '../random.ts';
import { randomRequest } from '../requests.ts';
import type { Lane } from '../run.ts';
import { createTables } from '../tables.ts';
import { randomWorld, type World } from '../world.ts';
import { filterOf, fitted } from './client-filters.ts';
import type { QueryCompiler } from './compiler.ts';
import { linesOf, meantBy, permitOf, type Rule, RuleMaker, type RuleSet } from './read-rules.ts';

export interface FilterCounts {
  worlds: number;
  filters: number;
  /** Could not be said, or was rejected with every choice of params. */
  rejected: number;
  /** A filter, a caller and a row. */
  decisions: number;
  found: number;
  /** Decisions that would be others if nothing were hidden. */
  hidden: number;
}
export const noFilterCounts = (): FilterCounts => ({
  worlds: 0,
  filters: 0,
  rejected: 0,
  decisions: 0,
  found: 0,
  hidden: 0,
});
export interface FilterRun {
  readonly compiler: QueryCompiler;
  readonly seed: number;
  readonly counts: FilterCounts;
  isOver(): boolean;
}

const CALLERS = 4;
const FILTERS = 48;

/** The first disagreement, in words. */
export async function runFilters(number: number, lane: Lane, run: FilterRun): Promise<string | undefined> {
  const random = new Random((run.seed * 1_000_003 + number * 6_007 + 77) >>> 0);
  const world = randomWorld(random);
  const schema = `filters_${process.pid}_${number}`;
  const { database } = lane;
  await database.query(`CREATE SCHEMA ${schema}`);
  try {
    await database.query(`SET search_path = ${schema}`);
    await createTables(database, { ...world, collation: random.chance(0.5) ? 'declared' : 'default' });
    run.counts.worlds++;
    for (let i = 0; i < CALLERS; i++) {
      const found = await new FilterSession(world, { lane, run, random }).run();
      if (found !== undefined)
        return `${found}\n  again       npm run fuzz -- query --seed ${run.seed} --world ${number}`;
      if (run.isOver()) return undefined;
    }
    return undefined;
  } finally {
    await database.query(`DROP SCHEMA ${schema} CASCADE`);
  }
}

interface Grounds {
  readonly lane: Lane;
  readonly run: FilterRun;
  readonly random: Random;
}

/** One caller, with rules for every collection, and filters for one. */
class FilterSession {
  readonly #world: World;
  readonly #grounds: Grounds;
  readonly #ids: ReadonlyMap<string, readonly string[]>;
  readonly #collection: string;

  constructor(world: World, grounds: Grounds) {
    this.#world = world;
    this.#grounds = grounds;
    this.#ids = new Map([...world.data.rows].map(([name, rows]) => [name, rows.map((row) => row.id as string)]));
    this.#collection = grounds.random.pick([...world.catalog.collections.keys()]);
  }

  async run(): Promise<string | undefined> {
    const { random, run } = this.#grounds;
    const { catalog, data } = this.#world;
    const request = this.#request();
    const ruleMaker = new RuleMaker({ catalog, ids: this.#ids, random, compiler: run.compiler });
    const rules = ruleMaker.make(this.#collection, (name) => maskable(catalog.collections.get(name)!));
    const { list } = rules;
    const seen = hide(catalog, data, { rules: meantBy(rules), request });
    const visibility = this.#visibility(rules, request);
    const listed = permitOf(list, request, run.compiler.decide);
    const ids = [...this.#ids.values()].flat();
    const table = catalog.collections.get(this.#collection)!.table;
    const [everything, visible] = [relatedOf(catalog, data), relatedOf(catalog, seen.data)];
    const rows = data.rows.get(this.#collection)!;
    const isListed = rows.map((record) =>
      list.some(({ meant }) => interpret(meant, { record, related: everything, request }) === true),
    );
    const questions: Question[] = [];
    const maker = ruleMaker.maker(this.#collection);
    for (let i = 0; i < FILTERS; i++) {
      const written = filterOf(maker.make());
      const made =
        written &&
        fitted(written, { random, ids, compiler: run.compiler, place: { catalog, collection: this.#collection } });
      run.counts.filters++;
      if (made === undefined) {
        run.counts.rejected++;
        continue;
      }
      const { filter, checked, params } = made;
      const asked: PolicyRequest = { auth: request.auth, query: {}, params, now: request.now };
      const finds = (record: Row, related = visible) =>
        interpret(checked, { record, related, request: asked }) === true;
      const expected = rows.map((row, r) => isListed[r]! && finds(seen.masked(this.#collection, row)));
      run.counts.decisions += rows.length;
      run.counts.found += expected.filter(Boolean).length;
      run.counts.hidden += rows.filter((row, r) => isListed[r]! && finds(row, everything) !== expected[r]).length;
      const { sql } = run.compiler.sql;
      const condition = sql`(${filter.where('r', { auth: request.auth!, now: request.now }, visibility)} AND ${listed.where('r')})`;
      const finding = {
        form: 'it',
        text: made.text,
        request: { ...asked, query: request.query },
      } as unknown as Finding;
      questions.push({ condition, expected, finding });
    }
    const batch = { from: `"${table}" AS r`, questions, asWhere: random.chance(0.5) };
    if (questions.length === 0) return undefined;
    const { lane } = this.#grounds;
    const finding = await ask(lane.database, batch, { compiler: run.compiler, backend: lane.backend });
    return finding && this.#told(finding, rules);
  }

  #request(): PolicyRequest {
    const { random } = this.#grounds;
    const setting = { catalog: this.#world.catalog, collection: this.#collection, action: 'list' } as const;
    for (;;) {
      const request = randomRequest(this.#world, setting, random);
      if (request.auth !== null) return request;
    }
  }

  #visibility({ records, members }: RuleSet, request: PolicyRequest): Visibility {
    const { decide } = this.#grounds.run.compiler;
    const permit = (rule: Rule): Readable => permitOf(rule, request, decide);
    return {
      records: (collection) => permit(records.get(collection)!),
      member: (collection, member) => {
        const rule = members.get(collection)!.get(member);
        return rule && permit(rule);
      },
    };
  }

  #told({ text, request, row, expected, error, sql }: Finding, rules: RuleSet): string {
    return [
      `DISAGREEMENT: ${this.#grounds.lane.backend}, a filter of ${this.#collection}`,
      `  filter      ${text}`,
      `  request     ${JSON.stringify(request)}`,
      ...linesOf(rules),
      `  row ${row}      ${JSON.stringify(this.#world.data.rows.get(this.#collection)![row])}`,
      error === undefined ? `  expected    ${expected}` : `  error       ${(error as Error).stack}`,
      `  sql         ${sql?.text}`,
      `  values      ${JSON.stringify(sql?.values)}`,
    ].join('\n');
  }
}

/** Fields and belongs_to. */
function maskable({ fields, relations }: CatalogCollection): readonly string[] {
  const own = [...relations.values()].filter(({ kind }) => kind === 'belongs_to');
  return [...fields.keys(), ...own.map(({ name }) => name)];
}
