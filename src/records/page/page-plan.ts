/**
 * The plan of a page: the statement that finds it, made of the filters, of what they leave of the
 * list rule, and of the order.
 */

import type { Permit } from '../../policy/access.ts';
import type { ColumnValues } from '../../policy/branch.ts';
import type { AskedFilter, Filter } from '../../policy/filter.ts';
import type { Row } from '../../policy/types.ts';
import type { Collection } from '../../schema/model/model.ts';
import { join, type Sql, sql } from '../../sql.ts';
import { type AccessContext, type Store, type UnindexedUse, visibilityOf } from '../access-context.ts';
import { CapabilityColumns } from '../capabilities.ts';
import type { Expand } from '../expand.ts';
import type { Members } from '../record-shape.ts';
import { RecordView, withExpanded } from '../record-view.ts';
import { listedTenant, type ScopedRows, scopeOf } from '../scope.ts';
import type { CountKind } from './count.ts';
import type { Position } from './cursor.ts';
import {
  type ExactFilter,
  isRelatedFilter,
  ownFilterOf,
  type RelatedFilter,
  type RequiredLinks,
  relatedCondition,
  requiredLinks,
} from './exact-filters.ts';
import { anyWindowOf, type Keyset, keysetOf, mostOf, type Sorting, windowOf } from './keyset.ts';
import type { PagePlanner } from './page-planner.ts';

/** All filters must match. */
export interface ListRequest {
  readonly exact?: readonly ExactFilter[];
  readonly filter?: Filter | undefined;
  /** Ties are in the order of the ids. */
  readonly sort?: readonly Sorting[];
  readonly limit: number;
  readonly offset: number;
  /** With it, the page names the cursor of the next one. */
  readonly cursors?: CursorRequest;
  readonly members?: Members | undefined;
  readonly expands?: readonly Expand[];
  readonly count?: CountKind;
  /** Each record carries `can`: its capabilities. */
  readonly capabilities?: boolean;
  /**
   * The statements share the time that the schema gives a query, in the slow lane, and the related
   * records are bounded.
   */
  readonly isBudgeted?: boolean;
}

export interface CursorRequest {
  /** Filter, params and sort in one spelling: equal for the queries that may share a cursor. */
  readonly query: string;
  /** The page begins after this cursor. */
  readonly after?: string | undefined;
}

export class PagePlan {
  readonly collection: Collection;
  readonly keyset: Keyset;
  readonly view: RecordView;
  readonly members: Members | undefined;
  readonly expands: readonly Expand[];
  readonly capabilities: CapabilityColumns | undefined;
  /** The tenant of the records, where they are divided by tenant. */
  readonly tenant: string | undefined;
  /** The filters leave nothing that the caller may list. */
  readonly isEmpty: boolean;
  /** The caller may list every record, and the filters depend on nothing that may be hidden. */
  readonly isOpen: boolean;
  readonly #request: ListRequest;
  readonly #pages: PagePlanner;
  /** The part of the list rule that the filters leave open. */
  readonly #permit: Permit;
  readonly #asked: readonly AskedFilter[];
  readonly #rows: ScopedRows;
  /** Filters of the record's own members, and expressions over the record. */
  readonly #filters: readonly Sql[];
  /** Filters that name a related record. */
  readonly #related: ReadonlyMap<RelatedFilter, Sql>;
  readonly #links: RequiredLinks | undefined;

