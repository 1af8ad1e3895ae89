/** The costs of the ways to a page, by the statistics of its tables. */

import { memoizedBy } from '../../memoized.ts';
import type { Branch, ColumnValues, LookUp, RelatedKeys } from '../../policy/branch.ts';
import { keyOf } from '../../policy/types.ts';
import type {
  ChosenWay,
  ExpectedRows,
  FirstValues,
  Gathered,
  OpaqueFilter,
  PageQuestion,
  ValueRange,
} from './page-question.ts';
import {
  allLookUps,
  areIndexed,
  estimatedKeys,
  foundBy,
  keyShare,
  mostRowsOf,
  rowsOfKey,
  shareOf,
  shareOfKey,
  tablesOfLookUps,
  UNKNOWN_KEYS,
} from './row-shares.ts';
import type { ColumnStatistics, StatisticsOf, TableStatistics } from './table-statistics.ts';

/** The database's own unit of cost, which expects its tables on a disk. */
const OPAQUE = 0.4;
/** A descent of an index. Costs are about a microsecond each; only their ratio counts. */
const RANGE = 4;
/** A page of the table with a row that an index finds. */
const FOUND = 1;
/** Two pages of a row that was updated since the last VACUUM: an index has its former version, too. */
const FORMER = 2 * FOUND;
/** A row of a table that is read as a whole. */
const SCANNED = 0.1;
/** A table that is kept in memory takes so many times as long as one that is read. */
const KEPT = 3;
/** A row that a walk or a range passes, besides its page. */
const WALKED = 0.25;
/** A way whose cost is not sure may take so many times the least. */
const SAFE = 5;
/** A walk is expected to be so many times longer, because matching rows may be spread unevenly. */
const UNEVEN = 2;
/** Rows that share a page where the order is that of the table. */
const ROWS_OF_PAGE = 50;
/** The share of rows that no longer lie in their order: statistics do not show late updates. */
const MOVED = 0.2;
/** All rows that match may be more than is expected, where the first ones of branches are not. */
const UNBOUNDED = 2;
/** A link, and its row that is looked up; or a row whose link or related row is looked up. */
const LINKED = 4;
/** Some hundred keys, each of which leads to a row. */
const FEW_KEYS_COST = 2_000;
/** A list of some thousand keys, which replaces look-ups where all rows are read. */
const LIST_OF_KEYS = 2_000;
/** The cost to gather the ids, and to look up their rows. */
const UNION = 60;
/** The cost to plan a statement for its values. */
const PLANNED = 500;

/** The share of a condition that is not known. */
const UNKNOWN_SHARE = 0.3;
/** The most rows with values of which statistics name none, in an order that begins with others. */
const UNNAMED_SHARE = 0.001;
/** Above this correlation, the rows of a value lie together. */
const CLUSTERED = 0.5;
/** Above this correlation, the order of a column is that of the table. */
const ORDERED = 0.9;
/** Rows of filters that are found first, in an order that no index has or by an index of their own. */
const MOST_FILTERED = 5_000;
/**
 * A walk that may come to its end in vain, or a list of keys that may be long, ends once its cost is such a part of that
 * of the way after it: nothing is known of how the order of the page goes together with keys, with a filter, or with the
 * order of another column. So a page costs at most half more than that way, and at most five times a walk that goes on,
 * because lengths are rounded down to bound the number of statements.
 */
const TRY = 2;
const LENGTHS = [...Array.from({ length: 13 }, (_, i) => 50 * 2 ** (12 - i)), 25, 12];
/** A walk that looks up many rows may be shorter if it can fill the page. */
const USUAL_LENGTH = 50;

export class Estimate {
  readonly #question: PageQuestion;
  readonly #table: TableStatistics;
  readonly #statisticsOf: StatisticsOf;
  /** Links, or undefined where none are asked for. */
  readonly #links: number | undefined;
  /** The share of all rows that the filters leave. */
  readonly #filtered: number;
  readonly #branches: readonly EstimatedBranch[];
  /** The cost to look up the related rows of a row for the rule. */
  readonly #lookedUp: number;
  /** The same, as the other tests of the rule leave it on average. */
  readonly #ruled: number;
  /** The same for the filter. */
  readonly #filterCost: number;
  /** How far the order of the page is that of the table, from 0 to 1. */
  readonly #clustering: number;
  /** The rows that a walk passes. */
  readonly #walked: number;

