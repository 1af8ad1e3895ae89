/**
 * What the two ways to a page are expected to cost: to walk the table in the order of the ids until the page is full, or to
 * take the first ids of every branch. Units are about a microsecond; only their ratio counts.
 */
import type { Branch, ColumnValues, KeyCount } from '../../policy/branch.ts';
import type { StatisticsOf, TableStatistics } from './table-statistics.ts';

export interface PageQuestion {
  readonly table: string;
  readonly branches: readonly Branch[];
  /** Exact filters of the record's own columns: each row must have these values. */
  readonly filters: readonly ColumnValues[];
  /** Columns that an index begins with. */
  readonly indexed: ReadonlySet<string>;
  /** Rows up to the end of the page. */
  readonly most: number;
}

/** A descent of an index. */
const RANGE = 4;
/** A row that an index finds. */
const FOUND = 0.4;
/** A row that is walked over; three times what it takes, because rows that match may not be spread evenly. */
const WALKED = 0.75;
/** To gather the ids, and to look up their rows. */
const UNION = 25;

/** Of something that is not known. */
const UNKNOWN_SHARE = 0.3;
/** Of the rows that have a value of a column of which nothing is known. */
const UNKNOWN_VALUE = 0.005;
const UNKNOWN_KEYS = 10;
/** Above, the rows of a value lie together. */
const CLUSTERED = 0.5;

export function prefersBranches(question: PageQuestion, statisticsOf: StatisticsOf): boolean {
  const statistics = statisticsOf(question.table);
  // A range of an index is short in a table of any size.
  if (statistics === undefined) return true;
  const estimate = new Estimate(question, statistics, statisticsOf);
  return estimate.union < estimate.plain;
}

class Estimate {
  readonly #question: PageQuestion;
  readonly #table: TableStatistics;
  readonly #statisticsOf: StatisticsOf;
  /** Of all rows, those that the filters leave. */
  readonly #filtered: number;

  constructor(question: PageQuestion, table: TableStatistics, statisticsOf: StatisticsOf) {
    this.#question = question;
    this.#table = table;
    this.#statisticsOf = statisticsOf;
    this.#filtered = productOf(question.filters.map((test) => shareOf(table, test)));
  }

  get union(): number {
    const { branches, most } = this.#question;
    return branches.reduce(
      (sum, branch) => sum + this.#costOf(branch),
      UNION + Math.min(most, this.#table.rows) * FOUND,
    );
  }

  get plain(): number {
    const { branches, filters, indexed, most } = this.#question;
    const { rows } = this.#table;
    const share = Math.min(
      1,
      branches.reduce((sum, branch) => sum + this.#shareOf(branch), 0),
    );
    // The nearest rows that match may lie at the end.
    const isUneven = branches.some((branch) => this.#isClustered(branch)) && share < 0.9;
    const walked = isUneven ? rows : Math.min(rows, most / Math.max(share * this.#filtered, 1 / Math.max(rows, 1)));
    const ways = [walked * WALKED];
    for (const filter of filters) {
      if (!indexed.has(filter.column)) continue;
      const own = shareOf(this.#table, filter);
      const needed = isUneven ? rows * own : Math.min(rows * own, walked * own);
      ways.push(RANGE + needed * WALKED);
    }
    return Math.min(...ways);
  }

  #costOf(branch: Branch): number {
    const { most } = this.#question;
    const keys = branch.keys === undefined ? 1 : this.#keysOf(branch.count, branch.column);
    const own = branch.tests.filter(({ column }) => column === branch.column);
    const share =
      branch.keys === undefined ? productOf(own.map((test) => shareOf(this.#table, test))) : this.#shareOfKey(branch);
    const rest = this.#filtered * this.#rest(branch);
    return keys * (RANGE + Math.min(this.#table.rows * share, most / Math.max(rest, 1e-9)) * FOUND);
  }

  /** Of all rows, those of the branch. */
  #shareOf(branch: Branch): number {
    const { keys, column, count } = branch;
    const isList = keys !== undefined && count?.kind !== 'list';
    const tests = branch.tests.filter((test) => !isList || test.column !== column);
    const found = isList ? this.#keysOf(count, column) * this.#shareOfKey(branch) : 1;
    return (
      Math.min(1, found) * productOf(tests.map((test) => shareOf(this.#table, test))) * UNKNOWN_SHARE ** branch.others
    );
  }

  /** Of the rows in the ranges, those that meet the rest of the branch. */
  #rest({ tests, column, others }: Branch): number {
    const rest = tests.filter((test) => test.column !== column);
    return productOf(rest.map((test) => shareOf(this.#table, test))) * UNKNOWN_SHARE ** others;
  }

  #shareOfKey({ column }: Branch): number {
    const known = this.#table.columns.get(column);
    return known === undefined ? UNKNOWN_VALUE : (1 - known.nullShare) / known.distinct;
  }

  #keysOf(count: KeyCount | undefined, column: string): number {
    if (count?.kind === 'list') return count.count;
    const most = this.#table.columns.get(column)?.distinct ?? Number.POSITIVE_INFINITY;
    const other = count && this.#statisticsOf(count.table);
    const keys = count && other ? other.rows * shareOf(other, count) : UNKNOWN_KEYS;
    return Math.min(most, Math.max(1, keys));
  }

  #isClustered({ column }: Branch): boolean {
    return (this.#table.columns.get(column)?.clustering ?? 0) > CLUSTERED;
  }
}

const productOf = (numbers: readonly number[]): number => numbers.reduce((product, each) => product * each, 1);

/** Of the rows of a table, those whose column has one of the values. */
function shareOf({ columns, rows }: TableStatistics, { column, values }: ColumnValues): number {
  const known = columns.get(column);
  if (known === undefined) return column === 'id' ? values.length / Math.max(rows, 1) : UNKNOWN_VALUE;
  const { common, commonShare, nullShare, distinct } = known;
  const others = Math.max(0, 1 - nullShare - commonShare) / Math.max(1, distinct - common.size);
  const shares = values.map((value) => common.get(printed(value)) ?? others);
  return Math.min(
    1,
    Math.max(
      1e-9,
      ...shares,
      shares.reduce((sum, share) => sum + share, 0),
    ),
  );
}

/** As PostgreSQL prints it. */
const printed = (value: unknown): string => (typeof value === 'boolean' ? (value ? 't' : 'f') : String(value));
