/**
 * A page of a collection: the records that match the filters and that the caller may list, in any order.
 * GET lists and POST queries ask for the same page; filters, policy and order are one statement.
 */
import type { Cells, ReadOptions, Transaction } from '../../database/contract.ts';
import type { IsFew } from '../../policy/types.ts';
import type { Sql } from '../../sql.ts';
import { type AccessContext, lookingUpIn, type Store } from '../access-context.ts';
import type { CapabilityColumns } from '../capabilities.ts';
import { toJson } from '../expand.ts';
import { arrayOf, type JsonText, withMembers } from '../json-pieces.ts';
import { type ReadBudget, readWithinBudget } from '../read-budget.ts';
import { recordKeyOf } from '../record-key.ts';
import type { ShapeMemory } from '../shape-memory.ts';
import { type Counted, countRows, nothingCounted } from './count.ts';
import type { CursorScope, Position } from './cursor.ts';
import { type CursorReading, wholePosition } from './cursor-position.ts';
import { estimatedFilter } from './estimated-filter.ts';
import { isInOrderOfIndex } from './keyset.ts';
import {
  type AskedPage,
  askedPage,
  boundList,
  type CursorRequest,
  type ListRequest,
  PagePlan,
  pageShape,
} from './page-plan.ts';

export interface RecordPage extends Counted {
  /** The text of a JSON array. */
  readonly json: JsonText;
  readonly hasMore: boolean;
  readonly nextCursor?: string;
}

/** PostgreSQL expects the number of rows whose related ones a filter finds, and chooses the way. */
const isNoList: IsFew = () => false;

/** The parts of a service that pages need. */
export interface PageReading {
  readonly store: Store;
  readonly plans: ShapeMemory<PagePlan>;
}

/** Throws `invalid_cursor` and `query_too_expensive`. */
export async function list(
  { store, plans }: PageReading,
  caller: AccessContext,
  request: ListRequest,
): Promise<RecordPage> {
  const { limit, count = 'none', filter, sort = [], expands = [] } = request;
  const isInOrder = sort.length === 0 || isInOrderOfIndex(store, caller, sort);
  const { isFew, isNotMany } = store.pages;
  const finds = isInOrder ? ([isFew] as const) : ([isNotMany, isNoList] as const);
  const access = filter === undefined ? caller : lookingUpIn(caller, ...finds);
  const cursors = request.cursors && (await cursorsOf(store, access, request.cursors));

  // Request: the filters and the list rule, bound to the caller
  const bound = boundList(store, access, request);
  const { isOpen, permit, tenant, settled } = bound;
  // The filters leave nothing that the caller may list
  if (permit.verdict === 'deny') return { json: '[]', hasMore: false, ...nothingCounted(count) };
  const opaque = filter && (await estimatedFilter(store, access, bound));
  const endsEarly = settled === 0 ? isInOrder : isInOrderOfIndex(store, caller, sort.slice(settled));
  const position = await cursors?.position({ tenant, sort });
  const page = askedPage(store, access, { bound, position, endsEarly, opaque });

  // Shape: one plan serves all requests that differ by values alone
  const shape = pageShape(access.collection, page);
  const { plan, answers } = plans.planOf(shape, access, (placed) => new PagePlan(store, placed, page));
  const report = store.hooks.onUnindexed;
  if (report !== undefined) for (const use of plan.unindexed) report(use);

  // Statement: all share a reader, which waits once for the caller's writes, and decides once where to read
  const values = { page, answers };
  const reader = store.readerFor(access, tenant);
  const lane = request.isQuery ? 'query' : 'quick';
  const statement = plan.statement.fill(values);
  const source = plan.source?.fill(values);
  return await readWithinBudget({ schema: store.schema, reader, lane }, async (budget) => {
    const reading = readPage(budget, statement, { page, plan: store.genericPlan });
    const isCounted = count !== 'none' && source !== undefined;
    const [rows, counted] = isCounted
      ? await Promise.all([reading, countRows(count, { source, isOpen, reader, budget })])
      : [await reading];

    // Bytes
    const hasMore = rows.length > limit;
    const shown = hasMore ? rows.slice(0, limit) : rows;
    const { capabilities, from, view } = plan;
    const { name: collection } = access.collection;
    const records =
      expands.length === 0
        ? budget.fitting(shown.map((cells) => view.json(cells, from)))
        : await toJson(
            { store, q: budget, access, tenant, budget },
            { collection, rows: shown, from, members: request.members, expands },
          );
    const texts = capabilities ? records.map((text, i) => withCan(text, capabilities, shown[i]!)) : records;
    const nextCursor = hasMore ? cursors?.write(plan.keyset.positionOf(shown.at(-1)!)) : undefined;
    return { json: arrayOf(texts), hasMore, ...(nextCursor === undefined ? {} : { nextCursor }), ...counted };
  });
}

/** The ids of a page by the same statement, as a transaction sees it. */
export async function idsOnPage(
  { store, plans }: PageReading,
  tx: Transaction,
  access: AccessContext,
  request: ListRequest,
): Promise<readonly string[]> {
  const bound = boundList(store, access, request);
  if (bound.permit.verdict === 'deny') return [];
  const page = askedPage(store, access, { bound, position: undefined, endsEarly: true });
  const shape = pageShape(access.collection, page);
  const { plan, answers } = plans.planOf(shape, access, (placed) => new PagePlan(store, placed, page));
  const rows = await tx.rows(plan.statement.fill({ page, answers }));
  const { from, view } = plan;
  return rows
    .slice(0, request.limit)
    .map((cells) => String((JSON.parse(String(view.json(cells, from))) as { readonly id: string | number }).id));
}

/** Throws `invalid_cursor`. */
async function cursorsOf(store: Store, access: AccessContext, { query, after }: CursorRequest) {
  const scope: CursorScope = { collection: access.collection.name, caller: access.principal, query };
  const cursors = await store.cursors();
  const read = after === undefined ? undefined : cursors.read(after, scope);
  return {
    position: async (reading: Pick<CursorReading, 'tenant' | 'sort'>) =>
      read && wholePosition({ store, access, cursors, ...reading }, read),
    write: (position: Position) => cursors.write(position, scope, recordKeyOf(access.collection).ordered.length),
  };
}

/** PostgreSQL reads and drops the rows before the page: this many take it some milliseconds. */
const DEEP_OFFSET = 5_000;

interface ReadPage {
  readonly page: AskedPage;
  readonly plan: ReadOptions['plan'];
}

/** The index on the tenant and the id leads to the page where the tenant is the statement's only value. */
function readPage(budget: ReadBudget, statement: Sql, { page, plan }: ReadPage): Promise<readonly Cells[]> {
  const { request, tenant } = page;
  if (request.offset >= DEEP_OFFSET) return budget.rows(statement, { lane: 'slow' });
  const isOfTenantAlone = tenant !== undefined && statement.params.every(({ value }) => value === tenant);
  return budget.rows(statement, isOfTenantAlone ? { plan } : {});
}

/** The capabilities are the last cells of a row. */
function withCan(text: JsonText, capabilities: CapabilityColumns, cells: Cells): JsonText {
  const can = capabilities.read(cells, cells.length - capabilities.width);
  return withMembers(text, `"can":${JSON.stringify(can)}`);
}
