/**
 * Estimates the cost of the two ways to a page: to walk the table in the order of the ids until the page is full, or to
 * take the first ids of every branch. Units are about a microsecond; only their ratio counts.
 */
import type { Branch, ColumnValues, KeyCount } from '../../policy/branch.ts';
import type { ColumnStatistics, StatisticsOf, TableStatistics } from './table-statistics.ts';

export interface PageQuestion {
  readonly table: string;
  readonly branches: readonly Branch[];
  /** Exact filters of the record's own columns: each row must have these values. */
  readonly filters: readonly ColumnValues[];
  /** Each row must have one of these links, by which the page may be found too. */
  readonly links?: (ColumnValues & { readonly table: string }) | undefined;
  /** Columns that an index begins with. */
  readonly indexed: ReadonlySet<string>;
  /** Rows up to the end of the page. */
  readonly most: number;
}

/** A descent of an index. */
const RANGE = 4;
/** A row that an index finds. */
const FOUND = 0.4;
/** The cost of a row that the walk passes: three times the real one, because matching rows may be spread unevenly. */
const WALKED = 0.75;
/** A link, and its row that is looked up; or a row whose link is looked up. */
const LINKED = 2;
/** The cost to gather the ids, and to look up their rows. */
const UNION = 60;

/** The share of a condition that is not known. */
const UNKNOWN_SHARE = 0.3;
/** The share of the rows with a value, for a column without statistics. */
const UNKNOWN_VALUE = 0.005;
const UNKNOWN_KEYS = 10;
/** Above this correlation, the rows of a value lie together. */
const CLUSTERED = 0.5;
/** The longest usual first page. A longer page of unknown keys reads too many rows. */
const SHORT = 101;

/** The branches, each in its shortest way, where they are shorter than the plain condition. */
export function shorterBranches(question: PageQuestion, statisticsOf: StatisticsOf): readonly Branch[] | undefined {
  const { links } = question;
  const statistics = statisticsOf(question.table);
  if (links !== undefined && (statistics === undefined || statisticsOf(links.table) === undefined)) return undefined;
  if (statistics === undefined) return isShortInAnyTable(question) ? question.branches : undefined;
  const estimate = new Estimate(question, statistics, statisticsOf);
  return estimate.union < estimate.plain ? estimate.branches : undefined;
}

/** A range, and a row for each key, read no more rows than the page holds. */
const isShortInAnyTable = ({ branches, most }: PageQuestion): boolean =>
  most <= SHORT || branches.every(({ isOneRange, column }) => isOneRange || column === 'id');

class Estimate {
  readonly #question: PageQuestion;
  readonly #table: TableStatistics;
  readonly #statisticsOf: StatisticsOf;
  /** Links, or undefined where none are asked for. */
  readonly #links: number | undefined;
  /** The share of all rows that the filters leave. */
  readonly #filtered: number;
  readonly #branches: readonly EstimatedBranch[];

  constructor(question: PageQuestion, table: TableStatistics, statisticsOf: StatisticsOf) {
    this.#question = question;
    this.#table = table;
    this.#statisticsOf = statisticsOf;
    this.#links = linksOf(question, statisticsOf);
    const linked = this.#links === undefined ? 1 : Math.min(1, this.#links / Math.max(1, table.rows));
    this.#filtered = linked * productOf(question.filters.map((test) => shareOf(table, test)));
    this.#branches = question.branches.map((branch) => this.#shortest(branch));
  }

  get branches(): readonly Branch[] {
    return this.#branches.map(({ branch }) => branch);
  }

  get union(): number {
    const { most } = this.#question;
    return this.#branches.reduce((sum, { cost }) => sum + cost, UNION + Math.min(most, this.#table.rows) * FOUND);
  }

