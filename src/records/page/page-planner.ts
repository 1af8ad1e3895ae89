/**
 * Decides how a page is found: by a walk in its order; by the range of one value in an index, of a filter or of the
 * list rule; by the branches of the list rule, of each of which an index gives the first ids; or by all rows that match.
 * A walk may come to its end in vain, so it is bounded where one of the other ways is, and followed by that one.
 */
import { present } from '../../invariant.ts';
import type { Permit } from '../../policy/access.ts';
import type { Branch, ColumnValues, KeyCount, LookUp, RowShare } from '../../policy/branch.ts';
import type { Opacity } from '../../policy/filter-plans.ts';
import type { IsFew } from '../../policy/types.ts';
import { indexesOf } from '../../schema/model/indexes.ts';
import type { Collection, Schema } from '../../schema/model/model.ts';
import { empty, ident, join, raw, type Sql, sql, typedLiteral } from '../../sql.ts';
import type { ColumnStatistics, StatisticsOf, TableStatistics } from './table-statistics.ts';

/** A way to find a page. Undefined: the plain condition, in the order of the page. */
export type ChosenWay =
  /** The first ids of each branch; `walk`: only if a walk of so many rows does not fill the page. */
  | { readonly kind: 'branches'; readonly branches: readonly Branch[]; readonly walk?: number | undefined }
  /** All rows have one value of a column, by the only branch of the rule or by a filter. */
  | { readonly kind: 'range'; readonly of: Branch | ColumnValues }
  /** All rows that match are found first. */
  | Gathered
  | undefined;

/** Chooses among the ways of a question. */
export type ChoosesWay = (question: PageQuestion) => ChosenWay;

interface PageSearch
  extends Pick<PageQuestion, 'filters' | 'links' | 'opaque' | 'most' | 'isById' | 'order' | 'lookUps'> {
  readonly collection: Collection;
  /** The part of the list rule that the filters leave open. */
  readonly permit: Permit;
  /** The tenant of the records, where they are divided by tenant. */
  readonly tenant: string | undefined;
}

/** The way to a page. INVARIANT: no two ways have one `text`, the part of the page's shape that values decide. */
export type PageWay = { readonly text: string } & (
  | BranchesWay
  | { readonly kind: 'rule range'; readonly ways: string }
  | { readonly kind: 'filter range'; readonly column: string }
  | Gathered
);

interface BranchesWay {
  readonly kind: 'branches';
  /** A character for each branch: its place among its alternatives. */
  readonly ways: string;
  /** The first ids that each branch gives. */
  readonly length: number;
  /** The rows of a walk before the branches; 0: none. */
  readonly walk: number;
}

interface Gathered {
  readonly kind: 'gathered';
  /** The filters find the rows, or the related rows of a filter that is a relation test; or filters and rule together. */
  readonly by: 'filters' | 'keys' | 'all';
  /** Only if a walk of so many rows does not fill the page. */
  readonly walk?: number | undefined;
}

export interface PageChoice {
  /** Undefined: the plain condition is as good. */
  readonly way: PageWay | undefined;
  /** PostgreSQL should plan the statement for its values. */
  readonly isPlannedFor: boolean;
}

/** Beyond this, branches save nothing. */
const MOST_ROWS = 10_000;
/** The rows of a table that takes some milliseconds to read. */
const LARGE = 10_000;
/** A longer list of keys costs more than a page whose rows are looked up. */
const FEW_KEYS = 500;
/** The same for a list whose rows are looked up by two columns, of which no index has both. */
const MANY_KEYS = 5_000;

interface ChosenPage extends Omit<RowSource, 'length'> {
  readonly collection: Collection;
}

