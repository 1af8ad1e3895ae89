/** Decides how the page of a list is found in the order of the ids: by the plain condition, or by the branches of the list rule. */
import type { Permit } from '../../policy/access.ts';
import type { Branch, ColumnValues } from '../../policy/branch.ts';
import { indexesOf } from '../../schema/model/indexes.ts';
import type { Collection, Schema } from '../../schema/model/model.ts';
import type { Sql } from '../../sql.ts';
import { amongFirstIds, type RowSource } from './ordered-union.ts';
import { type PageQuestion, shorterBranches } from './page-cost.ts';
import type { StatisticsOf } from './table-statistics.ts';

/** The branches, if they are the better way. The page is the same. */
export type ChoosesBranches = (question: PageQuestion) => readonly Branch[] | undefined;

export const byStatistics =
  (statisticsOf: StatisticsOf): ChoosesBranches =>
  (question) =>
    shorterBranches(question, statisticsOf);

export interface PageSearch extends RowSource {
  readonly collection: Collection;
  /** What is left of the list rule. */
  readonly permit: Permit;
  /** Those of the conditions that compare a column with values. */
  readonly filters: readonly ColumnValues[];
  /** The links that another condition requires. */
  readonly links?: PageQuestion['links'];
  /** Of the records, where they are divided by tenant. */
  readonly tenant: string | undefined;
}

/** Beyond, ranges are as long as what they save. */
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
   * A condition on the row `t` that stands for the list rule and all other conditions, for a page in the order of the ids.
   * Undefined where these are as good.
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

/** That is what the plain condition comes to. */
const isOneRange = ([first, ...others]: readonly Branch[]): boolean =>
  others.length === 0 && first!.isOneRange && first!.instead === undefined;
