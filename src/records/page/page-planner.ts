/**
 * Decides how a page is found: by a walk in its order; by the range of one value in an index, of a filter or of the
 * list rule; by the branches of the list rule, of each of which an index gives the first ids; or by all rows that match.
 * A walk may come to its end in vain, so it is bounded where one of the other ways is, and followed by that one.
 */

import { present } from '../../invariant.ts';
import type { Permit } from '../../policy/access.ts';
import type { Branch, ColumnValues, KeyCount, LookUp } from '../../policy/branch.ts';
import type { Opacity } from '../../policy/filters/filter-plans.ts';
import type { IsFew } from '../../policy/types.ts';
import { keyOf } from '../../policy/types.ts';
import { indexesOf } from '../../schema/model/indexes.ts';
import type { Collection, Schema } from '../../schema/model/model.ts';
import type { Sql } from '../../sql.ts';
import { amongFirstIds, type FirstIdsWalk, type RowSource } from './first-ids.ts';
import { areFewLookUps, Estimate } from './page-costs.ts';
import type { ChoosesWay, ChosenWay, FirstValues, PageQuestion } from './page-question.ts';
import {
  areManyRows,
  estimatedKeys,
  type IsIndexed,
  isFrequentValue,
  isRareValue,
  joinsManyRows,
  rowsOfKey,
  UNKNOWN_KEYS,
} from './row-shares.ts';
import type { StatisticsOf } from './table-statistics.ts';

interface PageSearch
  extends Pick<
    PageQuestion,
    'filters' | 'links' | 'opaque' | 'most' | 'isById' | 'order' | 'lookUps' | 'unlisted' | 'relatedKeys'
  > {
  readonly collection: Collection;
  /** The part of the list rule that the filters leave open. */
  readonly permit: Permit;
  /** The tenant of the records, where they are divided by tenant. */
  readonly tenant: string | undefined;
}

/** The way to a page. INVARIANT: two ways of one `text`, the part of the page's shape that values decide, differ in values only. */
export type PageWay = BranchesWay | GatheredWay | RangeWay;

export type RangeWay = { readonly text: string } & (
  | { readonly kind: 'rule range'; readonly ways: string }
  | { readonly kind: 'filter range'; readonly column: string }
);
export interface Walking {
  readonly text: string;
  /** The rows of a walk before; 0: none. */
  readonly walk: number;
  /** The rule is tested for so many rows of it; undefined: for all. */
  readonly tested: number | undefined;
  /** The walk is in this range. */
  readonly within: RangeWay | undefined;
  /** The rows of a longer walk after it, whose related tables PostgreSQL may read as a whole; 0: none. */
  readonly longWalk: number;
}
interface BranchesWay extends Walking {
  readonly kind: 'branches';
  /** A character for each branch: its place among its alternatives. */
  readonly ways: string;
  /** The first ids that each branch gives. */
  readonly length: number;
}
export interface GatheredWay extends Walking {
  readonly kind: 'gathered';
  readonly by: 'filters' | 'keys' | 'all';
  /** The most keys, of the filter or of the rule; 0: no list of keys comes first. */
  readonly keys: number;
  /** The rows are in the order of the page before the rule is tested. */
  readonly isOrdered: boolean;
  /** The walk is among these rows. */
  readonly first: FirstValues | undefined;
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
const LARGE_TABLE = 10_000;
/** The same where a filter looks up other rows for each. */
const LARGE_OF_LOOK_UPS = 1_000;
/** A longer list of keys costs more than a page whose rows are looked up. */
export const FEW_KEYS = 500;
/** The same for a list whose rows are looked up by two columns, of which no index has both. */
const MANY_KEYS = 5_000;

/**
 * Lengths are rounded up to bound the number of statements: a longer range has the same first ids.
 * The lengths of the usual first pages are exact.
 */
const RANGE_LENGTHS = [2, 6, 11, 21, 41, 61, 81, 101, 151, 201, 301, 501, 1_001, 2_001, 5_001, 10_001];

/** The longest usual first page. A longer page of unknown keys reads too many rows. */
const SHORT = 101;
/** The rows of a walk before branches of unknown length. */
const UNKNOWN_WALK = 1_000;

interface ChosenPage extends Omit<RowSource, 'length'> {
  readonly collection: Collection;
  /** The walks before branches, from the shortest. */
  readonly walks: readonly FirstIdsWalk[];
}

export class PagePlanner {
  readonly #schema: Schema;
  readonly #statisticsOf: StatisticsOf;
  readonly #chooses: ChoosesWay;
  readonly #indexed = new Map<string, ReadonlySet<string>>();
  readonly #tables: ReadonlyMap<string, Collection>;
  /** Without statistics, no list of keys is known to be short; those of rows that refer to the caller may be. */
  readonly isFew: IsFew = (table, count, isOfRequest) => {
    const keys = this.#statisticsOf(table) && count();
    if (keys === undefined) return isOfRequest;
    return this.#areAtMost(isOfRequest ? MANY_KEYS : FEW_KEYS, keys);
  };
  /** The same for statements that read all records: no list is known to be long. */
  readonly isNotMany: IsFew = (table, count) => {
    const keys = this.#statisticsOf(table) && count();
    return keys === undefined || this.#areAtMost(FEW_KEYS, keys);
  };

