/**
 * Random queries and aggregates through the store: every walk by cursor, with a new limit for each page, equals the sorted list of the
 * oracle, which first hides and then filters; so do counts, and so do groups with their measures.
 */
import type { Permit } from '../../../src/policy/access.ts';
import type { PolicyRequest, Related, Row } from '../../../src/policy/types.ts';
import type { Collection } from '../../../src/schema/model.ts';
import type { Database } from '../../../src/store/database/contract.ts';
import type { AccessContext } from '../../../src/store/records/access-context.ts';
import { type Aggregation, aggregated } from '../../oracle/aggregate.ts';
import { type Data, type Id, relatedOf } from '../../oracle/database.ts';
import { hide, type Seen } from '../../oracle/hide.ts';
import { interpret } from '../../oracle/interpret.ts';
import { inOrder } from '../../oracle/order.ts';
import { idsOf } from '../doors.ts';
import { fill, PLAIN, randomSchema, readAll, type Stocked } from '../doors-world.ts';
import { Random } from '../random.ts';
import { randomRequest } from '../requests.ts';
import type { World } from '../world.ts';
import { filterOf, fitted } from './client-filters.ts';
import { linesOf, meantBy, permitOf, RuleMaker, type RuleSet } from './read-rules.ts';
import type { QueryDoors } from './store-modules.ts';
import { type Question, TaintCheck } from './taint.ts';

export interface PageCounts {
  worlds: number;
  walks: number;
  pages: number;
  /** Met on walks. */
  records: number;
  aggregates: number;
  groups: number;
  /** Walks that would be others if nothing were hidden. */
  hidden: number;
  /** Hidden values that were changed before the same questions were asked again. */
  tainted: number;
}
export const noPageCounts = (): PageCounts => ({
  worlds: 0,
  walks: 0,
  pages: 0,
  records: 0,
  aggregates: 0,
  groups: 0,
  hidden: 0,
  tainted: 0,
});
export interface PageRun {
  readonly doors: QueryDoors;
  readonly seed: number;
  readonly counts: PageCounts;
  isOver(): boolean;
}

const ROWS = 24;
const CALLERS = 6;
const QUESTIONS = 12;

/** One world in a database without tables. The first disagreement in full; undefined if there is none. */
export async function runPages(number: number, db: Database, run: PageRun): Promise<string | undefined> {
  const random = new Random((run.seed * 1_000_037 + number * 7_901) >>> 0);
  const { schema, issues } = run.doors.parseSchema(indexed(randomSchema(random), random));
  if (schema === undefined) throw new Error(`the schema of the fuzz has errors: ${JSON.stringify(issues)}`);
  await run.doors.applyMigration(db, schema);
  const stocked = { doors: run.doors, schema, db };
  await fill(stocked, random, ROWS);
  let data = await readAll(stocked);
  run.counts.worlds++;
  for (let i = 0; i < CALLERS && !run.isOver(); i++) {
    const session = new PageSession({ stocked, data, doors: run.doors }, random, run.counts);
    const answer = (await session.run()) ?? (await session.taint());
    const found = typeof answer === 'string' ? answer : answer.found;
    if (typeof answer !== 'string') data = answer.data;
    if (found !== undefined) return `${found}\n  again       seed ${run.seed}, world ${number} of the pages`;
  }
  return undefined;
}

/** An index is another way to read a page. The time of a query is not under test. */
export function indexed(text: string, random: Random): string {
  const file = JSON.parse(text) as { collections: Record<string, { fields: Record<string, object> }> };
  for (const { fields } of Object.values(file.collections))
    for (const [name, field] of Object.entries(fields)) fields[name] = { ...field, index: random.chance(0.5) };
  return JSON.stringify({ ...file, limits: { query_time: '60s' } });
}

interface StockedWorld {
  readonly stocked: Stocked;
  readonly data: Data;
  readonly doors: QueryDoors;
}
/** A filter in a body, and the records that it finds, as the caller sees them. */
interface Asked {
  readonly body: Row;
  readonly found: readonly Row[];
}

/** One caller, with rules for every collection. */
class PageSession {
  readonly #world: StockedWorld;
  readonly #random: Random;
  readonly #counts: PageCounts;
  readonly #collection: Collection;
  readonly #rules: RuleSet;
  readonly #maker: RuleMaker;
  readonly #request: PolicyRequest;
  readonly #everything: Related;
  readonly #seen: Seen;
  readonly #visible: Related;
  readonly #ids: ReadonlyMap<string, readonly Id[]>;
  /** Those that were answered as they should be. */
  readonly #questions: Question[] = [];

