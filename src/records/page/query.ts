/**
 * A page of the records that a filter matches, in any order, found by keyset: filter and policy in
 * one statement.
 */

import type { Cells } from '../../database/contract.ts';
import type { Permit } from '../../policy/access.ts';
import type { AskedFilter, ComparedColumn, Filter } from '../../policy/filter.ts';
import type { Collection } from '../../schema/model/model.ts';
import { join, raw, type Sql, sql } from '../../sql.ts';
import { type AccessContext, callerIdOf, type Store } from '../access-context.ts';
import { CapabilityColumns } from '../capabilities.ts';
import { type Expand, toJson, withExpanded } from '../expand.ts';
import type { Members } from '../record-shape.ts';
import { listedTenant } from '../scope.ts';
import { recordColumns } from '../select.ts';
import { ObservedVisibility, visibilityOf } from '../visibility.ts';
import { type Counted, type CountKind, countOf, nothingCounted } from './count.ts';
import type { CursorScope } from './cursor.ts';
import { limitedOf } from './deadline.ts';
import type { Keyset, Position } from './keyset.ts';
import type { PagePlanner } from './page-planner.ts';
import { RowBudget } from './row-budget.ts';
import { keysetOf, type Sorting } from './sort.ts';
import { firstFieldOf, tellUnindexed } from './unindexed-use.ts';
import { anyWindowOf, mostOf, windowOf } from './window.ts';

export interface QueryRequest {
  readonly filter?: Filter | undefined;
  readonly sort: readonly Sorting[];
  readonly limit: number;
  readonly offset: number;
  readonly cursor?: string | undefined;
  /** Filter, params and sort in one spelling: equal for the queries that may share a cursor. */
  readonly text: string;
  readonly members?: Members | undefined;
  readonly expands: readonly Expand[];
  readonly count: CountKind;
  /** Whether each record says what the caller may do with it. */
  readonly capabilities: boolean;
}
export interface QueryPage extends Counted {
  /** The text of a JSON array. */
  readonly json: string;
  readonly nextCursor: string | undefined;
}

/** Throws `invalid_cursor` and `query_too_expensive`. */
export async function query(store: Store, access: AccessContext, request: QueryRequest): Promise<QueryPage> {
  const { collection } = access;
  const { limit, members, expands } = request;
  const scope: CursorScope = { collection: collection.name, caller: callerIdOf(access), query: request.text };
  const cursors = await store.cursors();
  const position = request.cursor === undefined ? undefined : cursors.read(request.cursor, scope);
  // One for all: it hears once of the caller's writes, and decides once where to read.
  const reader = store.readerFor(access);
  const q = limitedOf(store, reader);
  const asked = new QueryStatement(store, access, request);
  if (asked.isEmpty) return { json: '[]', nextCursor: undefined, ...nothingCounted(request.count) };
  tellUnindexed(store, collection, { filtered: asked.filtered, sorted: firstFieldOf(request.sort) });
  const [rows, counted] = await Promise.all([
    q.rows(asked.page(position)),
    countOf(q, { kind: request.count, source: asked.source, isOpen: asked.isOpen, planner: reader }),
  ]);
  const shown = rows.slice(0, limit);
  const { width } = asked.keyset;
  const reading = { store, q, access, tenant: asked.tenant, budget: new RowBudget() };
  const records = await toJson(reading, { collection: collection.name, rows: shown, from: width, members, expands });
  const last = rows.length > limit ? shown.at(-1) : undefined;
  const nextCursor = last && cursors.write(last.slice(0, width), scope);
  const { capabilities } = asked;
  const texts = capabilities === undefined ? records : records.map((text, i) => withCan(text, capabilities, shown[i]!));
  return { json: `[${texts.join(',')}]`, nextCursor, ...counted };
}

/** The capabilities are the last cells of a row. */
function withCan(text: string, capabilities: CapabilityColumns, cells: Cells): string {
  const can = capabilities.read(cells, cells.length - capabilities.width);
  return `${text.slice(0, -1)},"can":${JSON.stringify(can)}}`;
}

/** The statement of a page, and what it counts. */
class QueryStatement {
  readonly keyset: Keyset;
  /** The caller may list every record, and the filter depends on nothing that may be hidden. */
  readonly isOpen: boolean;
  /** The filter leaves nothing that the caller may list. */
  readonly isEmpty: boolean;
  /** `FROM … WHERE …` */
  readonly source: Sql;
  readonly capabilities: CapabilityColumns | undefined;
  /** Of the records, where they are divided by tenant. */
  readonly tenant: string | undefined;
  readonly #request: QueryRequest;
  readonly #columns: Sql;
  readonly #from: Sql;
  readonly #conditions: readonly Sql[];
  readonly #filter: readonly Sql[];
  readonly #asked: AskedFilter | undefined;
  /** What the filter leaves of the list rule. */
  readonly #permit: Permit;
  readonly #collection: Collection;
  readonly #pages: PagePlanner;