  constructor(question: PageQuestion, table: TableStatistics, statisticsOf: StatisticsOf) {
    const { filters, opaque, branches, unordered, lookUps, most, isById, collection, order } = question;
    this.#question = question;
    this.#table = table;
    this.#statisticsOf = statisticsOf;
    this.#links = linkCount(question, statisticsOf);
    const linked = this.#links === undefined ? 1 : Math.min(1, this.#links / Math.max(1, table.rows));
    this.#filtered =
      linked * (opaque === undefined ? shareOfAll(table, filters) : opaque.rows / Math.max(1, table.rows));
    this.#lookedUp = lookUps.length === 0 ? 0 : costOfLookUps(lookUps, question.table, statisticsOf);
    this.#filterCost = opaque === undefined ? 0 : filterCostOf(opaque, question.table, statisticsOf);
    const ordering = table.columns.get(isById ? keyOf(collection).column : (order?.column ?? ''));
    // New ids come after all others.
    this.#clustering = ordering?.clustering ?? (isById ? 1 : 0);
    this.#branches = (branches ?? unordered ?? []).map((branch) => this.#shortest(branch));
    this.#ruled = this.#lookedUp === 0 ? 0 : this.#lookedUp * this.#tested;
    const all = (opaque?.all.rows ?? table.rows) / Math.max(1, table.rows);
    const met = Math.min(this.#permitted * this.#filtered, all);
    this.#walked = met === 0 ? table.rows : Math.min(table.rows, (UNEVEN * most) / met);
  }

  /** @param served filters that an index serves */
  shortest(served: readonly ColumnValues[]): ChosenWay {
    const ofRule = this.#ofRule;
    const range = this.#links === undefined ? this.#rangeOf(served) : undefined;
    // The range of a filter holds fewer rows than the walk, in the same order.
    const walk = range ?? { cost: this.#walk, way: undefined };
    const ofValue = ofRule?.way.kind === 'range' ? { cost: ofRule.cost, way: ofRule.way } : undefined;
    const ofBranches = ofRule?.way.kind === 'branches' ? { ...ofRule, way: ofRule.way } : undefined;
    // The other ways gather ids first.
    const isShort = walk.way === undefined && ofValue === undefined && walk.cost <= UNION;
    if (isShort && this.#isSure()) return undefined;
    const ofFilters = this.#links === undefined ? undefined : this.#ofFilters(served);
    const gathered = [this.#ofOpaque, this.#ofAll, ofFilters];
    const found = cheapest<Costed<FullWay>>(gathered);
    const isBounded = ofBranches !== undefined && found !== undefined && ofBranches.cost <= UNBOUNDED * found.cost;
    const likely = isBounded ? ofBranches : (found ?? ofBranches);
    const isAllOrNone = this.#question.opaque?.isAllOrNone === true;
    const best = isAllOrNone ? safest<Costed<FullWay>>([ofBranches, ...gathered]) : likely;
    // A walk in vain passes more rows than the range.
    const isOpenEnded = range === undefined && this.#links === undefined && !this.#isSure();
    const limit = isOpenEnded ? Math.max(walk.cost, best?.cost ?? Number.POSITIVE_INFINITY) : walk.cost;
    const first = ofValue !== undefined && ofValue.cost <= limit ? ofValue : walk;
    return this.#afterKeys(this.#bounded(first, best), best);
  }

  /** The page is in another order than that of the ids. */
  shortestInOtherOrder(served: readonly ColumnValues[]): ChosenWay {
    const { order, opaque } = this.#question;
    // PostgreSQL chooses among all ways to read all rows, but for an index of a search, and related rows.
    if (order === undefined && opaque !== undefined) {
      const isShort = isFoundAlone(opaque) && opaque.rows <= Math.min(MOST_FILTERED, this.#permittedRows);
      return isShort ? this.#ofOpaque!.way : undefined;
    }
    const ofFilters = this.#ofFilters(served);
    const links = this.#links ?? Number.POSITIVE_INFINITY;
    if (order === undefined) {
      const least = Math.min(...served.map((test) => this.#table.rows * shareOf(this.#table, test)));
      return least <= Math.min(MOST_FILTERED, links) ? ofFilters?.way : undefined;
    }
    const best = cheapest<Costed<FullWay>>([ofFilters, this.#ofOpaque, this.#ofAll]);
    const cost = Math.min(
      (this.#walked + this.#firstOfOrder(this.#walked).read) * this.#passed(),
      RANGE + links * LINKED,
    );
    return this.#afterKeys(this.#bounded({ cost, way: undefined }, best), best);
  }

  /** All rows of a table that is not small, as PostgreSQL finds them. */
  get #ofAll(): Costed<Gathered> | undefined {
    const { rows } = this.#table;
    if (this.#links !== undefined || rows * SCANNED < UNION) return undefined;
    const { opaque, table, lookUps, unlisted = lookUps } = this.#question;
    const way = { kind: 'gathered', by: 'all' } as const;
    if (opaque !== undefined) {
      const { all } = opaque;
      // The database expects ten keys of each list. The filter finds all rows, or branches of the rule, or a scan.
      const least = this.#branches.length === 0 ? 0 : Math.min(this.#timeOf(opaque), this.#leastOfAll.cost);
      return { cost: UNION + Math.max(least, this.#timeOf(all, this.#ruled)) + all.rows * WALKED, way };
    }
    const { found, cost } = this.#leastOfAll;
    if (lookUps.length === 0) return { cost: UNION + cost, way };
    const related = (of: readonly LookUp[]): number =>
      summed(
        of.map((lookUp) => {
          const each = found * costOfLookUps([lookUp], table, this.#statisticsOf) * this.#tested;
          return lookUp.isOfEach === true ? each : Math.min(each, this.#scanned(tablesOfLookUps([lookUp])));
        }),
      );
    const lists = (lookUps.length - unlisted.length) * LIST_OF_KEYS;
    return { cost: UNION + cost + Math.min(related(lookUps), lists + related(unlisted)), way };
  }

  /** The fewest rows that an index finds, or the table as a whole. */
  get #leastOfAll() {
    const { rows, columns } = this.#table;
    const { filters, indexed } = this.#question;
    const ofRule = { found: 0, cost: 0 };
    for (const { found, whole } of this.#branches) {
      ofRule.found += found;
      ofRule.cost += whole;
    }
    let least = this.#branches.length === 0 ? undefined : ofRule;
    for (const test of filters) {
      if (!indexed.has(test.column)) continue;
      const found = rows * shareOf(this.#table, test);
      const cost = this.#found(found, columns.get(test.column)?.clustering);
      if (least === undefined || cost < least.cost) least = { found, cost };
    }
    const { found, cost } = least ?? { found: rows, cost: rows };
    // The records that match are ordered. Their number is known where an index finds them.
    const ordered = least === undefined ? rows * this.#filtered * this.#permitted : 0;
    return { found, cost: Math.min(cost, (rows + ordered) * SCANNED) };
  }

  /** The pages of the table. */
  get #pages(): number {
    return this.#table.pages ?? this.#table.rows / ROWS_OF_PAGE;
  }

  /** The cost of rows that an index finds, which share pages where they lie together. */
  #found(rows: number, clustering = 0): number {
    return rows * WALKED + costOfPages(rows, this.#pages, clustering);
  }

  #scanned(tables: readonly string[]): number {
    return costOfScans(tables, this.#statisticsOf);
  }

  /** The shorter way where that is sure. Otherwise the first one up to some length, and the other one after it. */
  #bounded(first: Costed<ValueRange | undefined>, other: Costed<FullWay> | undefined): ChosenWay {
    if (other === undefined) return first.way;
    const { cost, way } = other;
    const of = first.way?.of;
    if (this.#links !== undefined) return cost < first.cost ? way : first.way;
    if (this.#isSure(of)) {
      if (cost >= first.cost) return first.way ?? this.#firstValues(way);
      // PostgreSQL orders all rows by itself.
      return this.#question.isOpen && of === undefined ? undefined : way;
    }
    // Then a walk in vain would cost a page more than it saves.
    if (way.kind === 'branches' && first.cost > TRY * cost && this.#isKnown) return way;
    const share = of === undefined ? 1 : this.#shareIn(of);
    const passed = this.#passed(share, of !== undefined && 'tests' in of ? this.#lookedUp : this.#ruled);
    const isByKeys = way.kind === 'gathered' && way.by === 'keys';
    if (cost > this.#costOfAll(this.#table.rows * share, passed) && !isByKeys) return first.way;
    const left = (length: number): number => cost / TRY - (of === undefined ? this.#ordering(length) : 0);
    const bound = LENGTHS.find((each) => each <= this.#rowsWithin(left(each), passed) && each >= this.#least);
    if (bound === undefined) {
      const { longWalk } = this.#withLongWalk(0, left, share);
      return longWalk === undefined ? way : { ...way, longWalk, ...(of !== undefined && { within: of }) };
    }
    // Fewer rows would not fill the page even where half of them match.
    const walk = Math.max(bound, LENGTHS.findLast((each) => each >= 2 * this.#question.most) ?? bound);
    // The longer walk may need another value of the order, of which all rows are read.
    if (walk > bound && left(walk) < 0) return way;
    const both = this.#withLongWalk(walk, left, share);
    if (of !== undefined) return { ...way, ...both, within: of };
    const further = both.longWalk === undefined ? this.#further(walk, cost) : both;
    return { ...way, ...further, first: this.#firstOfOrder(both.longWalk ?? further.walk).values };
  }

  /**
   * Related rows whose number is not known may be none, or so few that their keys find the page: a way that costs more than to
   * read these comes after them, where they are not few.
   */
  #afterKeys(way: ChosenWay, best: Costed<FullWay> | undefined): ChosenWay {
    const { relatedKeys: keys, besideKeys, indexed } = this.#question;
    if (keys === undefined || way?.kind !== 'gathered' || way.by === 'keys' || best === undefined) return way;
    const isServed = keys.isId || indexed.has(keys.column);
    if (!isServed || besideKeys === undefined) return way;
    const each = this.#costOfKey(keys.column);
    const read = this.#readRelated(keys);
    const beside = summed(besideKeys.map((branch) => this.#shortest(branch).whole));
    const most = LENGTHS.find((length) => length * each <= Math.max(read, FEW_KEYS_COST)) ?? 0;
    return (read + most * each + beside) * TRY <= best.cost ? { ...way, keys: most } : way;
  }

  /** The cost to find the rows with a key in the column. */
  #costOfKey(column: string): number {
    const isId = column === keyOf(this.#question.collection).column;
    const rows = isId ? 1 : this.#table.rows * keyShare(this.#table.columns.get(column));
    return RANGE + rows * (WALKED + FOUND);
  }

  /** The cost to find that no related row counts, or to find some. */
  #readRelated({ tables, tested }: RelatedKeys): number {
    const { isIndexed = () => true } = this.#question;
    if (tables.some((table) => this.#statisticsOf(table) === undefined)) return Number.POSITIVE_INFINITY;
    const scanned = this.#scanned(tables);
    return tested.some((column) => isIndexed(tables[0], column)) ? Math.min(scanned, FEW_KEYS_COST) : scanned;
  }

  /**
   * Statistics do not show where the rows that meet the filters lie: a walk looks up related rows for as many as are expected,
   * and passes more of the others, which cost no look-ups.
   */
  #further(walk: number, cost: number): Pick<Gathered, 'tested'> & { readonly walk: number } {
    const { filters, opaque } = this.#question;
    if (this.#ruled === 0 || (filters.length === 0 && opaque === undefined)) return { walk };
    const passed = this.#passed(1, 0);
    const most = (length: number): number => this.#rowsWithin(cost / TRY ** 2 - this.#ordering(length), passed);
    const further = Math.max(walk, LENGTHS.find((each) => each <= most(each)) ?? 0);
    const expected = Math.max(walk * Math.min(1, this.#filtered), 2 * this.#question.most);
    const tested = LENGTHS.findLast((each) => each >= expected) ?? walk;
    return tested < further ? { walk: further, tested } : { walk };
  }

  /**
   * A walk looks up the related rows of as many records as that takes no longer than to read the related tables as a whole,
   * as the walk after it does.
   * @param left what walks of a length may cost
   * @param share of the rows among which they are
   */
  #withLongWalk(walk: number, left: (length: number) => number, share: number): Walks {
    const { lookUps, opaque } = this.#question;
    const all = allLookUps([...lookUps, ...(opaque?.lists === 'short' ? [] : (opaque?.lookUps ?? []))]);
    if (all.length === 0 || all.some(({ isOfEach }) => isOfEach === true)) return { walk };
    const kept = this.#kept(all);
    const passed = this.#passed(share, 0) - this.#filterCost;
    const longWalk = LENGTHS.find((each) => each <= this.#rowsWithin(left(each) - 2 * kept, passed)) ?? 0;
    const first = Math.max(USUAL_LENGTH, kept / (this.#ruled + this.#filterCost));
    const lookedUp = Math.min(walk, LENGTHS.findLast((each) => each >= first) ?? walk);
    if (longWalk <= 2 * walk || longWalk < this.#least) return { walk };
    // The few look-ups of a short walk, or one of a frequent key, take longer than to keep all related rows.
    const isSooner = kept < USUAL_LENGTH * (this.#ruled + this.#filterCost) || kept < this.#mostOfLookUp(all) * FOUND;
    return { walk: isSooner ? 0 : lookedUp, longWalk };
  }

  /** The most rows that one look-up may read. */
  #mostOfLookUp(lookUps: readonly LookUp[]): number {
    const most = lookUps.map(({ table, column, isId }) => {
      const known = isId ? undefined : this.#statisticsOf(table);
      return known === undefined ? 1 : mostRowsOf(known, column);
    });
    return Math.max(0, ...most);
  }

  /** The cost to keep the related rows in memory: the tables as a whole, or the rows of a record of the request. */
  #kept(lookUps: readonly LookUp[]): number {
    const costs = lookUps.map(({ table, of }) => {
      const known = this.#statisticsOf(table);
      if (known === undefined) return Number.POSITIVE_INFINITY;
      const { rows, columns, pages = rows / ROWS_OF_PAGE } = known;
      if (of === undefined) return KEPT * rows * SCANNED;
      const own = mostRowsOf(known, of);
      return KEPT * own * SCANNED + costOfPages(own, pages, columns.get(of)?.clustering ?? 0);
    });
    return summed(costs);
  }

  /** A walk that is sure to fill the page ends after the first values of the order, where PostgreSQL would sort the table. */
  #firstValues(other: FullWay): FullWay | undefined {
    const walk = LENGTHS.findLast((each) => each >= this.#walked);
    const values = walk === undefined ? undefined : this.#firstOfOrder(walk).values;
    return values === undefined ? undefined : { ...other, walk, first: values };
  }

  /** The rows that a walk passes at such a cost, if it meets as many former versions as there may be, on pages of their own. */
  #rowsWithin(cost: number, passed: number): number {
    const { dead = 0 } = this.#table;
    const updated = Math.min(cost / (passed + FORMER), this.#pages);
    return Math.min(cost / (passed + MOVED * FOUND), Math.max(updated, (cost - dead * FORMER) / passed));
  }

  /** The cost of a walk that passes all of so many rows. */
  #costOfAll(rows: number, passed: number): number {
    return rows * passed + Math.min(rows, this.#table.dead ?? 0) * FORMER;
  }

  /**
   * So many rows in the order of the page, of which the index has that of one column: of each value, all are read, but where
   * the page ends within the first one. PostgreSQL expects as many rows of each.
   */
  #firstOfOrder(most: number): FirstOfOrder {
    const { order } = this.#question;
    if (order === undefined || order.isWhole) return { read: 0 };
    const { rows, columns } = this.#table;
    const known = columns.get(order.column);
    if (known === undefined) return { read: 0 };
    const { isFirstPage, after } = order;
    const all = orderedGroups(known)[order.descending ? 'descending' : 'ascending'];
    if (all.length === 0 || (!isFirstPage && after === undefined)) return { read: rows * known.repeated };
    const groups = after === undefined ? all : groupsFrom(all, after, order.descending);
    const average = rows / known.distinct;
    const [first] = groups;
    const ofFirst = rows * first!.share;
    // PostgreSQL orders a value of the index, or all rows.
    const isWorth = (read: number, expected: number): boolean =>
      isFirstPage && PLANNED + read * (WALKED + FOUND) < Math.min(expected * (WALKED + FOUND), rows * SCANNED);
    let read = 0;
    // Some rows of its first value are on the pages before.
    let passed = isFirstPage ? 0 : -ofFirst / 2;
    let upTo = '';
    for (const { at, share, ofValue, isOne } of groups) {
      if (passed >= most) return { read, ...(isWorth(read, average) && { values: { upTo, isAlone: false } }) };
      const own = rows * share;
      // Both parts are read before their first row, so the shortest walks alone have the second one.
      const isAlone = isOne && order.isThenById && own >= most && passed < this.#least;
      if (isAlone && isWorth(read + most, Math.max(average, own)))
        return { read: read + most, values: { upTo: at, isAlone } };
      passed += own;
      read += rows * ofValue;
      upTo = at;
    }
    return { read };
  }

  /** The rows of the shortest walk. */
  get #least(): number {
    return Math.min(USUAL_LENGTH, 2 * this.#question.most);
  }

  /** The cost to order so many rows. A walk of bounded length does so before it tests the first of them. */
  #ordering(length: number): number {
    return Math.min(this.#firstOfOrder(length).read * (WALKED + FOUND), this.#table.rows * SCANNED);
  }

  #shareIn(of: ValueRange['of']): number {
    return 'tests' in of ? this.#waysKeys(of).found : shareOf(this.#table, of);
  }

  /** Nothing decides what a walk meets but single columns of the record, whose values are spread over the order. */
  #isSure(of?: ValueRange['of']): boolean {
    const { filters, opaque, lookUps, isOpen, isById } = this.#question;
    if (opaque !== undefined || lookUps.length > 0) return false;
    if (of !== undefined && !('tests' in of)) return isOpen && filters.length === 1;
    if (filters.length > 0) return false;
    if (isOpen || of !== undefined) return of === undefined || readsWhole(of);
    const branches = this.#branches;
    if (branches.length === 0 || !branches.every(({ branch }) => readsWhole(branch))) return false;
    const known = branches.filter(({ branch }) => isOfValues(branch));
    if (UNEVEN * summed(known.map(({ share }) => share)) < summed(branches.map(({ share }) => share))) return false;
    return isById || (this.#isOfTable && branches.every(({ isClustered }) => !isClustered));
  }

  /** Single columns, whose values statistics count, decide which rows match. */
  get #isKnown(): boolean {
    const { opaque, lookUps } = this.#question;
    return opaque === undefined && lookUps.length === 0 && this.#branches.every(({ branch }) => branch.others === 0);
  }

  /** The order of the page is about the order of the table. */
  get #isOfTable(): boolean {
    const { isById, order } = this.#question;
    return isById || (order?.isWhole === true && this.#clustering > ORDERED);
  }

  /**
   * The cost of a row that a walk passes, or the range of a value that such a share of the rows has.
   * @param lookedUp of a row whose related rows are looked up for the rule
   */
  #passed(share = 1, lookedUp = this.#ruled): number {
    const pages = Math.min(1, 1 - this.#clustering ** 2 + 1 / (ROWS_OF_PAGE * share));
    // The filters are tested first.
    const left = Math.min(1, this.#filtered / share);
    return WALKED + FOUND * pages + left * lookedUp + this.#filterCost;
  }

  /** All rows that the filter which an index serves best finds. */
  #ofFilters(served: readonly ColumnValues[]): Costed<Gathered> | undefined {
    const { rows, columns } = this.#table;
    const read = served.map((test) =>
      this.#found(rows * shareOf(this.#table, test), columns.get(test.column)?.clustering),
    );
    if (read.length === 0) return undefined;
    const { cost, ...ordered } = this.#ruledOf(rows * this.#filtered);
    return { cost: Math.min(...read) + cost, way: { kind: 'gathered', by: 'filters', ...ordered } };
  }

  /** The rule is tested for these rows, or for the first of them in the order of the page, if they are few. */
  #ruledOf(found: number): { readonly cost: number; readonly isOrdered?: true } {
    const { isById, order, lookUps, opaque } = this.#question;
    const all = found * this.#ruled;
    // The first rows may all be ruled out, and PostgreSQL reads related tables as a whole where that takes less.
    const most = Math.max(MOST_FILTERED, this.#scanned(tablesOfLookUps(lookUps)));
    const hasOrder = all > 0 && (isById || order !== undefined);
    // PostgreSQL would read these tables in vain where no rows are found.
    if (hasOrder && opaque?.isAllOrNone === true && all <= SAFE * most) return { cost: all, isOrdered: true };
    if (!hasOrder || all > most || found > MOST_FILTERED) return { cost: all };
    return {
      cost: found * SCANNED + Math.min(found, (UNEVEN * this.#question.most) / this.#permitted) * this.#ruled,
      isOrdered: true,
    };
  }

  /** All rows that the filters find, by the estimate of the database. */
  get #ofOpaque(): Costed<Gathered> | undefined {
    const { opaque, filters } = this.#question;
    if (opaque === undefined) return undefined;
    const found = this.#timeOf(opaque);
    // The database counts the tests of related rows for all rows, and not only for those that meet the other tests.
    const [related] = opaque.kind === 'related' ? opaque.lookUps : [];
    const read = related && (this.#statisticsOf(related.table)?.rows ?? Number.POSITIVE_INFINITY) * SCANNED;
    const { cost: ruled, ...ordered } = this.#ruledOf(opaque.rows);
    const ofNone = Math.min(found, (read ?? found) + opaque.rows * RANGE);
    const cost = ofNone + opaque.rows * WALKED + ruled;
    // The keys may be many more than the rows that other filters leave.
    const isByKeys = opaque.kind === 'related' && filters.length === 0;
    const ofKey = related?.by === undefined ? RANGE : this.#costOfKey(related.by);
    const keys = LENGTHS.find((each) => each * ofKey * TRY <= found && each >= USUAL_LENGTH) ?? USUAL_LENGTH;
    return {
      cost,
      ofNone,
      way: isByKeys
        ? { kind: 'gathered', by: 'keys', keys, ...ordered }
        : { kind: 'gathered', by: 'filters', ...ordered },
    };
  }

  /**
   * The cost to find all rows of a condition.
   * @param ruled the cost to look up related rows of a row, besides those of the filter
   */
  #timeOf({ cost, scanned = [], hashed, looped = 0, lookedUp }: ExpectedRows, ruled = 0): number {
    const { rows } = this.#table;
    const each = WALKED + Math.max(SCANNED, this.#filterCost + ruled);
    const read = this.#scanned(scanned);
    // The database expects most pages of the look-ups to be read before. Its cost counts look-ups in place of what is kept.
    const least =
      hashed === undefined
        ? Math.max(cost * OPAQUE, read, (lookedUp?.rows ?? 0) * each)
        : Math.max(Math.min(cost * OPAQUE, rows * SCANNED + (hashed + rows * looped) * OPAQUE), read);
    return Math.min(least, rows * each);
  }

  /** The share of the rows for which the rule looks up related rows, because they meet its other tests. */
  get #tested(): number {
    if (this.#branches.length === 0) return 1;
    const looksUp = this.#branches.filter(({ branch: { others, isOneRange } }) => others > 0 || !isOneRange);
    return Math.min(1, summed(looksUp.map(({ branch: { tests } }) => shareOfAll(this.#table, tests))));
  }

  /** The records that the rule permits, before the filters. */
  get #permittedRows(): number {
    if (this.#branches.length === 0) return this.#table.rows;
    return this.#table.rows * Math.min(1, summed(this.#branches.map(({ share }) => share)));
  }

  /** The shortest way by the branches of the rule. */
  get #ofRule() {
    const branches = this.#branches;
    if (this.#question.branches === undefined) return undefined;
    const cost = summed(branches.map((each) => each.cost));
    const [first, ...others] = branches.map(({ branch }) => branch);
    if (others.length === 0 && first!.isOneRange) return { cost, way: { kind: 'range', of: first! } } as const;
    const looked = UNION + Math.min(this.#question.most, this.#table.rows) * FOUND;
    const ofNone = summed(branches.map(({ whole }) => whole));
    return { cost: cost + looked, ofNone, way: { kind: 'branches', branches: [first!, ...others] } } as const;
  }

  get #walk(): number {
    // A walk by the links meets only rows that have one, in the order of the ids.
    if (this.#links === undefined) return this.#walked * this.#passed();
    const links = this.#links;
    return RANGE + Math.min(links, (this.#walked / Math.max(1, this.#table.rows)) * links) * LINKED;
  }

  #rangeOf(served: readonly ColumnValues[]) {
    const ranges = served.map((of) => {
      const share = shareOf(this.#table, of);
      return { cost: RANGE + this.#walked * share * this.#passed(share), way: { kind: 'range', of } as const };
    });
    return cheapest(ranges);
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
    let share = 1;
    for (const { found, rest } of ways) share = Math.min(share, found * rest);
    return cheapest(ways.map((way) => this.#estimated(way, share)))!;
  }

  #estimated({ way, keys, keyRows, ofKey, found }: WaysKeys, share: number): EstimatedBranch {
    const { rows, columns } = this.#table;
    const clustering = columns.get(way.column)?.clustering ?? 0;
    const met = Math.max((share / found) * this.#filtered, 1e-9);
    const { most } = this.#question;
    const read = Math.min(rows * ofKey, most / met);
    const each = this.#links === undefined ? this.#passed(ofKey, way.others > 0 ? this.#lookedUp : 0) : LINKED;
    const ofKeys = this.#readKeys(way, keyRows);
    // An id has one record, so that the first keys are enough.
    const ranges = way.isId ? Math.min(keys, (UNEVEN * most) / met) : keys;
    return {
      branch: way,
      cost: ofKeys + ranges * (RANGE + read * each),
      found: rows * found,
      whole: ofKeys + keys * RANGE + this.#found(rows * found, clustering),
      share,
      isClustered: clustering > CLUSTERED,
    };
  }

  /** The rows that give the keys are found one by one, or are a part of a table that is read as a whole. */
  #readKeys({ count }: Branch, keyRows: number): number {
    if (count?.kind !== 'rows') return keyRows * FOUND;
    const isFound = areIndexed(count, this.#question.isIndexed ?? (() => true));
    const table = this.#statisticsOf(isFound ? (count.links?.table ?? count.table) : count.table);
    const whole = (table?.rows ?? Number.POSITIVE_INFINITY) * SCANNED + keyRows * WALKED;
    return isFound || table === undefined ? Math.min(keyRows * FOUND, whole) : whole;
  }

  /** The keys of a way, the share of all rows that each has and that all have, and the share of these that meet the rest. */
  #waysKeys(way: Branch): WaysKeys {
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
    const ofKey = shareOfKey(known, count, this.#statisticsOf);
    const estimated = (count && estimatedKeys(count, this.#statisticsOf)) ?? UNKNOWN_KEYS;
    const keys = Math.min(known?.distinct ?? Number.POSITIVE_INFINITY, Math.max(1, estimated));
    // The elements of a list are known, so their shares are.
    const found = count?.kind === 'list' ? own : foundBy(count, { keys, ofKey, statisticsOf: this.#statisticsOf });
    return { way, keys, keyRows: count?.kind === 'list' ? 0 : estimated, ofKey, found, rest };
  }
}

/** The filter finds its rows by an index of its own, or from related rows. */
const isFoundAlone = ({ kind }: OpaqueFilter): boolean => kind === 'search' || kind === 'related';

type FullWay = Exclude<ChosenWay, ValueRange | undefined>;
type Walks = Pick<FullWay, 'longWalk'> & { readonly walk: number };

interface Costed<Way> {
  readonly cost: number;
  /** The cost where no row meets the filters. Default: the same. */
  readonly ofNone?: number | undefined;
  readonly way: Way;
}

/** Each row of its ranges is one of the branch. */
const readsWhole = (branch: Branch): boolean => branch.tests.length + branch.others === (isOfValues(branch) ? 1 : 0);

/** Its keys are known. Rows that give keys may be none, however many others have. */
const isOfValues = ({ isOneRange, count }: Branch): boolean => isOneRange || count?.kind === 'list';

interface WaysKeys {
  readonly way: Branch;
  readonly keys: number;
  readonly keyRows: number;
  readonly ofKey: number;
  readonly found: number;
  readonly rest: number;
}

interface EstimatedBranch {
  readonly branch: Branch;
  readonly cost: number;
  /** All rows of its ranges, and the cost to find them. */
  readonly found: number;
  readonly whole: number;
  /** The share of all rows in the branch. */
  readonly share: number;
  readonly isClustered: boolean;
}

function linkCount({ links }: PageQuestion, statisticsOf: StatisticsOf): number | undefined {
  const table = links && statisticsOf(links.table);
  return links && table && table.rows * shareOf(table, links);
}

/** Each row of the table looks up rows, unless it has no value to find them by; each that is found looks up the rows within. */
function costOfLookUps(lookUps: readonly LookUp[], table: string, statisticsOf: StatisticsOf): number {
  const columns = statisticsOf(table)?.columns;
  return summed(
    lookUps.map((each) => {
      const { nullShare = 0 } = columns?.get(each.by ?? '') ?? {};
      const found = rowsOfKey(each, statisticsOf) * (FOUND + costOfLookUps(each.within, each.table, statisticsOf));
      return (1 - nullShare) * (LINKED + found);
    }),
  );
}

/**
 * All records of the table look up their related rows sooner than the related tables are read as a whole. Each look-up finds
 * one row: of other columns, many records may share a value that far more rows have than the average one.
 */
export function areFewLookUps(lookUps: readonly LookUp[], table: string, statisticsOf: StatisticsOf): boolean {
  const rows = statisticsOf(table)?.rows ?? Number.POSITIVE_INFINITY;
  const isOfIds = (of: readonly LookUp[]): boolean => of.every(({ isId, within }) => isId === true && isOfIds(within));
  const cost = rows * costOfLookUps(lookUps, table, statisticsOf);
  return isOfIds(lookUps) && cost < costOfScans(tablesOfLookUps(lookUps), statisticsOf);
}

/** The cost of the pages on which an index finds rows. */
function costOfPages(rows: number, pages: number, clustering: number): number {
  const spread = 1 - clustering ** 2;
  return Math.min(pages, rows * (spread + (1 - spread) / ROWS_OF_PAGE)) * FOUND;
}

const costOfScans = (tables: readonly string[], statisticsOf: StatisticsOf): number =>
  summed(tables.map((table) => (statisticsOf(table)?.rows ?? 0) * SCANNED));

/** Some related rows of a record answer for it, and the database knows the cost to find these. */
function filterCostOf({ lookUps, lookedUp, lists }: OpaqueFilter, table: string, statisticsOf: StatisticsOf): number {
  if (lists === 'short') return FOUND;
  const ofAll = costOfLookUps(lookUps, table, statisticsOf);
  return lookedUp === undefined ? ofAll : Math.min(ofAll, LINKED + lookedUp.cost * OPAQUE);
}

interface FirstOfOrder {
  /** The rows that are read for them. */
  readonly read: number;
  /** Not given: they are not known, or PostgreSQL expects about as many. */
  readonly values?: FirstValues;
}
/** Rows with one value, or with some values that follow each other. */
interface OrderedGroup {
  /** The value, or the last one in the order of the page. */
  readonly at: string;
  readonly share: number;
  /** The share of the rows that have one value of the group. */
  readonly ofValue: number;
  /** The group has one value. */
  readonly isOne: boolean;
}
interface OrderedGroups {
  readonly ascending: readonly OrderedGroup[];
  readonly descending: readonly OrderedGroup[];
}

/** All values in both orders; empty: statistics do not show which are first. */
const orderedGroups = memoizedBy(
  ({ common, commonShare, nullShare, distinct, bounds = [] }: ColumnStatistics): OrderedGroups => {
    const others = distinct - common.size;
    const parts = bounds.length - 1;
    const left = Math.max(0, 1 - nullShare - commonShare);
    // A single value of few rows has no bounds. Wherever it lies, its rows are read in a moment.
    const areNamed = others > 0 && parts >= 1;
    if (others > 0 && !areNamed && left > UNNAMED_SHARE) return { ascending: [], descending: [] };
    const frequent = [...common].map(([at, share]): OrderedGroup => ({ at, share, ofValue: share, isOne: true }));
    // A frequent value within a part counts as the first of it.
    const ordered = (ends: readonly string[]): readonly OrderedGroup[] => {
      const rare = ends.map((at) => ({ at, share: left / parts, ofValue: left / others, isOne: false }));
      const groups = [...frequent, ...(areNamed ? rare : [])];
      return groups.toSorted(areNumbers(groups) ? byNumber : byText);
    };
    return { ascending: ordered(bounds.slice(1)), descending: ordered(bounds.slice(0, -1)).toReversed() };
  },
);

/** The groups of a value and of those after it. */
function groupsFrom(groups: readonly OrderedGroup[], at: string, descending: boolean): readonly OrderedGroup[] {
  const known = groups.findIndex((group) => group.at === at);
  if (known >= 0) return groups.slice(known);
  const value = { at, share: 0, ofValue: 0, isOne: true };
  const compare = areNumbers([...groups, value]) ? byNumber : byText;
  const beyond = groups.findIndex((group) => compare(group, value) > 0 !== descending);
  return groups.slice(beyond < 0 ? -1 : beyond);
}

const areNumbers = (groups: readonly OrderedGroup[]): boolean => groups.every(({ at }) => Number.isFinite(Number(at)));
const byNumber = (a: OrderedGroup, b: OrderedGroup): number => Number(a.at) - Number(b.at);
const byText = (a: OrderedGroup, b: OrderedGroup): number => (a.at < b.at ? -1 : 1);

const summed = (numbers: readonly number[]): number => numbers.reduce((sum, each) => sum + each, 0);

/** The share of the rows that meet all tests. */
function shareOfAll(table: TableStatistics, tests: readonly ColumnValues[]): number {
  let share = 1;
  for (const test of tests) share *= shareOf(table, test);
  return share;
}

/** The first of those that cost the least. */
function cheapest<T extends { readonly cost: number }>(ways: readonly (T | undefined)[]): T | undefined {
  let least: T | undefined;
  for (const way of ways) if (way !== undefined && (least === undefined || way.cost < least.cost)) least = way;
  return least;
}

/** The one whose cost exceeds the least by the fewest times at worst: where the filters find as many rows as expected, or none. */
function safest<T extends Costed<unknown>>(ways: readonly (T | undefined)[]): T | undefined {
  const known = ways.filter((way) => way !== undefined);
  const ofNone = (way: T): number => way.ofNone ?? way.cost;
  const [least, leastOfNone] = [Math.min(...known.map(({ cost }) => cost)), Math.min(...known.map(ofNone))];
  const worst = (way: T): number => Math.max(way.cost / least, ofNone(way) / leastOfNone);
  return cheapest(known.map((way) => ({ cost: worst(way), way })))?.way;
}