  constructor(world: StockedWorld, random: Random, counts: PageCounts) {
    this.#world = world;
    this.#random = random;
    this.#counts = counts;
    const { data, doors } = world;
    const { schema } = world.stocked;
    this.#collection = schema.collections.get(random.pick(['users', ...PLAIN, ...PLAIN]))!;
    this.#ids = new Map([...data.rows].map(([name, rows]) => [name, idsOf(rows)]));
    this.#maker = new RuleMaker({ catalog: schema, ids: this.#ids, random, compiler: doors.compiler });
    const { name } = this.#collection;
    this.#rules = this.#maker.make(name, (of) => [...schema.collections.get(of)!.memberAccess.keys()]);
    const setting = { catalog: schema, collection: name, action: 'list' } as const;
    const request = randomRequest({ catalog: schema, data } as unknown as World, setting, random);
    this.#request = { ...request, auth: request.auth ?? random.pick(data.rows.get('users')!) };
    this.#seen = hide(schema, data, { rules: meantBy(this.#rules), request: this.#request });
    this.#everything = relatedOf(schema, data);
    this.#visible = relatedOf(schema, this.#seen.data);
  }

  async run(): Promise<string | undefined> {
    for (let i = 0; i < QUESTIONS; i++) {
      const asked = this.#asked();
      const found = await (this.#random.chance(0.7) ? this.#walk(asked) : this.#aggregate(asked));
      if (found !== undefined) return found;
    }
    return undefined;
  }

  /** The same questions, after a change of what the caller may not see. */
  async taint() {
    const { data, ...world } = this.#world;
    const access = this.#access();
    const caller = { ...world, collection: this.#collection, rules: this.#rules, request: this.#request, access };
    const answer = await new TaintCheck(caller, this.#random).run(data, this.#questions);
    this.#counts.tainted += answer.changes;
    if (answer.found === undefined) return answer;
    const lines = [answer.found, `  request     ${JSON.stringify(this.#request)}`, ...linesOf(this.#rules)];
    return { ...answer, found: lines.join('\n') };
  }

  // -------------------------------------------------------------- the filter

  #asked(): Asked {
    const { name } = this.#collection;
    const listed = this.#world.data.rows.get(name)!.filter((record) => this.#isListed(record));
    const all = listed.map((row) => this.#seen.masked(name, row));
    const filter = this.#random.chance(0.4) ? undefined : this.#filter();
    if (filter === undefined) return { body: {}, found: all };
    const { text, params, checked } = filter;
    const request = { auth: this.#request.auth, query: {}, params, now: this.#request.now };
    const finds = (record: Row, related: Related) => interpret(checked, { record, related, request }) === true;
    const found = all.filter((row) => finds(row, this.#visible));
    if (listed.filter((row) => finds(row, this.#everything)).length !== found.length) this.#counts.hidden++;
    return { body: { filter: text, params }, found };
  }

  #isListed(record: Row): boolean {
    const place = { record, related: this.#everything, request: this.#request };
    return this.#rules.list.some(({ meant }) => interpret(meant, place) === true);
  }

  #filter() {
    const { name } = this.#collection;
    const { stocked, doors } = this.#world;
    const written = filterOf(this.#maker.maker(name).make());
    if (written === undefined || written.text.length > 4096) return undefined;
    const place = { catalog: stocked.schema, collection: name };
    const ids = [...this.#ids.values()].flat();
    return fitted(written, { random: this.#random, ids, compiler: doors.compiler, place });
  }

  // -------------------------------------------------------------- pages

  async #walk({ body: filter, found }: Asked): Promise<string | undefined> {
    const random = this.#random;
    const sort = this.#sort();
    const offset = random.chance(0.2) ? random.below(8) : undefined;
    const ordering = { catalog: this.#world.stocked.schema, collection: this.#collection.name, related: this.#visible };
    const expected = inOrder(found, sort, ordering).map(({ id }) => id as Id);
    this.#counts.walks++;
    let at = offset ?? 0;
    let cursor: string | undefined;
    for (;;) {
      const limit = 1 + random.below(random.chance(0.7) ? 6 : 100);
      const count = random.pick(['none', 'exact', 'estimated'] as const);
      const body = { ...filter, sort, limit, count, ...(cursor === undefined ? { offset } : { cursor }) };
      const page = await this.#page(withoutUndefined(body));
      const wanted = {
        ids: expected.slice(at, at + limit),
        hasMore: expected.length > at + limit,
        ...(count !== 'none' && { total: expected.length }),
        ...(count === 'estimated' && { totalIsEstimate: false }),
      };
      const { nextCursor, ...shown } = page;
      if (cursor === undefined) this.#questions.push({ kind: 'query', body: withoutUndefined(body) });
      this.#counts.pages++;
      this.#counts.records += page.ids.length;
      if (text(shown) !== text(wanted)) return this.#told({ body, wanted, shown });
      if (nextCursor === undefined) return undefined;
      cursor = nextCursor;
      const misused = random.chance(0.1) ? await this.#misuse({ ...filter, sort }, cursor) : undefined;
      if (misused !== undefined) return misused;
      at += limit;
    }
  }

  async #page(body: Row) {
    const { doors, stocked } = this.#world;
    const records = doors.createRecords(stocked.db, stocked.schema);
    const request = doors.queryRequestOf(body, stocked.schema, this.#collection);
    const { json, nextCursor, ...counted } = await records.query(this.#access(), request);
    const ids = (JSON.parse(json) as readonly Row[]).map(({ id }) => id as Id);
    return { ids, hasMore: nextCursor !== undefined, ...counted, nextCursor };
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

  /** Up to four different paths through belongs_to and has_one. */
  #sort(): readonly string[] {
    const paths = Array.from({ length: this.#random.below(5) }, () => this.#path(this.#collection, 2));
    return [...new Set(paths)].map((path) => (this.#random.chance(0.5) ? `-${path}` : path));
  }

  #path({ fields, relations }: Collection, most: number): string {
    const random = this.#random;
    const steps = [...relations.values()].filter(({ kind }) => kind === 'belongs_to' || kind === 'has_one');
    if (most === 0 || steps.length === 0 || random.chance(0.6)) return random.pick([...fields.keys(), 'id']);
    const { name, collection } = random.pick(steps);
    return `${name}.${this.#path(this.#world.stocked.schema.collections.get(collection)!, most - 1)}`;
  }

  // -------------------------------------------------------------- aggregates

  async #aggregate({ body: filter, found }: Asked): Promise<string | undefined> {
    const { doors, stocked } = this.#world;
    const asked = this.#aggregation();
    const limit = this.#random.chance(0.5) ? 1 + this.#random.below(6) : 1000;
    const body = { ...filter, ...asked, limit };
    const rows = aggregated(found, asked, this.#collection);
    const request = doors.aggregateRequestOf(body, stocked.schema, this.#collection);
    const { json, hasMore } = await doors.createRecords(stocked.db, stocked.schema).aggregate(this.#access(), request);
    const shown = { rows: JSON.parse(json) as readonly Row[], hasMore };
    const wanted = { rows: rows.slice(0, limit), hasMore: rows.length > limit };
    this.#questions.push({ kind: 'aggregate', body });
    this.#counts.aggregates++;
    this.#counts.groups += shown.rows.length;
    return text(shown) === text(wanted) ? undefined : this.#told({ body, wanted, shown });
  }

  #aggregation(): Aggregation {
    const random = this.#random;
    const { fields, relations } = this.#collection;
    const all = [...fields.values()];
    const dates = all.filter(({ type }) => type === 'datetime').map(({ name }) => name);
    const groups = [
      ...fields.keys(),
      ...[...relations.values()].filter(({ kind }) => kind === 'belongs_to').map(({ name }) => name),
      ...dates.flatMap((name) => ['year', 'month', 'day'].map((part) => `${part}(${name})`)),
    ];
    const group_by = random.shuffled(groups).slice(0, random.below(4));
    const measured = all.flatMap(({ name, type }) => {
      if (type === 'bool') return [];
      const kinds = type === 'int' || type === 'float' ? ['sum', 'avg', 'min', 'max'] : ['min', 'max'];
      return kinds.map((kind) => `${kind}(${name})`);
    });
    const some = ['count', ...random.shuffled(measured).slice(0, random.below(5))];
    const measures = Object.fromEntries(some.map((measure, i) => [`m${i}`, measure]));
    const names = random.shuffled([...group_by, ...Object.keys(measures)]).slice(0, random.below(4));
    return { group_by, measures, sort: names.map((name) => (random.chance(0.5) ? `-${name}` : name)) };
  }

  // -------------------------------------------------------------- the caller

  #access(): AccessContext {
    const { decide } = this.#world.doors;
    const { list, records, members } = this.#rules;
    const permit = (collection: string, action: string): Permit =>
      permitOf(action === 'list' ? list : action === 'read' ? records.get(collection)! : [], this.#request, decide);
    return {
      collection: this.#collection,
      permit,
      member: (collection, name, action) => {
        const rule = action === 'read' ? members.get(collection)!.get(name) : undefined;
        return rule && permitOf(rule, this.#request, decide);
      },
      prospect: () => ({ certain: permit('', 'update'), possible: permit('', 'update') }),
      auth: this.#request.auth!,
      now: this.#request.now,
    };
  }

  #told({ body, wanted, shown }: { readonly body: object; readonly wanted: object; readonly shown: object }): string {
    return [
      `DISAGREEMENT: the store, in an answer about ${this.#collection.name}`,
      `  body        ${JSON.stringify(body)}`,
      `  request     ${JSON.stringify(this.#request)}`,
      ...linesOf(this.#rules),
      `  expected    ${text(wanted)}`,
      `  found       ${text(shown)}`,
    ].join('\n');
  }
}

const withoutUndefined = (row: Row): Row =>
  Object.fromEntries(Object.entries(row).filter(([, value]) => value !== undefined));

/** Equal for equal answers, in whatever order their members come. Zero has one sign. */
const text = (value: unknown): string =>
  JSON.stringify(value, (_, each) =>
    each !== null && typeof each === 'object' && !Array.isArray(each)
      ? Object.fromEntries(Object.entries(each).sort(([a], [b]) => (a < b ? -1 : 1)))
      : each,
  );
