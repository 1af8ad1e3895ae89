/**
 * Lists as the service asks them: random list rules, exact filters, offsets, counts and cursors by id, each page found now by the
 * plain condition, now by the branches of the rule. The interpreter says which records there are, and both ways give the same bytes.
 */
import type { Database } from '../../../src/database/contract.ts';
import type { Permit } from '../../../src/policy/access.ts';
import type { ColumnValues } from '../../../src/policy/branch.ts';
import type { PolicyRequest, Related, Row } from '../../../src/policy/types.ts';
import type { AccessContext } from '../../../src/records/access-context.ts';
import type { CountKind } from '../../../src/records/page/count.ts';
import type { ExactFilter } from '../../../src/records/page/page-plan.ts';
import type { ChoosesWay } from '../../../src/records/page/page-question.ts';
import type { Collection, Relation } from '../../../src/schema/model/model.ts';
import { type Data, type Id, relatedOf } from '../../oracle/database.ts';
import { hide, type Seen } from '../../oracle/hide.ts';
import { interpret } from '../../oracle/interpret.ts';
import { inOrder } from '../../oracle/order.ts';
import { fill, PLAIN, randomSchema, readAll, type Stocked } from '../doors/doors-world.ts';
import { allIds, withKeys } from '../doors/keyed-schema.ts';
import { makeOwned, OWNED, withOwned } from '../doors/owned-schema.ts';
import { withReferences } from '../doors/referring-schema.ts';
import { type Compiled, compileForm, Rejected } from '../policies/differential.ts';
import { callerOr, randomRequest } from '../policies/requests.ts';
import type { World } from '../policies/world.ts';
import { Random } from '../random.ts';
import { BranchyRules } from './branchy-rules.ts';
import { STATISTICS } from './options.ts';
import { indexed } from './pages.ts';
import { linesOf, meantBy, permitOf, RuleMaker, type RuleSet } from './read-rules.ts';
import type { QueryDoors } from './store-modules.ts';

export interface ListCounts {
  worlds: number;
  pages: number;
  records: number;
  /** Pages that the branches of the rule could find. */
  planned: number;
  /** Pages with filters. */
  filtered: number;
  /** Pages that the filters leave nothing of. */
  unasked: number;
}
export const noListCounts = (): ListCounts => ({
  worlds: 0,
  pages: 0,
  records: 0,
  planned: 0,
  filtered: 0,
  unasked: 0,
});
export interface ListRun {
  readonly doors: QueryDoors;
  readonly seed: number;
  readonly counts: ListCounts;
  /** Callers of a world. Default 10. */
  readonly callers?: number;
  isOver(): boolean;
}

const ROWS = 20;
/** Before another way. */
const WALKS = [{}, { walk: 3 }, { walk: 2, longWalk: 5 }, { longWalk: 5 }] as const;
const CALLERS = 10;
const LISTS = 14;

/** Runs one world in a database without tables. Returns the first disagreement in full, or undefined. */
export async function runLists(number: number, db: Database, run: ListRun): Promise<string | undefined> {
  const random = new Random((run.seed * 1_000_039 + number * 7_919) >>> 0);
  const { schema, issues } = run.doors.parseSchema(
    indexed(withOwned(withReferences(withKeys(randomSchema(random), PLAIN, random), random), PLAIN, random), random),
  );
  if (schema === undefined) throw new Error(`the schema of the fuzz has errors: ${JSON.stringify(issues)}`);
  await makeOwned({ doors: run.doors, schema, db }, random);
  await run.doors.applyMigration(db, schema);
  const stocked = { doors: run.doors, schema, db };
  await fill(stocked, random, ROWS);
  const data = await readAll(stocked);
  run.counts.worlds++;
  for (let i = 0; i < (run.callers ?? CALLERS) && !run.isOver(); i++) {
    const found = await new ListSession({ stocked, data, doors: run.doors }, random, run.counts).run();
    if (found !== undefined) return `${found}\n  again       seed ${run.seed}, world ${number} of the lists`;
  }
  return undefined;
}

interface StockedWorld {
  readonly stocked: Stocked;
  readonly data: Data;
  readonly doors: QueryDoors;
}
interface Filtered {
  readonly filters: readonly ExactFilter[];
  /** Returns true if the record matches, as the caller sees it. */
  matches(row: Row): boolean;
}

