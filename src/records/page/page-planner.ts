/**
 * Decides how a page is found in the order of the ids: by the plain condition, or by the branches
 * of the list rule. Each branch gives its first ids, and the page is looked up among these.
 * Branches may have records in common: in a list of ids each counts once.
 */
import { present } from '../../invariant.ts';
import type { Permit } from '../../policy/access.ts';
import type { Branch, ColumnValues, KeyCount } from '../../policy/branch.ts';
import { indexesOf } from '../../schema/model/indexes.ts';
import type { Collection, Schema } from '../../schema/model/model.ts';
import { empty, ident, join, raw, type Sql, sql, typedLiteral } from '../../sql.ts';
import type { ColumnStatistics, StatisticsOf, TableStatistics } from './table-statistics.ts';

/** The branches, if they are the better way, each in its own way or in the one that it has `instead`. */
export type ChoosesBranches = (question: PageQuestion) => readonly Branch[] | undefined;

export const byStatistics =
  (statisticsOf: StatisticsOf): ChoosesBranches =>
  (question) =>
    shorterBranches(question, statisticsOf);

interface PageSearch {
  readonly collection: Collection;
  /** The part of the list rule that the filters leave open. */
  readonly permit: Permit;
  /** The conditions that compare a column with values. */
  readonly filters: readonly ColumnValues[];
  /** The links that another condition requires. */
  readonly links: PageQuestion['links'];
  /** The tenant of the records, where they are divided by tenant. */
  readonly tenant: string | undefined;
  /** Rows up to the end of the page. */
  readonly most: number;
}

/** The branches that find a page, as the part of its shape that values decide. */
export interface BranchChoice {
  /** A character for each branch of the rule. */
  readonly ways: string;
  /** The first ids that each branch gives. */
  readonly length: number;
}
const OWN_WAY = '=';
const OTHER_WAY = '~';

/** Beyond this, branches save nothing. */
const MOST_ROWS = 10_000;

interface ChosenPage extends Omit<RowSource, 'length'> {
  readonly collection: Collection;
}

export class PagePlanner {
  readonly #schema: Schema;
  readonly #choosesBranches: ChoosesBranches;
  readonly #indexed = new Map<string, ReadonlySet<string>>();

  constructor(schema: Schema, choosesBranches: ChoosesBranches) {
    this.#schema = schema;
    this.#choosesBranches = choosesBranches;
  }

  /** Undefined if the plain condition is as good. */
  choice({ collection, permit, filters, links, most, tenant }: PageSearch): BranchChoice | undefined {
    // No index finds a page of the collection without the tenant.
    const isLost = tenant === undefined && collection.tenantLayout?.kind === 'by';
    if (most > MOST_ROWS || isLost) return undefined;
    const indexed = this.indexedOf(collection);
    const branches = permit.branches('t', indexed);
    if (branches === undefined || isOneRange(branches)) return undefined;
    const chosen = this.#choosesBranches({ table: collection.table, branches, filters, links, indexed, most });
    if (chosen === undefined || isOneRange(chosen)) return undefined;
    const ways = chosen.map((branch, i) => (branch === branches[i] ? OWN_WAY : OTHER_WAY));
    return { ways: ways.join(''), length: roundedUp(most) };
  }

  /**
   * The chosen branches as a condition on the row `t` that replaces the list rule and all other conditions, for a
   * page in the order of the ids.
   */
  condition({ ways, length }: BranchChoice, permit: Permit, page: ChosenPage): Sql {
    const branches = present(permit.branches('t', this.indexedOf(page.collection)), 'the chosen branches');
    const chosen = branches.map((branch, i) => (ways[i] === OWN_WAY ? branch : present(branch.instead, 'another way')));
    return amongFirstIds(chosen, { ...page, length });
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

/** The plain condition reads the same range. */
const isOneRange = ([first, ...others]: readonly Branch[]): boolean =>
  others.length === 0 && first!.isOneRange && first!.instead === undefined;

// ---------------------------------------------------------------- the first ids of the branches

interface RowSource {
  /** The listed rows, named `t`, for FROM. */
  readonly rows: { where(...conditions: readonly Sql[]): Sql };
  /** Conditions that every row meets, besides the branch. */
  readonly conditions: readonly Sql[];
  readonly length: number;
  readonly descending: boolean;
}

/** INVARIANT: the list holds the first `length` ids of the rows that meet the conditions and a branch. */
export function amongFirstIds(branches: readonly Branch[], source: RowSource): Sql {
  const parts = branches.map((branch) => sql`(${firstIds(branch, source)})`);
  return sql`t.id = ANY(ARRAY(${join(parts, ' UNION ALL ')}))`;
}

function firstIds(branch: Branch, source: RowSource): Sql {
  const { column, keys, where, isOneRange } = branch;
  const rest = where === undefined ? [] : [where];
  const { length } = source;
  if (isOneRange || keys === undefined) return range(rest, source, length);
  // A key that is an id has one record, so in the order of the keys the first are enough.
  const isId = column === 'id';
  const order = raw(source.descending ? ' DESC' : '');
  return sql`
    SELECT b.id
      FROM (SELECT DISTINCT key FROM (${keys}) AS k (key)${isId ? sql` ORDER BY key${order}` : empty}) AS k
     CROSS JOIN LATERAL (${range([sql`t.${ident(column)} = k.key`, ...rest], source, isId ? 1 : length)}) AS b${
       isId ? sql` ORDER BY k.key${order} LIMIT ${typedLiteral('int8', length)}` : empty
     }`;
}

function range(branch: readonly Sql[], { rows, conditions, descending }: RowSource, length: number): Sql {
  return sql`
    SELECT t.id
      FROM ${rows.where(...branch, ...conditions)}
     ORDER BY t.id${raw(descending ? ' DESC' : '')}
     LIMIT ${typedLiteral('int8', length)}`;
}

/**
 * Lengths are rounded up to bound the number of statements: a longer range has the same first ids.
 * The lengths of the usual first pages are exact.
 */
const LENGTHS = [11, 21, 41, 61, 81, 101, 151, 201, 301, 501, 1_001, 2_001, 5_001, 10_001];

const roundedUp = (rows: number): number => LENGTHS.find((length) => length >= rows) ?? rows;

// ---------------------------------------------------------------- the cost of the two ways

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

/** A descent of an index. Costs are about a microsecond each; only their ratio counts. */
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

/**
 * The branches, each in its shortest way, where they are shorter than the plain condition. The plain condition walks
 * the table in the order of the ids until the page is full; the branches give their first ids.
 */
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
