/**
 * What the two ways to a page are expected to cost: to walk the table in the order of the ids until the page is full, or to
 * take the first ids of every branch. Units are about a microsecond; only their ratio counts.
 */
import type { Branch, ColumnValues, KeyCount } from '../../policy/branch.ts';
import type { ColumnStatistics, StatisticsOf, TableStatistics } from './table-statistics.ts';

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
  readonly #branches: readonly EstimatedBranch[];

  constructor(question: PageQuestion, table: TableStatistics, statisticsOf: StatisticsOf) {
    this.#question = question;
    this.#table = table;
    this.#statisticsOf = statisticsOf;
    this.#filtered = productOf(question.filters.map((test) => shareOf(table, test)));
    this.#branches = question.branches.map((branch) => this.#estimated(branch));
  }

  get union(): number {
    const { most } = this.#question;
    return this.#branches.reduce(
      (sum, branch) => sum + this.#costOf(branch),
      UNION + Math.min(most, this.#table.rows) * FOUND,
    );
  }

  get plain(): number {
    const { filters, indexed, most } = this.#question;
    const { rows } = this.#table;
    const share = Math.min(
      1,
      this.#branches.reduce((sum, branch) => sum + branch.share, 0),
    );
    // The nearest rows that match may lie at the end.
    const isUneven = share < 0.9 && this.#branches.some(({ isClustered }) => isClustered);
    const walked = isUneven ? rows : Math.min(rows, most / Math.max(share * this.#filtered, 1 / Math.max(rows, 1)));
    let least = walked * WALKED;
    for (const filter of filters) {
      if (!indexed.has(filter.column)) continue;
      const own = shareOf(this.#table, filter);
      least = Math.min(least, RANGE + (isUneven ? rows : Math.min(rows, walked)) * own * WALKED);
    }
    return least;
  }

  #costOf({ keys, ofKey, rest }: EstimatedBranch): number {
    const { most } = this.#question;
    const found = Math.min(this.#table.rows * ofKey, most / Math.max(rest * this.#filtered, 1e-9));
    return keys * (RANGE + found * FOUND);
  }

  #estimated(branch: Branch): EstimatedBranch {
    const { column, count, isOneRange } = branch;
    const known = this.#table.columns.get(column);
    let own = 1;
    let rest = UNKNOWN_SHARE ** branch.others;
    for (const test of branch.tests) {
      if (test.column === column) own *= shareOf(this.#table, test);
      else rest *= shareOf(this.#table, test);
    }
    const keys = isOneRange ? 1 : this.#keysOf(count, known);
    const ofKey = isOneRange ? own : known === undefined ? UNKNOWN_VALUE : (1 - known.nullShare) / known.distinct;
    // The elements of a list are known, so their shares are.
    const found = isOneRange || count?.kind === 'list' ? own : Math.min(1, keys * ofKey);
    return { keys, ofKey, rest, share: found * rest, isClustered: (known?.clustering ?? 0) > CLUSTERED };
  }

  #keysOf(count: KeyCount | undefined, known: ColumnStatistics | undefined): number {
    if (count?.kind === 'list') return count.count;
    const other = count && this.#statisticsOf(count.table);
    const keys = count && other ? other.rows * shareOf(other, count) : UNKNOWN_KEYS;
    return Math.min(known?.distinct ?? Number.POSITIVE_INFINITY, Math.max(1, keys));
  }
}

interface EstimatedBranch {
  readonly keys: number;
  /** Of all rows, those of one key. */
  readonly ofKey: number;
  /** Of the rows of the keys, those that meet the rest of the branch. */
  readonly rest: number;
  /** Of all rows, those of the branch. */
  readonly share: number;
  readonly isClustered: boolean;
}

const productOf = (numbers: readonly number[]): number => numbers.reduce((product, each) => product * each, 1);

/** Of the rows of a table, those whose column has one of the values. */
function shareOf({ columns, rows }: TableStatistics, { column, values }: ColumnValues): number {
  const known = columns.get(column);
  if (known === undefined) return column === 'id' ? values.length / Math.max(rows, 1) : UNKNOWN_VALUE;
  const { common, commonShare, nullShare, distinct } = known;
  const others = Math.max(0, 1 - nullShare - commonShare) / Math.max(1, distinct - common.size);
  let share = 0;
  for (const value of values) share += common.get(printed(value)) ?? others;
  return Math.min(1, Math.max(1e-9, share));
}

/** As PostgreSQL prints it. */
const printed = (value: unknown): string => (typeof value === 'boolean' ? (value ? 't' : 'f') : String(value));