/** A caller, with rules for every collection. */
class ListSession {
  readonly #world: StockedWorld;
  readonly #random: Random;
  readonly #counts: ListCounts;
  readonly #collection: Collection;
  readonly #rules: RuleSet;
  readonly #request: PolicyRequest;
  readonly #seen: Seen;
  readonly #visible: Related;
  /** As the caller sees them, by id. */
  readonly #listed: readonly Row[];
  /** The two ways to find a page, for all pages, so that plans are remembered. */
  readonly #ways: readonly ReturnType<QueryDoors['createRecords']>[];
  #planned = false;

  constructor(world: StockedWorld, random: Random, counts: ListCounts) {
    this.#world = world;
    this.#random = random;
    this.#counts = counts;
    const { data, doors } = world;
    const { schema } = world.stocked;
    const owned = schema.collections.has('parts') ? OWNED : [];
    this.#collection = schema.collections.get(random.pick(['users', ...PLAIN, ...PLAIN, ...owned]))!;
    const { name } = this.#collection;
    const ids = allIds(schema, data);
    const maker = new RuleMaker({ catalog: schema, ids, random, compiler: doors.compiler });
    const rules = maker.make(name, (of) => [...schema.collections.get(of)!.memberAccess.keys()]);
    this.#rules = random.chance(0.15) ? rules : { ...rules, list: this.#branchy() };
    const setting = { catalog: schema, collection: name, action: 'list' } as const;
    const request = randomRequest({ catalog: schema, data } as unknown as World, setting, random);
    this.#request = { ...request, ...callerOr(request, random.pick(data.rows.get('users')!)) };
    this.#seen = hide(schema, data, { rules: meantBy(this.#rules), request: this.#request });
    this.#visible = relatedOf(schema, this.#seen.data);
    const related = relatedOf(schema, data);
    const isListed = (record: Row): boolean =>
      this.#rules.list.some(({ meant }) => interpret(meant, { record, related, request: this.#request }) === true);
    const listed = data.rows
      .get(name)!
      .filter(isListed)
      .map((row) => this.#seen.masked(name, row));
    this.#listed = inOrder(listed, [], { catalog: schema, collection: name, related });
    const ways: readonly ChoosesWay[] = [
      () => undefined,
      ({ branches: given }) => {
        if (given === undefined) return undefined;
        this.#planned = true;
        const branches = given.map((branch) => random.pick([branch, ...branch.alternatives]));
        return { kind: 'branches', branches, ...random.pick(WALKS) };
      },
      ({ branches = [], filters, isById }) => {
        const isRange = ({ column, values, isInside }: ColumnValues): boolean =>
          values.length === 1 && isInside !== true && column !== 'id';
        const ofRule = branches.length === 1 && branches[0]!.isOneRange ? branches : [];
        const ranges = isById ? [...filters.filter(isRange), ...ofRule] : [];
        const gathered = { kind: 'gathered', by: random.pick(['filters', 'all'] as const) } as const;
        if (ranges.length === 0) return { ...gathered, ...random.pick(WALKS) };
        const of = random.pick(ranges);
        return random.chance(0.5) ? { kind: 'range', of } : { ...gathered, walk: 3, within: of };
      },
    ];
    const { db } = world.stocked;
    const chosen = ways.map((choosesWay) => ({ choosesWay, statisticsOf: random.pick(STATISTICS) }));
    const byStatistics = STATISTICS.map((statisticsOf) => ({ statisticsOf }));
    this.#ways = [...chosen, ...byStatistics].map((hooks) => doors.createRecords(db, schema, hooks));
  }

  /** Makes one to three policies. */
  #branchy(): readonly Compiled[] {
    const { data, doors, stocked } = this.#world;
    const random = this.#random;
    const { name } = this.#collection;
    const rules = new BranchyRules(stocked.schema, data, random);
    const setting = { catalog: stocked.schema, collection: name, action: 'list' } as const;
    const made: Compiled[] = [];
    for (let left = 1 + random.below(3); left > 0; ) {
      try {
        const { expr } = doors.compiler.parse(rules.make(name));
        if (expr === undefined) throw new Error('a rule of the fuzz does not parse');
        made.push(compileForm('it', expr, { setting, compiler: doors.compiler, random }));
        left--;
      } catch (error) {
        if (!(error instanceof Rejected)) throw error;
      }
    }
    return made;
  }

