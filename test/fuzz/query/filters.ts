/**
 * Random filters × policies × masks × callers: the rows that a filter finds under the list rule are those that the interpreter finds in what
 * is left of the database after everything that the caller may not read has been taken out.
 */
import type { Permit } from '../../../src/policy/access.ts';
import type { CatalogCollection, PolicyRequest, Related, Row } from '../../../src/policy/types.ts';
import type { Readable, Visibility } from '../../../src/policy/visibility.ts';
import { raw } from '../../../src/sql.ts';
import { relatedOf } from '../../oracle/database.ts';
import { hide } from '../../oracle/hide.ts';
import { interpret } from '../../oracle/interpret.ts';
import { ask, isTimeout, type Question } from '../policies/batch.ts';
import { type Finding, storedRows } from '../policies/differential.ts';
import type { PolicyMaker } from '../policies/policies.ts';
import { randomRequest } from '../policies/requests.ts';
import type { Lane } from '../policies/run.ts';
import { createTables } from '../policies/tables.ts';
import { FEW_ROWS, MANY_ROWS, randomWorld, type World } from '../policies/world.ts';
import { Random } from '../random.ts';
import { filterOf, fitted } from './client-filters.ts';
import { linesOf, meantBy, permitOf, type Rule, RuleMaker, type RuleSet } from './read-rules.ts';
import type { QueryCompiler } from './store-modules.ts';

export interface FilterCounts {
  worlds: number;
  filters: number;
  /** A filter that has no text, or was rejected with every choice of params. */
  rejected: number;
  /** A filter, a caller and a row. */
  decisions: number;
  found: number;
  /** Decisions that would be others if nothing were hidden. */
  hidden: number;
  /** Filters that the server gave up. */
  slow: number;
}
export const noFilterCounts = (): FilterCounts => ({
  worlds: 0,
  filters: 0,
  rejected: 0,
  decisions: 0,
  found: 0,
  hidden: 0,
  slow: 0,
});
export interface FilterRun {
  readonly compiler: QueryCompiler;
  readonly seed: number;
  readonly counts: FilterCounts;
  /** Rows of a collection. Default: few or many, by the number of the world. */
  readonly rows?: number;
  isOver(): boolean;
}

const CALLERS = 4;
/** Filters of a caller. With more rows, rules and tables take longer to make. */
const FILTERS = 48;
const FILTERS_OF_MANY_ROWS = 144;
/** In a statement. */
const QUESTIONS = 48;

/**
 * Two worlds of three have many rows: each filter decides all of them. The others have few, so that there are many worlds. The embedded
 * database holds up everything else while it works.
 */
const rowsOf = (number: number, { backend }: Lane): number =>
  number % 3 === 2 || backend === 'PGlite' ? FEW_ROWS : MANY_ROWS;