export class PagePlanner {
  readonly #schema: Schema;
  readonly #statisticsOf: StatisticsOf;
  readonly #chooses: ChoosesWay;
  readonly #indexed = new Map<string, ReadonlySet<string>>();
  /** Without statistics, no list of keys is known to be short; those of rows that refer to the caller may be. */
  readonly isFew: IsFew = (table, count, isOfRequest) => {
    const keys = this.#statisticsOf(table) && count();
    if (keys === undefined) return isOfRequest;
    return (estimatedKeys(keys, this.#statisticsOf) ?? UNKNOWN_KEYS) <= (isOfRequest ? MANY_KEYS : FEW_KEYS);
  };
  /** The same for statements that read all records: no list is known to be long. */
  readonly isNotMany: IsFew = (table, count) => {
    const keys = this.#statisticsOf(table) && count();
    return keys === undefined || this.isFew(table, () => keys, false);
  };

  constructor(schema: Schema, statisticsOf: StatisticsOf, chooses?: ChoosesWay) {
    this.#schema = schema;
    this.#statisticsOf = statisticsOf;
    this.#chooses = chooses ?? ((question) => shortestWay(question, statisticsOf));
  }

  choice(search: PageSearch): PageChoice {
    const { collection, permit, tenant, isById } = search;
    const { table, tenantLayout } = collection;
    // No index finds a page of the collection without the tenant.
    const isLost = tenant === undefined && tenantLayout?.kind === 'by';
    if (search.most > MOST_ROWS || isLost) return NO_CHOICE;
    const indexed = this.indexedOf(collection);
    const branches = permit.branches('t', indexed);
    const isOpen = permit.verdict === 'allow';
    const isServed = search.filters.some(({ column }) => indexed.has(column));
    const isPart = (isById || search.order !== undefined) && !(isOpen && search.filters.length === 0);
    const isChosen = branches !== undefined || isServed || isPart || search.opaque !== undefined;
    const ways = isById ? { branches } : { branches: undefined, unordered: branches };
    const chosen = isChosen ? this.#chooses({ ...search, ...ways, table, indexed, isOpen }) : undefined;
    let way: PageWay | undefined;
    if (chosen?.kind === 'gathered') way = { ...chosen, text: `gathered ${chosen.by} ${chosen.walk}` };
    else if (chosen?.kind === 'branches') {
      const ways = chosen.branches.map(({ place }) => place).join('');
      // A longer range has the same first ids.
      const length = LENGTHS.find((each) => each >= search.most) ?? search.most;
      const walk = chosen.walk ?? 0;
      way = { kind: 'branches', ways, length, walk, text: `${ways} ${length} ${walk}` };
    } else if (chosen !== undefined) way = rangeOf(chosen.of);
    const statistics = this.#statisticsOf(table);
    if (statistics === undefined) return { way, isPlannedFor: false };
    // PostgreSQL knows nothing of the values of a range but that it is one.
    const range = way?.kind === 'filter range' ? way.column : undefined;
    const isFrequent = (test: ColumnValues): boolean => isFrequentValue(test, range, statistics);
    const { filters, links } = search;
    const linked = links && this.#statisticsOf(links.table);
    const isPlannedFor =
      filters.some(isFrequent) ||
      branches?.some((branch) => branch.tests.some(isFrequent)) === true ||
      (linked !== undefined && isFrequentValue(links!, undefined, linked)) ||
      ((way === undefined || way.kind === 'gathered') && filters.some((test) => isRareValue(test, statistics)));
    return { way, isPlannedFor };
  }

  /**
   * The chosen branches as a condition on the row `t` that replaces the list rule and all other conditions, for a
   * page in the order of the ids.
   */
  condition({ ways, length, walk }: BranchesWay, permit: Permit, page: ChosenPage): Sql {
    const chosen = this.chosenBranches(ways, permit, page.collection);
    return amongFirstIds(chosen, { ...page, length }, walk === 0 ? undefined : { rule: permit.where('t'), rows: walk });
  }

  /** The branches that a way has chosen, each found as the way has it. */
  chosenBranches(ways: string, permit: Permit, collection: Collection): readonly Branch[] {
    const branches = present(permit.branches('t', this.indexedOf(collection)), 'the chosen branches');
    return branches.map((branch, i) => [branch, ...branch.alternatives][Number(ways[i])]!);
  }

  /** Reading the whole table takes some milliseconds, and it is not divided by tenant. */
  isLarge({ table, tenantLayout }: Collection): boolean {
    return tenantLayout?.kind !== 'by' && (this.#statisticsOf(table)?.rows ?? 0) > LARGE;
  }

  /** Columns that an index begins with. */
  indexedOf(collection: Collection): ReadonlySet<string> {
    const known = this.#indexed.get(collection.name);
    if (known !== undefined) return known;
    const tenant = collection.tenantLayout?.kind === 'by' ? [collection.tenantLayout.column] : [];
    const made = new Set([
      'id',
      ...tenant,
      ...indexesOf(collection, this.#schema).flatMap(({ serves }) => serves ?? []),
    ]);
    this.#indexed.set(collection.name, made);
    return made;
  }
}

export const NO_CHOICE: PageChoice = { way: undefined, isPlannedFor: false };

function rangeOf(of: Branch | ColumnValues): PageWay {
  if (!('tests' in of)) return { kind: 'filter range', column: of.column, text: `= ${of.column}` };
  return { kind: 'rule range', ways: `${of.place}`, text: `rule ${of.place}` };
}

/**
 * A value of the request is far more frequent than the values of its column on average, so that a plan for all values
 * would misjudge it.
 */
function isFrequentValue(test: ColumnValues, range: string | undefined, table: TableStatistics): boolean {
  if (test.isStated === true) return false;
  const known = table.columns.get(test.column);
  if (known === undefined) return false;
  const share = shareOf(table, test);
  return share > FREQUENT && (test.column === range || share > FAR * keyShare(known));
}

/** The same for a value that is far rarer, where PostgreSQL chooses the way. */
function isRareValue(test: ColumnValues, table: TableStatistics): boolean {
  const known = table.columns.get(test.column);
  if (known === undefined || test.isStated === true) return false;
  const average = keyShare(known);
  return average > FREQUENT && shareOf(table, test) * RARE < average;
}

// ---------------------------------------------------------------- the first ids of the branches

interface RowSource {
  /** The listed rows, named `t`, for FROM. */
  readonly rows: { where(...conditions: readonly Sql[]): Sql };
  /** The rows come after a position of the order. */
  readonly after: readonly Sql[];
  /** Other conditions that every row meets, besides the branch. */
  readonly conditions: readonly Sql[];
  readonly length: number;
  readonly descending: boolean;
}

/** The first rows of the order, tested by the whole rule. */
interface Walk {
  readonly rule: Sql;
  readonly rows: number;
}

/** INVARIANT: the list holds the first `length` ids of the rows that meet the conditions and a branch. */
export function amongFirstIds(branches: readonly Branch[], source: RowSource, walk?: Walk): Sql {
  const parts = branches.map((branch) => sql`(${firstIds(branch, source)})`);
  if (walk === undefined) return sql`t.id = ANY(ARRAY(${join(parts, ' UNION ALL ')}))`;
  const { rows, after, conditions, descending, length } = source;
  const order = raw(descending ? 't.id DESC' : 't.id');
  const most = typedLiteral('int8', length);
  const from = rows.where(...after);
  return amongWalked(
    { from, columns: [], order, most, rows: walk.rows, conditions: [...conditions, walk.rule] },
    parts,
  );
}

export interface WalkedRows {
  readonly from: Sql;
  /** The columns that the order names. */
  readonly columns: readonly Sql[];
  readonly order: Sql;
  /** The rows that the walk passes, and the most of these that it takes. */
  readonly rows: number;
  readonly most: Sql;
  readonly conditions: readonly Sql[];
}

/** @param parts SELECTs of ids, which are read only if the walk has not found enough */
export function amongWalked({ from, columns, order, rows, most, conditions }: WalkedRows, parts: readonly Sql[]): Sql {
  const first = sql`
    SELECT ${join([raw('t.*'), ...columns], ', ')}
      FROM ${from}
     ORDER BY ${order}
     LIMIT ${typedLiteral('int8', rows)}`;
  const isShort = sql`(SELECT count(*) FROM "walked") < ${most}`;
  const others = parts.map((part) => sql`(SELECT "first".id FROM ${part} AS "first" WHERE ${isShort})`);
  return sql`t.id = ANY(ARRAY(
    WITH "walked" AS MATERIALIZED (
         SELECT ${join([raw('t.id'), ...columns], ', ')}
           FROM (${first}) AS t
          WHERE ${join(conditions, ' AND ')}
          ORDER BY ${order}
          LIMIT ${most})
    SELECT id FROM "walked" UNION ALL ${join(others, ' UNION ALL ')}))`;
}

function firstIds(branch: Branch, source: RowSource): Sql {
  const { column, keys, where, range: oneRange } = branch;
  const rest = where === undefined ? [] : [where];
  const { length } = source;
  const isId = column === 'id';
  if (keys === undefined)
    return range({ of: [present(oneRange, 'the range of a branch')], rest, column }, source, length);
  // A key that is an id has one record, so in the order of the keys the first are enough.
  const order = raw(source.descending ? ' DESC' : '');
  const isOfKey = isId ? raw('t.id = k.key') : sql`t.${ident(column)} BETWEEN k.key AND k.key`;
  // PostgreSQL 15 takes the rows of one worker for those of all, where a DISTINCT has a parallel plan.
  return sql`
    SELECT b.id
      FROM (SELECT key FROM (${keys}) AS k (key) GROUP BY key${isId ? sql` ORDER BY key${order}` : empty}) AS k
     CROSS JOIN LATERAL (${range({ of: [isOfKey], rest, column }, source, isId ? 1 : length)}) AS b${
       isId ? sql` ORDER BY k.key${order} LIMIT ${typedLiteral('int8', length)}` : empty
     }`;
}

interface IdRange {
  /** The conditions that bound it. */
  readonly of: readonly Sql[];
  readonly rest: readonly Sql[];
  readonly column: string;
}

/** The same condition, which no index finds and no join: each row of a range is tested by itself. */
export const tested = (condition: Sql): Sql => sql`(${condition}) IS TRUE`;

/** All rows have one value of the column, so they come in the order of the ids: no index but that on (column, id) has it. */
function range({ of, rest, column }: IdRange, { rows, after, conditions, descending }: RowSource, length: number): Sql {
  const direction = raw(descending ? ' DESC' : '');
  const first = column === 'id' ? empty : sql`t.${ident(column)}${direction}, `;
  return sql`
    SELECT t.id
      FROM ${rows.where(...of, ...after, ...[...rest, ...conditions].map(tested))}
     ORDER BY ${first}t.id${direction}
     LIMIT ${typedLiteral('int8', length)}`;
}

/**
 * Lengths are rounded up to bound the number of statements: a longer range has the same first ids.
 * The lengths of the usual first pages are exact.
 */
const LENGTHS = [11, 21, 41, 61, 81, 101, 151, 201, 301, 501, 1_001, 2_001, 5_001, 10_001];

// ---------------------------------------------------------------- the costs of the ways

export interface PageQuestion {
  readonly table: string;
  /** The branches of the list rule; undefined if it has none, or the page has another order. */
  readonly branches: readonly Branch[] | undefined;
  /** The branches where the page has another order. */
  readonly unordered?: readonly Branch[] | undefined;
  /** Exact filters of the record's own columns: each row must have these values. */
  readonly filters: readonly ColumnValues[];
  /** Each row must have one of these links, by which the page may be found too. */
  readonly links?: (ColumnValues & { readonly table: string }) | undefined;
  /** The rows that the filter of a query finds, where the values of columns do not tell. */
  readonly opaque?: OpaqueFilter | undefined;
  /** Columns that an index begins with. */
  readonly indexed: ReadonlySet<string>;
  /** Rows up to the end of the page. */
  readonly most: number;
  /** The page is in the order of the ids. */
  readonly isById: boolean;
  /** The page is in the order of this column, which has an index. `isWhole`: the index has the whole order. */
  readonly order?: { readonly column: string; readonly isWhole: boolean } | undefined;
  /** The rule looks up these related rows of each record. */
  readonly lookUps: readonly LookUp[];
  /** The rule permits every record. */
  readonly isOpen: boolean;
}

export interface OpaqueFilter {
  /** The estimate of the database. */
  readonly rows: number;
  /** The database's estimate of the time that it takes to find them, in its own unit. */
  readonly cost: number;
  readonly kind: Opacity;
}

/** The database's own unit of cost, which expects its tables on a disk. */
const OPAQUE = 0.2;
/** The cost of a way that is short even where the estimate of another one is wrong. */
const INSTANT = 200;
/** A descent of an index. Costs are about a microsecond each; only their ratio counts. */
const RANGE = 4;
/** A row that an index finds. */
const FOUND = 0.4;
/** A row of a table that is read as a whole. */
const SCANNED = 0.1;
/** The cost of a row that the walk passes: three times the real one, because matching rows may be spread unevenly. */
const WALKED = 0.75;
/** All rows that match may be more than is expected, where the first ones of branches are not. */
const UNBOUNDED = 2;
/** A link, and its row that is looked up; or a row whose link or related row is looked up. */
const LINKED = 4;
/** The cost to gather the ids, and to look up their rows. */
const UNION = 60;

/** The share of a condition that is not known. */
const UNKNOWN_SHARE = 0.3;
/** The share of the rows with a value, for a column without statistics. */
const UNKNOWN_VALUE = 0.005;
const UNKNOWN_KEYS = 10;
/** Above this correlation, the rows of a value lie together. */
const CLUSTERED = 0.5;
/** Above this correlation, the order of a column is that of the table. */
const ORDERED = 0.9;
/** The longest usual first page. A longer page of unknown keys reads too many rows. */
const SHORT = 101;
/** The share of the rows that a frequent value has, and how far that is above the average of a skewed column. */
const FREQUENT = 0.05;
const FAR = 1.5;
const RARE = 5;
/** Rows of filters that are found first, in an order that no index has or by an index of their own. */
const MOST_FILTERED = 5_000;
/**
 * A walk ends after so many times the rows that it is expected to pass: nothing is known of how the order of the page
 * goes together with keys, with a filter, or with the order of another column.
 */
const WALK_FACTOR = 4;
const WALKS = [200, 500, 1_000, 2_000, 5_000, 10_000, 20_000, 50_000];
/** The rows of a walk before branches of unknown length. */
const UNKNOWN_WALK = 1_000;

/** Every way gives the same page, and statistics decide which is the shortest. */
export function shortestWay(question: PageQuestion, statisticsOf: StatisticsOf): ChosenWay {
  const { links, filters, indexed, isById } = question;
  const statistics = statisticsOf(question.table);
  if (statistics === undefined) return isById && links === undefined ? wayInAnyTable(question) : undefined;
  if (links !== undefined && statisticsOf(links.table) === undefined) return undefined;
  const served = links === undefined ? filters.filter((test) => isRange(test, indexed)) : [];
  const estimate = new Estimate(question, statistics, statisticsOf);
  return isById ? estimate.shortest(served) : estimate.shortestInOtherOrder(served);
}

const isRange = ({ column, values, isInside }: ColumnValues, indexed: ReadonlySet<string>): boolean =>
  values.length === 1 && isInside !== true && column !== 'id' && indexed.has(column);

function wayInAnyTable({ branches, filters, indexed, most, lookUps }: PageQuestion): ChosenWay {
  if (branches === undefined) {
    const range = filters.find((test) => isRange(test, indexed));
    return range && { kind: 'range', of: range };
  }
  const [first, ...others] = branches;
  if (others.length === 0 && first!.isOneRange) return { kind: 'range', of: first! };
  // A range, and a row for each key, read no more rows than the page holds.
  const isShort = most <= SHORT || branches.every(({ isOneRange, column }) => isOneRange || column === 'id');
  return isShort ? { kind: 'branches', branches, walk: lookUps.length > 0 ? UNKNOWN_WALK : undefined } : undefined;
}

class Estimate {
  readonly #question: PageQuestion;
  readonly #table: TableStatistics;
  readonly #statisticsOf: StatisticsOf;
  /** Links, or undefined where none are asked for. */
  readonly #links: number | undefined;
  /** The share of all rows that the filters leave. */
  readonly #filtered: number;
  readonly #branches: readonly EstimatedBranch[];
  /** The cost to look up the related rows of a row. */
  readonly #lookedUp: number;
  /** The cost of a row that is tested. */
  readonly #tested: number;
  /** The rows that a walk passes. */
  readonly #walked: number;

  constructor(question: PageQuestion, table: TableStatistics, statisticsOf: StatisticsOf) {
    const { filters, opaque, branches, unordered, lookUps, most } = question;
    this.#question = question;
    this.#table = table;
    this.#statisticsOf = statisticsOf;
    this.#links = linksOf(question, statisticsOf);
    const linked = this.#links === undefined ? 1 : Math.min(1, this.#links / Math.max(1, table.rows));
    const shares = filters.map((test) => shareOf(table, test));
    this.#filtered = linked * (opaque === undefined ? productOf(shares) : opaque.rows / Math.max(1, table.rows));
    this.#lookedUp = sumOf(lookUps.map((each) => LINKED + FOUND * rowsOfKey(each, statisticsOf)));
    this.#tested = WALKED + this.#lookedUp;
    this.#branches = (branches ?? unordered ?? []).map((branch) => this.#shortest(branch));
    const met = this.#permitted * this.#filtered;
    this.#walked = met === 0 ? table.rows : Math.min(table.rows, most / met);
  }

  /** @param served filters that an index serves */
  shortest(served: readonly ColumnValues[]): ChosenWay {
    const { opaque } = this.#question;
    const ofRule = this.#ofRule;
    // The database counts the tests of related rows for all rows, and not only for those that meet the other tests.
    if (opaque !== undefined && opaque.kind !== 'mixed' && opaque.rows <= MOST_FILTERED) {
      const found = this.#ofOpaque!;
      return ofRule !== undefined && ofRule.cost < Math.min(found.cost, INSTANT) ? ofRule.way : found.way;
    }
    const range = this.#rangeOf(served);
    // The range of a filter holds fewer rows than the walk, in the same order.
    const walk = range ?? { cost: this.#walk, way: undefined };
    const [best] = [ofRule, this.#ofOpaque, this.#ofAll]
      .filter((each) => each !== undefined)
      .toSorted((a, b) => a.cost - b.cost);
    if (best === undefined) return walk.way;
    if (best.cost < walk.cost) return best.way;
    if (this.#isSure || this.#links !== undefined || range !== undefined) return walk.way;
    return best.way.kind === 'range' ? best.way : this.#afterWalk(best.way, best.cost);
  }

  /** The page is in another order than that of the ids. */
  shortestInOtherOrder(served: readonly ColumnValues[]): ChosenWay {
    const { filters, order, opaque } = this.#question;
    const rowsOf = (tests: readonly ColumnValues[]): number =>
      this.#table.rows * productOf(tests.map((test) => shareOf(this.#table, test)));
    // PostgreSQL chooses among all ways to read all rows, but for an index of a search, and related rows.
    if (order === undefined && opaque !== undefined) {
      const isShort = opaque.kind !== 'mixed' && opaque.rows <= Math.min(MOST_FILTERED, this.#permittedRows);
      return isShort ? this.#ofOpaque!.way : undefined;
    }
    const byFilters = { kind: 'gathered', by: 'filters' } as const;
    const least = Math.min(...served.map((test) => rowsOf([test])));
    if (order === undefined) return least <= MOST_FILTERED ? byFilters : undefined;
    const [best] = [
      { cost: least * FOUND + rowsOf(filters) * this.#tested, way: byFilters },
      this.#ofOpaque,
      this.#ofAll,
    ]
      .filter((each) => each !== undefined)
      .toSorted((a, b) => a.cost - b.cost);
    if (best === undefined) return undefined;
    // All rows of one value are read before the first of them is known.
    const ofValue = order.isWhole ? 0 : this.#table.rows * (this.#table.columns.get(order.column)?.repeated ?? 0);
    if (best.cost < (this.#walked + ofValue) * this.#tested) return best.way;
    return this.#isSure ? undefined : this.#afterWalk(best.way, best.cost);
  }

  /** All rows of a table that is not small, as PostgreSQL finds them. */
  get #ofAll() {
    const { rows } = this.#table;
    if (this.#links !== undefined || rows * SCANNED < UNION) return undefined;
    const { filters, indexed } = this.#question;
    const served = filters.filter(({ column }) => indexed.has(column)).map((test) => rows * shareOf(this.#table, test));
    const ofRule = this.#branches.length === 0 ? rows : sumOf(this.#branches.map((each) => each.whole));
    const found = Math.min(UNBOUNDED * FOUND * Math.min(ofRule, ...served), rows * SCANNED);
    const related = this.#question.lookUps.map(({ table }) => (this.#statisticsOf(table)?.rows ?? 0) * SCANNED);
    return { cost: UNION + found + sumOf(related), way: { kind: 'gathered', by: 'all' } } as const;
  }

  /** A walk in vain costs no more than the way after it. */
  #afterWalk<Way extends Exclude<ChosenWay, undefined>>(way: Way, cost: number): Way | undefined {
    if (cost > this.#table.rows * this.#tested) return undefined;
    const least = Math.max(WALK_FACTOR * this.#walked, cost / this.#tested / 2);
    const walk = WALKS.find((each) => each >= least) ?? WALKS.at(-1)!;
    return 2 * walk < this.#table.rows ? { ...way, walk } : undefined;
  }

  /** Nothing decides what a walk meets but columns of the record whose values are spread over the order. */
  get #isSure(): boolean {
    const { filters, opaque, lookUps, isOpen, isById } = this.#question;
    if (filters.length > 0 || opaque !== undefined || lookUps.length > 0) return false;
    return isById || isOpen || (this.#isOfTable && this.#branches.every(({ isClustered }) => !isClustered));
  }

  /** The order of the page is about the order of the table. */
  get #isOfTable(): boolean {
    const { isById, order } = this.#question;
    if (isById || order === undefined) return isById;
    return order.isWhole && (this.#table.columns.get(order.column)?.clustering ?? 0) > ORDERED;
  }

  /** The cost of a row whose filter reads other rows. */
  get #filterCost(): number {
    const { opaque } = this.#question;
    return opaque === undefined || opaque.kind === 'search' ? 0 : LINKED;
  }

  /** All rows that the filters find, by the estimate of the database. */
  get #ofOpaque() {
    const { opaque } = this.#question;
    if (opaque === undefined) return undefined;
    const cost = opaque.cost * OPAQUE + opaque.rows * this.#lookedUp;
    return { cost, way: { kind: 'gathered', by: opaque.kind === 'related' ? 'keys' : 'filters' } } as const;
  }

  /** The records that the rule permits, before the filters. */
  get #permittedRows(): number {
    if (this.#branches.length === 0) return this.#table.rows;
    return this.#table.rows * Math.min(1, sumOf(this.#branches.map(({ share }) => share)));
  }

  /** The shortest way by the branches of the rule. */
  get #ofRule() {
    const branches = this.#branches;
    if (this.#question.branches === undefined) return undefined;
    const cost = sumOf(branches.map((each) => each.cost));
    const [first, ...others] = branches.map(({ branch }) => branch);
    if (others.length === 0 && first!.isOneRange) return { cost, way: { kind: 'range', of: first! } } as const;
    const looked = UNION + Math.min(this.#question.most, this.#table.rows) * FOUND;
    return { cost: cost + looked, way: { kind: 'branches', branches: [first!, ...others] } } as const;
  }

  get #walk(): number {
    // A walk by the links meets only rows that have one, in the order of the ids.
    if (this.#links === undefined) return this.#walked * this.#tested;
    const links = this.#links;
    return RANGE + Math.min(links, (this.#walked / Math.max(1, this.#table.rows)) * links) * LINKED;
  }

  #rangeOf(served: readonly ColumnValues[]) {
    const costs = served.map((of) => {
      const read = this.#walked * shareOf(this.#table, of);
      return { cost: RANGE + read * this.#tested, way: { kind: 'range', of } as const };
    });
    return costs.toSorted((a, b) => a.cost - b.cost)[0];
  }

  /** The share of all rows that the rule permits and a walk meets soon. */
  get #permitted(): number {
    const { isOpen, lookUps } = this.#question;
    if (this.#branches.length === 0) return isOpen ? 1 : UNKNOWN_SHARE;
    // Clustered rows may lie at the end, so that a walk meets only spread rows soon.
    let spread = 0;
    let share = 0;
    for (const branch of this.#branches) {
      share += branch.share;
      // A walk that looks up rows ends soon if it meets none.
      if (lookUps.length > 0 || !branch.isClustered || !this.#isOfTable) spread += branch.share;
    }
    return Math.min(1, share > 0.9 ? share : spread);
  }

  #shortest(branch: Branch): EstimatedBranch {
    const ways = [branch, ...branch.alternatives].map((way) => this.#waysKeys(way));
    // All ways find the same rows, so the narrowest gives their share.
    const share = Math.min(...ways.map((way) => way.found * way.rest));
    const costs = ways.map(({ way, keys, keyRows, ofKey, found }) => {
      const met = Math.max((share / found) * this.#filtered, 1e-9);
      const read = Math.min(this.#table.rows * ofKey, this.#question.most / met);
      const looked = way.others > 0 ? this.#lookedUp : 0;
      const each = this.#links === undefined ? FOUND + this.#filterCost + looked : LINKED;
      const ofKeys = keyRows * FOUND + keys * RANGE;
      return {
        branch: way,
        cost: ofKeys + keys * read * each,
        whole: ofKeys / FOUND + this.#table.rows * found,
      };
    });
    const [best] = costs.toSorted((a, b) => a.cost - b.cost);
    const clustering = this.#table.columns.get(best!.branch.column)?.clustering ?? 0;
    return { ...best!, share, isClustered: clustering > CLUSTERED };
  }

  /** The keys of a way, the share of all rows that each has and that all have, and the share of these that meet the rest. */
  #waysKeys(way: Branch) {
    const { column, count, isOneRange } = way;
    const known = this.#table.columns.get(column);
    let own = 1;
    let rest = UNKNOWN_SHARE ** way.others;
    for (const test of way.tests) {
      const share = shareOf(this.#table, test);
      if (test.column === column) own *= share;
      else rest *= share;
    }
    if (isOneRange) return { way, keys: 1, keyRows: 0, ofKey: own, found: own, rest };
    const ofKey = keyShare(known);
    const estimated = (count && estimatedKeys(count, this.#statisticsOf)) ?? UNKNOWN_KEYS;
    const keys = Math.min(known?.distinct ?? Number.POSITIVE_INFINITY, Math.max(1, estimated));
    // The elements of a list are known, so their shares are.
    const found = count?.kind === 'list' ? own : foundBy(count, { keys, ofKey, statisticsOf: this.#statisticsOf });
    return { way, keys, keyRows: count?.kind === 'list' ? 0 : estimated, ofKey, found, rest };
  }
}

interface EstimatedBranch {
  readonly branch: Branch;
  readonly cost: number;
  /** All rows of the branch, and its keys as rows. */
  readonly whole: number;
  /** The share of all rows in the branch. */
  readonly share: number;
  readonly isClustered: boolean;
}

interface FoundKeys {
  readonly keys: number;
  /** The share of the rows that have one key. */
  readonly ofKey: number;
  readonly statisticsOf: StatisticsOf;
}

/** The share of the rows that have one of the keys. Each row refers to any row of the other table alike. */
function foundBy(count: KeyCount | undefined, { keys, ofKey, statisticsOf }: FoundKeys): number {
  const other = count?.kind === 'rows' && count.areIds ? statisticsOf(count.table) : undefined;
  return Math.max(1e-9, Math.min(1, other === undefined ? keys * ofKey : keys / Math.max(1, other.rows)));
}

/** Undefined: nothing is known of the table. */
function estimatedKeys(count: KeyCount, statisticsOf: StatisticsOf): number | undefined {
  if (count.kind === 'list') return count.count;
  const table = statisticsOf(count.table);
  const rows = count.links === undefined ? table?.rows : (statisticsOf(count.links)?.rows ?? table?.rows);
  return table && rows! * shareMeeting(count.share, table, statisticsOf);
}

function shareMeeting(share: RowShare, table: TableStatistics, statisticsOf: StatisticsOf): number {
  switch (share.kind) {
    case 'values':
      return shareOf(table, share);
    case 'keys': {
      const keys = estimatedKeys(share.keys, statisticsOf) ?? UNKNOWN_KEYS;
      return foundBy(share.keys, { keys, ofKey: keyShare(table.columns.get(share.column)), statisticsOf });
    }
    case 'all':
      return Math.min(...share.of.map((each) => shareMeeting(each, table, statisticsOf)));
    case 'any':
      return Math.min(
        1,
        share.of.reduce((sum, each) => sum + shareMeeting(each, table, statisticsOf), 0),
      );
  }
}

function linksOf({ links }: PageQuestion, statisticsOf: StatisticsOf): number | undefined {
  const table = links && statisticsOf(links.table);
  return links && table && table.rows * shareOf(table, links);
}

const keyShare = (known: ColumnStatistics | undefined): number =>
  known === undefined ? UNKNOWN_VALUE : (1 - known.nullShare) / known.distinct;

/** The rows that a look-up reads. */
function rowsOfKey({ table, column }: LookUp, statisticsOf: StatisticsOf): number {
  const known = column === 'id' ? undefined : statisticsOf(table);
  return known === undefined ? 1 : Math.max(1, known.rows * keyShare(known.columns.get(column)));
}

const sumOf = (numbers: readonly number[]): number => numbers.reduce((sum, each) => sum + each, 0);
const productOf = (numbers: readonly number[]): number => numbers.reduce((product, each) => product * each, 1);

/** The share of a table's rows whose column has one of the values. */
function shareOf({ columns, rows }: TableStatistics, { column, values }: ColumnValues): number {
  const known = columns.get(column);
  if (known === undefined) return column === 'id' ? values.length / Math.max(rows, 1) : UNKNOWN_VALUE;
  const { common, commonShare, nullShare, distinct } = known;
  const others = Math.max(0, 1 - nullShare - commonShare) / Math.max(1, distinct - common.size);
  let share = 0;
  for (const value of values) share += common.get(printed(value)) ?? others;
  return Math.min(1, Math.max(1e-9, share));
}

/** The text that PostgreSQL prints for the value. */
const printed = (value: unknown): string => (typeof value === 'boolean' ? (value ? 't' : 'f') : String(value));