  get plain(): number {
    const { filters, indexed, most } = this.#question;
    const { rows } = this.#table;
    // Clustered rows may lie at the end, so that a walk meets only spread rows soon.
    let spread = 0;
    let share = 0;
    for (const branch of this.#branches) {
      share += branch.share;
      if (!branch.isClustered) spread += branch.share;
    }
    const met = Math.min(1, share > 0.9 ? share : spread) * this.#filtered;
    const walked = met === 0 ? rows : Math.min(rows, most / met);
    // A walk by the links meets only rows that have one, in the order of the ids.
    let least = this.#links === undefined ? walked * WALKED : this.#byLinks(walked);
    for (const filter of [...filters, ...this.#common]) {
      if (!indexed.has(filter.column)) continue;
      const own = shareOf(this.#table, filter);
      // Rows of a single value come in the order of the ids; rows of several values are sorted.
      const read = filter.values.length === 1 ? walked : rows;
      least = Math.min(least, RANGE + read * own * WALKED);
    }
    return least;
  }

  #byLinks(walked: number): number {
    const links = this.#links!;
    return RANGE + Math.min(links, (walked / Math.max(1, this.#table.rows)) * links) * LINKED;
  }

  /** Tests that every branch has, so that one index may serve the whole condition. */
  get #common(): readonly ColumnValues[] {
    const [first, ...others] = this.#question.branches;
    const asks = ({ tests }: Branch, { column, values }: ColumnValues): boolean =>
      tests.some((test) => test.column === column && test.values.join() === values.join());
    return (first?.tests ?? []).filter((test) => others.every((branch) => asks(branch, test)));
  }

  #shortest(branch: Branch): EstimatedBranch {
    const own = this.#estimated(branch, 1);
    if (branch.instead === undefined) return own;
    const byKeys = this.#estimated(branch.instead, 1);
    // A range also reads the rows that the keys leave out, and more is known of the keys.
    const byRange = this.#estimated(branch, byKeys.found / UNKNOWN_SHARE);
    return byRange.cost < byKeys.cost ? { ...byRange, share: byKeys.share } : byKeys;
  }

  /** `known`: what is known of the other conjuncts, as a factor. */
  #estimated(branch: Branch, known: number): EstimatedBranch {
    const { column, count, isOneRange } = branch;
    const { indexed, most } = this.#question;
    const statistics = this.#table.columns.get(column);
    let own = 1;
    let rest = UNKNOWN_SHARE ** branch.others * known;
    for (const test of branch.tests) {
      const share = shareOf(this.#table, test);
      if (test.column === column) own *= share;
      // The database takes the index with the shortest range.
      else if (isOneRange && indexed.has(test.column) && share < own) [own, rest] = [share, rest * own];
      else rest *= share;
    }
    const keys = isOneRange ? 1 : this.#keysOf(count, statistics);
    const ofKey = isOneRange ? own : keyShare(statistics);
    // The elements of a list are known, so their shares are.
    const found = isOneRange || count?.kind === 'list' ? own : Math.min(1, keys * ofKey);
    const read = Math.min(this.#table.rows * ofKey, most / Math.max(rest * this.#filtered, 1e-9));
    return {
      branch,
      cost: keys * (RANGE + read * (this.#links === undefined ? FOUND : LINKED)),
      found,
      share: found * rest,
      isClustered: (statistics?.clustering ?? 0) > CLUSTERED,
    };
  }

  #keysOf(count: KeyCount | undefined, known: ColumnStatistics | undefined): number {
    if (count?.kind === 'list') return count.count;
    const other = count && this.#statisticsOf(count.table);
    const keys = count && other ? other.rows * shareOf(other, count) : UNKNOWN_KEYS;
    return Math.min(known?.distinct ?? Number.POSITIVE_INFINITY, Math.max(1, keys));
  }
}

interface EstimatedBranch {
  readonly branch: Branch;
  readonly cost: number;
  /** The share of all rows in its ranges. */
  readonly found: number;
  /** The share of all rows in the branch. */
  readonly share: number;
  readonly isClustered: boolean;
}

function linksOf({ links }: PageQuestion, statisticsOf: StatisticsOf): number | undefined {
  const table = links && statisticsOf(links.table);
  return links && table && table.rows * shareOf(table, links);
}

const keyShare = (known: ColumnStatistics | undefined): number =>
  known === undefined ? UNKNOWN_VALUE : (1 - known.nullShare) / known.distinct;

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