  async run(): Promise<string | undefined> {
    for (let i = 0; i < LISTS; i++) {
      const found = await (this.#random.chance(0.65) ? this.#list() : this.#walk());
      if (found !== undefined) return found;
    }
    return undefined;
  }

  // -------------------------------------------------------------- lists

  async #list(): Promise<string | undefined> {
    const random = this.#random;
    const { filters, matches } = this.#filters();
    const expected = this.#listed.filter(matches);
    const limit = random.pick([1, 2, 3, 5, 10, 10, 20, 100]);
    const offset = random.chance(0.6) ? 0 : random.below(expected.length + 3);
    const isCounted = random.chance(0.3);
    const count: CountKind = isCounted ? 'exact' : 'none';
    const asked = { exact: filters, limit, offset, count };
    const wanted = {
      ids: expected.slice(offset, offset + limit).map(({ id }) => id as Id),
      hasMore: expected.length > offset + limit,
      ...(isCounted && { total: expected.length }),
    };
    const pages = await this.#bothWays((records) => records.list(this.#access(), asked));
    if (filters.length > 0) this.#counts.filtered++;
    return this.#compared(
      asked,
      pages.map(({ json, ...page }) => ({ json: String(json), page: { ids: idsIn(String(json)), ...page } })),
      wanted,
    );
  }

  /** Asks by the plain condition, by the branches, by a range or the rows of the filters, and by each statistics. */
  async #bothWays<T>(ask: (records: ReturnType<QueryDoors['createRecords']>) => Promise<T>): Promise<readonly T[]> {
    const answers: T[] = [];
    this.#planned = false;
    for (const records of this.#ways) answers.push(await ask(records));
    if (this.#planned) this.#counts.planned++;
    return answers;
  }

  #compared(
    asked: object,
    answers: readonly { readonly json: string; readonly page: object }[],
    wanted: { readonly ids: readonly Id[] },
  ): string | undefined {
    this.#counts.pages++;
    this.#counts.records += wanted.ids.length;
    if (wanted.ids.length === 0) this.#counts.unasked++;
    const [plain] = answers;
    for (const { json, page } of answers) {
      if (json !== plain!.json) return this.#told({ asked, wanted: plain!.json, shown: json });
      if (text(page) !== text(wanted)) return this.#told({ asked, wanted, shown: page });
    }
    return undefined;
  }

  // -------------------------------------------------------------- filters

  #filters(): Filtered {
    const random = this.#random;
    const { name, relations } = this.#collection;
    const record = random.pick(this.#world.data.rows.get(name)!);
    const references = [...relations.values()].filter(({ kind }) => kind === 'belongs_to');
    // With all references, each row that a rule finds by them is known.
    const asked = random.chance(0.15)
      ? references.map((relation) => this.#byRelation(relation, record))
      : Array.from({ length: random.pick([0, 0, 1, 1, 2]) }, () => this.#filter());
    const made = asked.filter((filter) => filter !== undefined);
    return {
      filters: made.flatMap(({ filters }) => filters),
      matches: (row) => made.every(({ matches }) => matches(row)),
    };
  }

  #filter(): Filtered | undefined {
    const random = this.#random;
    const { name, fields, relations } = this.#collection;
    const record = random.pick(this.#world.data.rows.get(name)!);
    const relation = random.pick([undefined, undefined, ...relations.values()]);
    if (relation !== undefined) return this.#byRelation(relation, record);
    if (random.chance(0.1)) {
      const value = record.id as Id;
      return { filters: [{ kind: 'id', value }], matches: ({ id }) => id === value };
    }
    const field = random.pick([...fields.values()]);
    const value = record[field.name];
    if (value == null) return undefined;
    return { filters: [{ kind: 'field', field, value: value as string }], matches: (row) => row[field.name] === value };
  }

  #byRelation(relation: Relation, record: Row): Filtered | undefined {
    const { name, kind, collection } = relation;
    if (kind === 'belongs_to') {
      const id = record[name] as Id | null;
      if (id === null) return undefined;
      return { filters: [{ kind, relation, value: id }], matches: (row) => row[name] === id };
    }
    const id = this.#random.pick(this.#world.data.rows.get(collection)!).id as Id;
    const holds = (row: Row) =>
      this.#visible.many(this.#collection.name, name, row.id as Id).some((target) => target.id === id);
    return { filters: [kind === 'has_one' ? { kind, relation, id } : { kind: 'any', relation, id }], matches: holds };
  }

  // -------------------------------------------------------------- pages by cursor

  /** Mostly in the order of the ids, each page found either way. */
  async #walk(): Promise<string | undefined> {
    const random = this.#random;
    const { filter, matches } = this.#bodyFilter();
    const field = random.pick([...this.#collection.fields.keys()]);
    const sort = random.pick([[], ['id'], ['-id'], ['-id'], [field], [`-${field}`]]);
    const ordering = { catalog: this.#world.stocked.schema, collection: this.#collection.name, related: this.#visible };
    const found = inOrder(this.#listed.filter(matches), sort, ordering);
    const expected = found.map(({ id }) => id as Id);
    let cursor: string | undefined;
    for (let at = 0; ; ) {
      const limit = 1 + random.below(random.chance(0.7) ? 6 : 100);
      const body = { ...filter, sort, limit, count: 'exact', cursor };
      const wanted = {
        ids: expected.slice(at, at + limit),
        total: expected.length,
        hasMore: expected.length > at + limit,
      };
      const request = this.#world.doors.queryRequestOf(
        Object.fromEntries(Object.entries(body).filter(([, value]) => value !== undefined)),
        this.#world.stocked.schema,
        this.#collection,
      );
      const pages = await this.#bothWays((records) => records.list(this.#access(), request));
      const answers = pages.map(({ json, nextCursor, total }) => ({
        json: String(json),
        page: { ids: idsIn(String(json)), total, hasMore: nextCursor !== undefined },
      }));
      const disagreement = this.#compared(body, answers, wanted);
      if (disagreement !== undefined) return disagreement;
      // The cursor of one way goes on in the other.
      cursor = random.pick(pages).nextCursor;
      if (cursor === undefined) return undefined;
      at += limit;
    }
  }

  /** Equalities, inequalities and tests for null of the record's own members. */
  #bodyFilter(): { readonly filter: object; matches(row: Row): boolean } {
    const random = this.#random;
    const params: Record<string, unknown> = {};
    const parts = Array.from({ length: random.pick([0, 0, 1, 1, 2]) }, (_, i) => {
      const { name, fields, relations } = this.#collection;
      const own = [...relations.values()].filter(({ kind }) => kind === 'belongs_to');
      const member = random.pick([...fields.keys(), ...own.map((relation) => relation.name)]);
      const value = random.pick(this.#world.data.rows.get(name)!)[member];
      const isNull = value == null || random.chance(0.1);
      const negated = random.chance(0.25);
      if (!isNull) params[`p${i}`] = value;
      const text = isNull ? `${member} is ${negated ? 'not ' : ''}null` : `${member} ${negated ? '!=' : '='} $p${i}`;
      const matches = (row: Row): boolean =>
        isNull ? (row[member] == null) !== negated : row[member] != null && (row[member] === value) !== negated;
      return { text, matches };
    });
    const filter = parts.length === 0 ? {} : { filter: parts.map(({ text }) => text).join(' and '), params };
    return { filter, matches: (row) => parts.every(({ matches }) => matches(row)) };
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
      violation: (_, { violated }, action) => decide({ rules: violated[action], request: this.#request }),
      prospect: () => ({ certain: permit('', 'update'), possible: permit('', 'update') }),
      auth: this.#request.auth!,
      kind: this.#request.kind ?? 'user',
      principal: String(this.#request.auth!.id),
      now: this.#request.now,
    };
  }

  #told({
    asked,
    wanted,
    shown,
  }: {
    readonly asked: object;
    readonly wanted: unknown;
    readonly shown: unknown;
  }): string {
    return [
      `DISAGREEMENT: the store, in a list of ${this.#collection.name}`,
      `  asked       ${JSON.stringify(asked, (key, value) => (key === 'relation' || key === 'field' ? value.name : value))}`,
      `  request     ${JSON.stringify(this.#request)}`,
      ...linesOf(this.#rules),
      `  expected    ${typeof wanted === 'string' ? wanted : JSON.stringify(wanted)}`,
      `  found       ${typeof shown === 'string' ? shown : JSON.stringify(shown)}`,
    ].join('\n');
  }
}

const idsIn = (json: string): readonly Id[] => (JSON.parse(json) as readonly Row[]).map(({ id }) => id as Id);

/** Equal for equal pages, in any order of their members. */
const text = (page: object): string => JSON.stringify(Object.entries(page).sort(([a], [b]) => (a < b ? -1 : 1)));