  constructor(store: Store, access: AccessContext, request: QueryRequest) {
    const { name } = access.collection;
    const visibility = new ObservedVisibility(visibilityOf(access));
    const permit = access.permit(name, 'list');
    const asked = request.filter?.asked(access, visibility);
    const filter = asked === undefined ? [] : [asked.where('t', store.inTime)];
    const isSeen = visibility.isOpen;
    const left = permit.given(asked?.facts ?? {});
    const row = { store, visibility, collection: name, alias: 't' };
    const members = withExpanded(request.members, request.expands);
    this.#request = request;
    this.#collection = access.collection;
    this.#pages = store.pages;
    this.#asked = asked;
    this.#permit = left;
    this.#filter = filter;
    this.keyset = keysetOf(request.sort, row);
    this.#from = store.from(name, raw('t'));
    this.capabilities = request.capabilities ? new CapabilityColumns(access) : undefined;
    this.tenant = listedTenant(access, asked?.facts ?? {});
    const columns = recordColumns(store, access, { collection: name, alias: 't', members });
    this.#columns = this.capabilities === undefined ? columns : join([columns, this.capabilities.of('t')], ', ');
    this.#conditions = [...this.#filter, ...(left.verdict === 'allow' ? [] : [left.where('t')])];
    this.isEmpty = left.verdict === 'deny';
    this.isOpen = permit.verdict === 'allow' && isSeen;
    this.source = sql`FROM ${this.#from}${whereOf(this.#conditions)}`;
  }

  get filtered(): readonly ComparedColumn[] | undefined {
    return this.#asked === undefined ? [] : this.#asked.unserved(this.#pages.indexedOf(this.#collection));
  }

  /** One row more than is shown. */
  page(position: Position | undefined): Sql {
    const { limit, offset } = this.#request;
    const { halves } = this.keyset;
    const first = this.#amongFirst(position);
    if (first !== undefined) return this.#rows(this.keyset, [first], anyWindowOf(limit + 1, offset));
    if (halves === undefined) return this.#range(this.keyset, { position, window: windowOf(limit + 1, offset) });
    const { column, present, absent } = halves;
    const without = sql`${column} IS NULL`;
    if (position !== undefined && position[0] === null)
      return this.#range(absent, { position, where: [without], window: windowOf(limit + 1, 0) });
    const most = windowOf(limit + 1 + offset, 0);
    // The rows without a value are looked at only where those with one do not fill the page.
    const isShort = sql`(SELECT count(*) FROM "present") < ${mostOf(limit + 1 + offset)}`;
    // As a SELECT by its first word: what only reads is asked again after a loss of the connection.
    return sql`
      SELECT *
        FROM (WITH "present" AS MATERIALIZED (${this.#range(present, { position, where: [sql`${column} IS NOT NULL`], window: most })})
              SELECT *
                FROM "present"
               UNION ALL
             (${this.#range(absent, { where: [without, isShort], window: most })})) AS "page"
       ORDER BY ${this.keyset.order} ${windowOf(limit + 1, offset)}`;
  }

  /** In the order of the ids, the branches of the list rule may find the page. */
  #amongFirst(position: Position | undefined): Sql | undefined {
    const { byId } = this.keyset;
    if (byId === undefined) return undefined;
    const { limit, offset } = this.#request;
    const after = position === undefined ? [] : [this.keyset.after(position)];
    const filters = this.#asked?.tests ?? [];
    const conditions = [...after, ...this.#filter];
    const range = { from: this.#from, conditions, most: limit + 1 + offset, descending: byId.descending };
    return this.#pages.condition({
      collection: this.#collection,
      permit: this.#permit,
      filters,
      tenant: this.tenant,
      ...range,
    });
  }

  #range(keyset: Keyset, { position, where = [], window }: Range): Sql {
    const after = position === undefined ? [] : [keyset.after(position)];
    return this.#rows(keyset, [...after, ...where, ...this.#conditions], window);
  }

  #rows(keyset: Keyset, conditions: readonly Sql[], window: Sql): Sql {
    return sql`
      SELECT ${keyset.columns}, ${this.#columns}
        FROM ${this.#from}${whereOf(conditions)}
       ORDER BY ${keyset.order} ${window}`;
  }
}

interface Range {
  readonly position?: Position | undefined;
  readonly where?: readonly Sql[];
  readonly window: Sql;
}

const whereOf = (conditions: readonly Sql[]): Sql =>
  conditions.length === 0 ? raw('') : sql` WHERE ${join(conditions, ' AND ')}`;