/** The first disagreement, in words. */
export async function runFilters(number: number, lane: Lane, run: FilterRun): Promise<string | undefined> {
  const random = new Random((run.seed * 1_000_003 + number * 6_007 + 77) >>> 0);
  const most = run.rows ?? rowsOf(number, lane);
  const world = randomWorld(random, { most });
  const schema = `filters_${process.pid}_${number}`;
  const { database } = lane;
  await database.query(`CREATE SCHEMA ${schema}`);
  try {
    await database.query(`SET search_path = ${schema}`);
    await createTables(database, { ...world, collation: random.chance(0.5) ? 'declared' : 'default' });
    // Without statistics the planner takes every table for a small one.
    if (most > FEW_ROWS) await database.query('ANALYZE');
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

const OTHERS = (['allow', 'deny'] as const).map((verdict): Visibility => {
  const rule: Readable = { verdict, where: () => raw('TRUE'), lookUps: [] };
  return { records: () => rule, member: () => rule };
});

/** A caller's view of the filtered collection, and of the collections that it leads to. */
interface Sight {
  readonly request: PolicyRequest;
  /** The rows in their order, as the caller sees them; undefined: not listed. */
  readonly listed: readonly (Row | undefined)[];
  readonly visible: Related;
  readonly everything: Related;
  readonly permit: Permit;
  readonly visibility: Visibility;
}

/** A caller, with rules for every collection, and filters for one. */
class FilterSession {
  readonly #world: World;
  readonly #grounds: Grounds;
  readonly #ids: ReadonlyMap<string, readonly string[]>;
  readonly #allIds: readonly string[];
  readonly #collection: string;

  constructor(world: World, grounds: Grounds) {
    this.#world = world;
    this.#grounds = grounds;
    this.#ids = new Map([...world.data.rows].map(([name, rows]) => [name, rows.map((row) => row.id as string)]));
    this.#allIds = [...this.#ids.values()].flat();
    this.#collection = grounds.random.pick([...world.catalog.collections.keys()]);
  }

  async run(): Promise<string | undefined> {
    const { lane, random, run } = this.#grounds;
    const { catalog } = this.#world;
    const request = this.#request();
    const ruleMaker = new RuleMaker({ catalog, ids: this.#ids, random, compiler: run.compiler });
    const rules = ruleMaker.make(this.#collection, (name) => maskable(catalog.collections.get(name)!));
    const sight = this.#sightOf(rules, request);
    const maker = ruleMaker.maker(this.#collection);
    const isSmall = this.#rows.length <= FEW_ROWS;
    for (let left = isSmall ? FILTERS : FILTERS_OF_MANY_ROWS; left > 0 && !run.isOver(); left -= QUESTIONS) {
      const questions: Question[] = [];
      for (let i = 0; i < QUESTIONS; i++) {
        questions.push(...this.#question(maker, sight));
        // Other lanes have answers to read, before what they wait for is late.
        await new Promise(setImmediate);
      }
      if (questions.length === 0) continue;
      const from = storedRows(catalog.collections.get(this.#collection)!, run.compiler);
      const batch = { from, questions, asWhere: random.chance(0.5) };
      const finding = await ask(lane.database, batch, { compiler: run.compiler, backend: lane.backend });
      if (isTimeout(finding?.error)) run.counts.slow++;
      else if (finding !== undefined) return this.#told(finding, rules);
    }
    return undefined;
  }

  get #rows(): readonly Row[] {
    return this.#world.data.rows.get(this.#collection)!;
  }

  /** The records and fields that the caller may see. */
  #sightOf(rules: RuleSet, request: PolicyRequest): Sight {
    const { catalog, data } = this.#world;
    const seen = hide(catalog, data, { rules: meantBy(rules), request });
    const everything = relatedOf(catalog, data);
    const isListed = ({ record }: { readonly record: Row }): boolean =>
      rules.list.some(({ meant }) => interpret(meant, { record, related: everything, request }) === true);
    const listed = this.#rows.map((record) =>
      isListed({ record }) ? seen.masked(this.#collection, record) : undefined,
    );
    const permit = permitOf(rules.list, request, this.#grounds.run.compiler.decide);
    const visibility = this.#visibility(rules, request);
    return { request, listed, visible: relatedOf(catalog, seen.data), everything, permit, visibility };
  }

  /** A filter with what it should find, or nothing where none was found that says something. */
  #question(maker: PolicyMaker, sight: Sight): readonly Question[] {
    const { random, run } = this.#grounds;
    const { compiler, counts } = run;
    const { request, listed, visible, everything, permit, visibility } = sight;
    const written = filterOf(maker.make());
    const place = { catalog: this.#world.catalog, collection: this.#collection };
    const made = written && fitted(written, { random, ids: this.#allIds, compiler, place });
    counts.filters++;
    if (made === undefined) {
      counts.rejected++;
      return [];
    }
    const { text, filter, checked, params } = made;
    const asked: PolicyRequest = { auth: request.auth, query: {}, params, now: request.now };
    const finds = (record: Row, related: Related): boolean =>
      interpret(checked, { record, related, request: asked }) === true;
    const expected = listed.map((record) => record !== undefined && finds(record, visible));
    counts.decisions += expected.length;
    counts.found += expected.filter(Boolean).length;
    if (expected.length <= FEW_ROWS)
      counts.hidden += this.#rows.filter(
        (row, r) => listed[r] !== undefined && finds(row, everything) !== expected[r],
      ).length;
    const { sql } = compiler.sql;
    // The condition of a filter for another caller must not serve this one.
    if (random.chance(0.5)) filter.where('r', { auth: request.auth!, now: request.now }, random.pick(OTHERS));
    const seen = filter.where('r', { auth: request.auth!, now: request.now }, visibility);
    const finding = { form: 'it', text, request: { ...asked, query: request.query } } as unknown as Finding;
    return [{ condition: sql`(${seen} AND ${permit.where('r')})`, expected, finding }];
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