  /** Longer lists of such statements that memory holds, so that their rows are read once. */
  readonly isHashed: IsFew = (table, count) => {
    const keys = this.#statisticsOf(table) && count();
    return keys !== undefined && (estimatedKeys(keys, this.#statisticsOf) ?? MANY_KEYS) < MANY_KEYS;
  };

  /** A statement that reads all records has such a list. */
  readonly isListed: IsFew = (...list) => this.isNotMany(...list) || this.isHashed(...list);

  constructor(schema: Schema, statisticsOf: StatisticsOf, chooses?: ChoosesWay) {
    this.#schema = schema;
    this.#tables = new Map([...schema.collections.values()].map((collection) => [collection.table, collection]));
    this.#statisticsOf = statisticsOf;
    this.#chooses = chooses ?? ((question) => shortestWay(question, statisticsOf));
  }

  #areAtMost(most: number, keys: KeyCount): boolean {
    return (estimatedKeys(keys, this.#statisticsOf) ?? UNKNOWN_KEYS) <= most;
  }

  choice(search: PageSearch): PageChoice {
    const { collection, permit, tenant, isById } = search;
    const { table, tenantLayout, key } = collection;
    // The ways find records by ids in one column, and no index finds a page without the tenant.
    const hasNoWay = key?.parts !== undefined || (tenant === undefined && tenantLayout?.kind === 'by');
    if (search.most > MOST_ROWS || hasNoWay) return NO_CHOICE;
    const indexed = this.indexedOf(collection);
    const branches = permit.branches('t', indexed);
    const isOpen = permit.verdict === 'allow';
    const isServed = search.filters.some(({ column }) => indexed.has(column));
    const { order } = search;
    const isPart = (isById || order !== undefined) && !(isOpen && search.filters.length === 0);
    // PostgreSQL knows nothing of the first values of an order that no index has as a whole.
    const hasFirstValues = order?.isFirstPage === true && !order.isWhole;
    const isChosen = branches !== undefined || isServed || isPart || hasFirstValues || search.opaque !== undefined;
    const ways = isById ? { branches } : { branches: undefined, unordered: branches };
    const chosen = isChosen
      ? this.#chooses({
          ...search,
          ...ways,
          besideKeys: search.relatedKeys && permit.branchesBesideKeys('t', indexed),
          table,
          indexed,
          isIndexed: this.isIndexed,
          isOpen,
        })
      : undefined;
    const way = chosen && wayOf(chosen, search);
    const statistics = this.#statisticsOf(table);
    if (statistics === undefined) return { way, isPlannedFor: false };
    // PostgreSQL knows nothing of the values of a range but that it is one.
    const found = way !== undefined && 'walk' in way ? way.within : way;
    const range = found?.kind === 'filter range' ? found.column : undefined;
    const isFrequent = (test: ColumnValues): boolean => isFrequentValue(test, range, statistics);
    const { filters, links } = search;
    const linked = links && this.#statisticsOf(links.table);
    const isFar = (test: ColumnValues): boolean => areManyRows(test, statistics) || isRareValue(test, statistics);
    const isPlannedFor =
      (way?.kind === 'gathered' && way.first !== undefined) ||
      filters.some(isFrequent) ||
      branches?.some(({ tests, count }) => tests.some(isFrequent) || joinsManyRows(count, this.#statisticsOf)) ===
        true ||
      (linked !== undefined && areManyRows(links!, linked)) ||
      ((way === undefined || way.kind === 'gathered') && filters.some(isFar));
    return { way, isPlannedFor };
  }

  /**
   * The chosen branches as a condition on the row `t` that replaces the list rule and all other conditions, for a
   * page in the order of the ids.
   */
  condition({ ways, length }: BranchesWay, permit: Permit, page: ChosenPage): Sql {
    return amongFirstIds(this.chosenBranches(ways, permit, page.collection), { ...page, length }, page.walks);
  }

  /** The branches that a way has chosen, each found as the way has it. */
  chosenBranches(ways: string, permit: Permit, collection: Collection): readonly Branch[] {
    const branches = present(permit.branches('t', this.indexedOf(collection)), 'the chosen branches');
    return branches.map((branch, i) => [branch, ...branch.alternatives][Number(ways[i])]!);
  }

  /** Testing the whole table takes some milliseconds, and it is not divided by tenant. */
  isLarge(collection: Collection, filter: Opacity, lookUps: readonly LookUp[]): boolean {
    const rows = this.rowsOf(collection);
    if (rows === undefined || collection.tenantLayout?.kind === 'by') return false;
    const looksUp = filter === 'related' || filter === 'mixed';
    if (rows > (looksUp ? LARGE_OF_LOOK_UPS : LARGE_TABLE)) return true;
    return lookUps.some((each) => rows * rowsOfKey(each, this.#statisticsOf) > LARGE_TABLE);
  }

  /** Undefined: nothing is known of the table. */
  rowsOf({ table }: Collection): number | undefined {
    return this.#statisticsOf(table)?.rows;
  }

  /**
   * A value of the rule has many more rows than the average one: a plan for all values would find them all for each record,
   * in place of its related ones.
   */
  hasManyRows(collection: Collection, rule: Permit): boolean {
    const table = this.#statisticsOf(collection.table);
    const branches = table && rule.branches('t', this.indexedOf(collection));
    const isMany = ({ tests, count }: Branch): boolean =>
      tests.some((test) => areManyRows(test, table!)) || joinsManyRows(count, this.#statisticsOf);
    return branches?.some(isMany) === true;
  }

  /** PostgreSQL would read the related tables as a whole: it expects a related row where a record has no value to find it by. */
  looksUpSooner({ table }: Collection, lookUps: readonly LookUp[]): boolean {
    return lookUps.length > 0 && areFewLookUps(lookUps, table, this.#statisticsOf);
  }

  /** Link tables have an index on each side. */
  readonly isIndexed: IsIndexed = (table, column) => {
    const collection = this.#tables.get(table);
    return collection === undefined || this.indexedOf(collection).has(column);
  };

  /** Columns that an index begins with. */
  indexedOf(collection: Collection): ReadonlySet<string> {
    const known = this.#indexed.get(collection.name);
    if (known !== undefined) return known;
    const tenant = collection.tenantLayout?.kind === 'by' ? [collection.tenantLayout.column] : [];
    const made = new Set([
      keyOf(collection).column,
      ...tenant,
      ...indexesOf(collection, this.#schema).flatMap(({ serves }) => serves ?? []),
    ]);
    this.#indexed.set(collection.name, made);
    return made;
  }
}

export const NO_CHOICE: PageChoice = { way: undefined, isPlannedFor: false };

function wayOf(chosen: Exclude<ChosenWay, undefined>, { most, tenant }: PageSearch): PageWay {
  if (chosen.kind === 'range') return rangeOf(chosen.of);
  const { walk = 0, tested, longWalk = 0 } = chosen;
  const within = chosen.within && rangeOf(chosen.within);
  const after = `${walk} ${tested} ${within?.text} ${longWalk}`;
  if (chosen.kind === 'gathered') {
    const { by, keys = 0, isOrdered = false } = chosen;
    // Statistics are those of all tenants.
    const first = tenant === undefined ? chosen.first : undefined;
    const text = `gathered ${by} ${keys} ${isOrdered} ${first?.isAlone} ${after}`;
    return { kind: 'gathered', by, keys, isOrdered, walk, tested, within, longWalk, first, text };
  }
  const ways = chosen.branches.map(({ place }) => place).join('');
  // A longer range has the same first ids.
  const length = RANGE_LENGTHS.find((each) => each >= most) ?? most;
  return { kind: 'branches', ways, length, walk, tested, within, longWalk, text: `${ways} ${length} ${after}` };
}

function rangeOf(of: Branch | ColumnValues): RangeWay {
  if (!('tests' in of)) return { kind: 'filter range', column: of.column, text: `= ${of.column}` };
  return { kind: 'rule range', ways: `${of.place}`, text: `rule ${of.place}` };
}

/** Every way gives the same page, and statistics decide which is the shortest. */
export function shortestWay(question: PageQuestion, statisticsOf: StatisticsOf): ChosenWay {
  const { links, filters, indexed, isById } = question;
  const statistics = statisticsOf(question.table);
  if (statistics === undefined) return isById && links === undefined ? wayInAnyTable(question) : undefined;
  if (links !== undefined && statisticsOf(links.table) === undefined) return undefined;
  const served = filters.filter((test) => isRange(test, indexed));
  const estimate = new Estimate(question, statistics, statisticsOf);
  return isById ? estimate.shortest(served) : estimate.shortestInOtherOrder(served);
}

const isRange = ({ column, isId, values, isInside }: ColumnValues, indexed: ReadonlySet<string>): boolean =>
  values.length === 1 && isInside !== true && !isId && indexed.has(column);

function wayInAnyTable({ branches, filters, indexed, most, lookUps }: PageQuestion): ChosenWay {
  if (branches === undefined) {
    const range = filters.find((test) => isRange(test, indexed));
    return range && { kind: 'range', of: range };
  }
  const [first, ...others] = branches;
  if (others.length === 0 && first!.isOneRange) return { kind: 'range', of: first! };
  // A range, and a row for each key, read no more rows than the page holds.
  const isShort = most <= SHORT || branches.every(({ isOneRange, isId }) => isOneRange || isId);
  return isShort ? { kind: 'branches', branches, walk: lookUps.length > 0 ? UNKNOWN_WALK : undefined } : undefined;
}