  constructor(store: Store, access: AccessContext, request: ListRequest) {
    const { collection } = access;
    const { exact = [], expands = [], members, sort = [] } = request;
    const visibility = visibilityOf(access);
    const permit = access.permit(collection.name, 'list');
    const filters = [ownFilterOf(exact, store, access), request.filter];
    const asked = filters.flatMap((filter) => filter?.asked(access, visibility) ?? []);
    const inTime = request.isBudgeted ? store.inTime : undefined;
    this.#filters = asked.map((filter) => filter.where('t', inTime));
    const facts: Row = Object.assign({}, ...asked.map((filter) => filter.facts));
    this.#request = request;
    this.#asked = asked;
    this.#pages = store.pages;
    this.#permit = permit.given(facts);
    this.collection = collection;
    this.members = members;
    this.expands = expands;
    this.tenant = listedTenant(access, facts);
    const scope = scopeOf({ store, tenant: this.tenant });
    this.#rows = scope.from(collection.name, 't');
    this.keyset = keysetOf(sort, { scope, visibility, collection: collection.name, alias: 't' });
    this.view = new RecordView(store, access, {
      collection: collection.name,
      members: withExpanded(members, expands),
      tenant: this.tenant,
    });
    this.capabilities = request.capabilities ? new CapabilityColumns(access) : undefined;
    const listed = { access, scope, rows: this.#rows };
    const related = exact.filter(isRelatedFilter);
    this.#links = related.length === 0 ? undefined : requiredLinks(listed, related);
    this.#related = new Map(related.map((filter) => [filter, relatedCondition(listed, filter)]));
    this.isEmpty = this.#permit.verdict === 'deny';
    this.isOpen = permit.verdict === 'allow' && asked.every(({ isOpen }) => isOpen) && related.length === 0;
  }

  /** `FROM … WHERE …` of all records that match. */
  get source(): Sql {
    const { rows, conditions } = this.#matching;
    return sql`FROM ${rows.where(...conditions)}`;
  }

  /** The first page, or the page after the position. The statement selects one row more than the page shows. */
  statement(position: Position | undefined): Sql {
    const { limit, offset } = this.#request;
    const first = this.#amongFirst(position);
    if (first !== undefined)
      return this.#selected(this.keyset, { rows: this.#rows, conditions: [first] }, anyWindowOf(limit + 1, offset));
    const { halves } = this.keyset;
    if (halves === undefined) return this.#range(this.keyset, { position, window: windowOf(limit + 1, offset) });
    const { column, present, absent } = halves;
    const without = sql`${column} IS NULL`;
    if (position !== undefined && position[0] === null)
      return this.#range(absent, { position, where: [without], window: windowOf(limit + 1, 0) });
    const most = windowOf(limit + 1 + offset, 0);
    // The statement reads rows without a value only if the rows with a value do not fill the page.
    const isShort = sql`(SELECT count(*) FROM "present") < ${mostOf(limit + 1 + offset)}`;
    // A SELECT by its first word: after a loss of the connection, only a SELECT is sent again.
    return sql`
      SELECT *
        FROM (WITH "present" AS MATERIALIZED (${this.#range(present, { position, where: [sql`${column} IS NOT NULL`], window: most })})
              SELECT *
                FROM "present"
               UNION ALL
             (${this.#range(absent, { where: [without, isShort], window: most })})) AS "page"
       ORDER BY ${this.keyset.order} ${windowOf(limit + 1, offset)}`;
  }

  /**
   * The fields that the page is filtered and sorted by without an index, so that it reads the whole
   * table as it grows. An index of another filter leaves the rest only to narrow its rows.
   */
  unindexedUses(): readonly UnindexedUse[] {
    const indexed = this.#pages.indexedOf(this.collection);
    const unserved = this.#asked.map((filter) => filter.unserved(indexed));
    const isServed = this.#related.size > 0 || unserved.includes(undefined);
    if (isServed) return [];
    const { name: collection } = this.collection;
    const filtered = new Set(unserved.flatMap((columns = []) => columns.map(({ name }) => name)));
    const [first] = this.#request.sort ?? [];
    const sorted = first === undefined || first.path.steps.length > 0 ? undefined : first.path.field;
    return [
      ...[...filtered].map((field) => ({ collection, field, use: 'filter' as const })),
      ...(sorted === undefined || indexed.has(sorted.column)
        ? []
        : [{ collection, field: sorted.name, use: 'sort' as const }]),
    ];
  }

  /** The records that match, from the links where a filter requires some. */
  get #matching(): RowSelection {
    const permitted = this.#permit.verdict === 'allow' ? [] : [this.#permit.where('t')];
    const links = this.#links;
    if (links === undefined)
      return { rows: this.#rows, conditions: [...this.#filters, ...this.#relatedBut(undefined), ...permitted] };
    const others = this.#relatedBut(links.filter);
    return { rows: links.rows, conditions: [links.condition, ...this.#filters, ...others, ...permitted] };
  }

  /** The conditions are in the order of their texts, so that equal sets of filters share a statement. */
  #relatedBut(other: RelatedFilter | undefined): readonly Sql[] {
    if (this.#related.size === 0) return [];
    const conditions = [...this.#related].flatMap(([filter, condition]) => (filter === other ? [] : [condition]));
    return conditions.sort((a, b) => (a.text < b.text ? -1 : 1));
  }

  /** In the order of the ids, the branches of the list rule may find the page sooner than the plain condition. */
  #amongFirst(position: Position | undefined): Sql | undefined {
    const { byId } = this.keyset;
    const tests = this.#asked.flatMap((filter) => filter.tests);
    if (byId === undefined || this.#isFoundByFilter(tests)) return undefined;
    const { limit, offset } = this.#request;
    const after = position === undefined ? [] : [this.keyset.after(position)];
    return this.#pages.condition({
      collection: this.collection,
      permit: this.#permit,
      filters: tests,
      links: this.#links?.test,
      tenant: this.tenant,
      rows: this.#rows,
      conditions: [...after, ...this.#filters, ...this.#relatedBut(undefined)],
      most: limit + 1 + offset,
      descending: byId.descending,
    });
  }

  /** A filter finds few records by itself: by the id, or by the row of one related record. */
  #isFoundByFilter(tests: readonly ColumnValues[]): boolean {
    const isOne = ({ relation }: RelatedFilter): boolean => relation.kind !== 'many_to_many';
    return tests.some(({ column }) => column === 'id') || [...this.#related.keys()].some(isOne);
  }

  #range(keyset: Keyset, { position, where = [], window }: KeysetRange): Sql {
    const after = position === undefined ? [] : [keyset.after(position)];
    const { rows, conditions } = this.#matching;
    return this.#selected(keyset, { rows, conditions: [...after, ...where, ...conditions] }, window);
  }

  #selected(keyset: Keyset, { rows, conditions }: RowSelection, window: Sql): Sql {
    const { capabilities } = this;
    const columns = [...keyset.columns, this.view.columns('t')];
    if (capabilities !== undefined) columns.push(capabilities.of('t'));
    return sql`
      SELECT ${columns.length === 1 ? columns[0]! : join(columns, ', ')}
        FROM ${rows.where(...conditions)}
       ORDER BY ${keyset.order} ${window}`;
  }
}

interface RowSelection {
  readonly rows: ScopedRows;
  readonly conditions: readonly Sql[];
}

interface KeysetRange {
  readonly position?: Position | undefined;
  readonly where?: readonly Sql[];
  readonly window: Sql;
}
