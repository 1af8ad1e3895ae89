/**
 * Decides how a page is found in the order of the ids: by the plain condition, or by the branches
 * of the list rule. Each branch gives its first ids, and the page is looked up among these.
 * Branches may have records in common: in a list of ids each counts once.
 */
import type { Permit } from '../../policy/access.ts';
import type { Branch, ColumnValues } from '../../policy/branch.ts';
import { indexesOf } from '../../schema/model/indexes.ts';
import type { Collection, Schema } from '../../schema/model/model.ts';
import { empty, ident, join, raw, type Sql, sql, typedLiteral } from '../../sql.ts';
import { type PageQuestion, shorterBranches } from './page-cost.ts';
import type { StatisticsOf } from './table-statistics.ts';

/** The branches, if they are the better way. The page is the same. */
export type ChoosesBranches = (question: PageQuestion) => readonly Branch[] | undefined;

export const byStatistics =
  (statisticsOf: StatisticsOf): ChoosesBranches =>
  (question) =>
    shorterBranches(question, statisticsOf);

interface PageSearch extends RowSource {
  readonly collection: Collection;
  /** The part of the list rule that the filters leave open. */
  readonly permit: Permit;
  /** The conditions that compare a column with values. */
  readonly filters: readonly ColumnValues[];
  /** The links that another condition requires. */
  readonly links?: PageQuestion['links'];
  /** The tenant of the records, where they are divided by tenant. */
  readonly tenant: string | undefined;
}

/** Beyond this, branches save nothing. */
const MOST_ROWS = 10_000;

export class PagePlanner {
  readonly #schema: Schema;
  readonly #choosesBranches: ChoosesBranches;
  readonly #indexed = new Map<string, ReadonlySet<string>>();

  constructor(schema: Schema, choosesBranches: ChoosesBranches) {
    this.#schema = schema;
    this.#choosesBranches = choosesBranches;
  }

  /**
   * Returns a condition on the row `t` that replaces the list rule and all other conditions, for a page
   * in the order of the ids; undefined if those conditions are as good.
   */
  condition(page: PageSearch): Sql | undefined {
    const { collection, permit, filters, links, most, tenant } = page;
    // No index finds a page of the collection without the tenant.
    const isLost = tenant === undefined && collection.tenantLayout?.kind === 'by';
    if (most > MOST_ROWS || isLost) return undefined;
    const indexed = this.indexedOf(collection);
    const branches = permit.branches('t', indexed);
    if (branches === undefined || isOneRange(branches)) return undefined;
    const chosen = this.#choosesBranches({ table: collection.table, branches, filters, links, indexed, most });
    if (chosen === undefined || isOneRange(chosen)) return undefined;
    return amongFirstIds(chosen, page);
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
  /** Rows up to the end of the page. */
  readonly most: number;
  readonly descending: boolean;
}

/** INVARIANT: the list holds the first `most` ids of the rows that meet the conditions and a branch. */
export function amongFirstIds(branches: readonly Branch[], source: RowSource): Sql {
  const parts = branches.map((branch) => sql`(${firstIds(branch, source)})`);
  return sql`t.id = ANY(ARRAY(${join(parts, ' UNION ALL ')}))`;
}

function firstIds(branch: Branch, source: RowSource): Sql {
  const { column, keys, where, isOneRange } = branch;
  const rest = where === undefined ? [] : [where];
  const length = roundedUp(source.most);
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
