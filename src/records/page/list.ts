/** Lists a page of a collection: filters and policy in one statement. */

import type { Cells, Reader } from '../../database/contract.ts';
import type { Permit } from '../../policy/access.ts';
import type { Relation } from '../../schema/model/model.ts';
import { join, raw, type Sql, sql } from '../../sql.ts';
import type { AccessContext, Reading, Store } from '../access-context.ts';
import { expandsOf, toJson } from '../expand.ts';
import { listedTenant } from '../scope.ts';
import { recordColumns } from '../select.ts';
import { conditionOf, type Filter, factsOf, type Links, linksOf, testsOf } from './exact-filters.ts';
import { fieldsOf, tellUnindexed } from './unindexed-use.ts';
import { anyWindowOf, windowOf } from './window.ts';

export interface ListRequest {
  readonly filters: readonly Filter[];
  readonly limit: number;
  readonly offset: number;
  readonly relations: readonly Relation[];
  /** Whether to count all that match. */
  readonly count: boolean;
}
export interface Page {
  /** The text of a JSON array. */
  readonly json: string;
  readonly hasMore: boolean;
  readonly total?: number;
}

export async function list(store: Store, access: AccessContext, request: ListRequest): Promise<Page> {
  const facts = factsOf(access, request.filters);
  const permit = access.permit(access.collection.name, 'list').given(facts);
  // The filters leave nothing that the caller may list.
  if (permit.verdict === 'deny') return { json: '[]', hasMore: false, ...(request.count ? { total: 0 } : {}) };
  tellUnindexed(store, access.collection, { filtered: fieldsOf(request.filters) });
  const reading = { store, q: store.readerFor(access), access, tenant: listedTenant(access, facts) };
  const { q } = reading;
  const statements = new ListStatements(reading, request, permit);
  const [rows, total] = await Promise.all([
    pageOf(reading, statements.page, request.offset),
    request.count ? q.rows(statements.count, { lane: 'slow' }) : undefined,
  ]);
  const hasMore = rows.length > request.limit;
  const shown = hasMore ? rows.slice(0, request.limit) : rows;
  const expands = expandsOf(request.relations);
  const texts = toJson(reading, { collection: access.collection.name, rows: shown, from: 0, expands });
  const records = texts instanceof Promise ? await texts : texts;
  return { json: arrayOf(records), hasMore, ...(total ? { total: Number(total[0]![0]) } : {}) };
}

/** Whose only value is the tenant, is led to its page by the index on the tenant and the id, whichever it is. */
function pageOf({ q, tenant }: Reading & { readonly q: Reader }, page: Sql, offset: number): Promise<readonly Cells[]> {
  if (offset >= DEEP_OFFSET) return q.rows(page, { lane: 'slow' });
  const isOfTenantAlone = tenant !== undefined && page.params.every(({ value }) => value === tenant);
  return q.rows(page, isOfTenantAlone ? { plan: 'generic' } : {});
}

/** Not by `join`, which would copy every text: the answer is copied once, when it is sent. */
function arrayOf(texts: readonly string[]): string {
  let array = '[';
  for (const [i, text] of texts.entries()) array += i === 0 ? text : `,${text}`;
  return `${array}]`;
}

class ListStatements {
  readonly #reading: Reading;
  readonly #request: ListRequest;
  /** What the filters leave of the list rule. */
  readonly #permit: Permit;
  readonly #from: Sql;
  readonly #filters: readonly Sql[];
  readonly #links: Links | undefined;

  constructor(reading: Reading, request: ListRequest, permit: Permit) {
    const { store, access } = reading;
    this.#reading = reading;
    this.#request = request;
    this.#permit = permit;
    this.#from = store.from(access.collection.name, raw('t'));
    this.#filters = conditionsOf(reading, request.filters);
    this.#links = linksOf(reading, request.filters);
  }

  get page(): Sql {
    const { limit, offset } = this.#request;
    const { store, access } = this.#reading;
    const first = this.#amongFirst();
    return sql`
    SELECT ${recordColumns(store, access, { collection: access.collection.name, alias: 't' })}
      FROM ${first === undefined ? this.#matching : sql`${this.#from} WHERE ${first}`}
     ORDER BY t.id ${first === undefined ? windowOf(limit + 1, offset) : anyWindowOf(limit + 1, offset)}`;
  }

  get count(): Sql {
    return sql`SELECT count(*) FROM ${this.#matching}`;
  }

  /** The records that match, from the links where a filter asks for some. */
  get #matching(): Sql {
    const permitted = this.#permit.verdict === 'allow' ? [] : [this.#permit.where('t')];
    const links = this.#links;
    if (links === undefined) return sql`${this.#from}${whereOf([...this.#filters, ...permitted])}`;
    const others = conditionsOf(
      this.#reading,
      this.#request.filters.filter((filter) => filter !== links.filter),
    );
    return sql`${links.from}${whereOf([links.condition, ...others, ...permitted])}`;
  }

  /** Where the branches of the list rule are the better way to the page. */
  #amongFirst(): Sql | undefined {
    const { filters, limit, offset } = this.#request;
    const { store, access, tenant } = this.#reading;
    const tests = testsOf(access, filters);
    if (tests === undefined) return undefined;
    const range = { from: this.#from, conditions: this.#filters, most: limit + 1 + offset, descending: false };
    const { collection } = access;
    const links = this.#links?.test;
    return store.pages.condition({ collection, permit: this.#permit, filters: tests, links, tenant, ...range });
  }
}

/** Sorted, so that equal sets of filters give one statement for any order of the request. */
const conditionsOf = (reading: Omit<Reading, 'q'>, filters: readonly Filter[]): readonly Sql[] =>
  filters.map((filter) => conditionOf(reading, filter)).sort(byText);

const whereOf = (conditions: readonly Sql[]): Sql =>
  conditions.length === 0 ? raw('') : sql` WHERE ${join(conditions, ' AND ')}`;

const byText = (a: Sql, b: Sql): number => (a.text < b.text ? -1 : a.text === b.text ? 0 : 1);

/** PostgreSQL reads and drops what comes before: this many rows take it some milliseconds. */
const DEEP_OFFSET = 5_000;
