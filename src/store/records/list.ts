/** Lists a page of a collection: filters and policy in one statement. */
import type { Relation } from '../../schema/model.ts';
import { join, raw, type Sql, sql } from '../../sql.ts';
import type { AccessContext, Store } from './access-context.ts';
import { conditionOf, type Filter, factsOf } from './exact-filters.ts';
import { expandsOf, toJson } from './expand.ts';
import { recordColumns } from './select.ts';
import { windowOf } from './window.ts';

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
  const permit = access.permit(access.collection.name, 'list').given(factsOf(access, request.filters));
  // The filters leave nothing that the caller may list.
  if (permit.verdict === 'deny') return { json: '[]', hasMore: false, ...(request.count ? { total: 0 } : {}) };
  // Sorted, so that equal sets of filters give one statement for any order of the request.
  const filters = request.filters.map((filter) => conditionOf(store, access, filter)).sort(byText);
  const conditions = permit.verdict === 'allow' ? filters : [...filters, permit.where('t')];
  const source = store.from(access.collection.name, raw('t'));
  const where = conditions.length === 0 ? raw('') : sql` WHERE ${join(conditions, ' AND ')}`;
  const columns = recordColumns(store, access, { collection: access.collection.name, alias: 't' });
  const q = store.readerFor(access);
  const page = sql`
    SELECT ${columns}
      FROM ${source}${where}
     ORDER BY t.id ${windowOf(request.limit + 1, request.offset)}`;
  const [rows, total] = await Promise.all([
    request.offset >= DEEP_OFFSET ? q.slowRows(page) : q.rows(page),
    request.count ? q.slowRows(sql`SELECT count(*) FROM ${source}${where}`) : undefined,
  ]);
  const hasMore = rows.length > request.limit;
  const shown = hasMore ? rows.slice(0, request.limit) : rows;
  const expands = expandsOf(request.relations);
  const records = await toJson(
    { store, q, access },
    { collection: access.collection.name, rows: shown, from: 0, expands },
  );
  return { json: `[${records.join(',')}]`, hasMore, ...(total ? { total: Number(total[0]![0]) } : {}) };
}

const byText = (a: Sql, b: Sql): number => (a.text < b.text ? -1 : a.text === b.text ? 0 : 1);

/** PostgreSQL reads and drops what comes before: this many rows take it some milliseconds. */
const DEEP_OFFSET = 5_000;
