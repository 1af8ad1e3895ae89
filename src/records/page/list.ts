/**
 * A page of a collection: the records that match the filters and that the caller may list, in any order.
 * GET lists and POST queries ask for the same page; filters, policy and order are one statement.
 */

import type { Cells, Reader } from '../../database/contract.ts';
import type { Sql } from '../../sql.ts';
import { type AccessContext, callerIdOf, type Store } from '../access-context.ts';
import type { CapabilityColumns } from '../capabilities.ts';
import { type Expansion, toJson } from '../expand.ts';
import { type Counted, countOf, nothingCounted } from './count.ts';
import type { CursorScope, Position } from './cursor.ts';
import { type CursorRequest, type ListRequest, PagePlan } from './page-plan.ts';
import { QueryBudget } from './query-budget.ts';

export interface RecordPage extends Counted {
  /** The text of a JSON array. */
  readonly json: string;
  readonly hasMore: boolean;
  readonly nextCursor?: string;
}

/** Throws `invalid_cursor` and `query_too_expensive`. */
export async function list(store: Store, access: AccessContext, request: ListRequest): Promise<RecordPage> {
  const { limit, offset, count = 'none' } = request;
  const cursors = request.cursors && (await cursorsOf(store, access, request.cursors));

  const plan = new PagePlan(store, access, request);
  if (plan.isEmpty) return { json: '[]', hasMore: false, ...nothingCounted(count) };
  const report = store.hooks.onUnindexed;
  if (report !== undefined) for (const use of plan.unindexedUses()) report(use);

  // All statements share a reader: it waits once for the caller's writes, and decides once where to read.
  const reader = store.readerFor(access);
  const budget = request.isBudgeted ? new QueryBudget(store, reader) : undefined;
  const statement = plan.statement(cursors?.position);
  const [rows, counted] = await Promise.all([
    budget?.rows(statement) ?? readPage(reader, statement, { offset, tenant: plan.tenant }),
    count === 'none' ? undefined : countOf(count, { plan, reader, budget }),
  ]);

  const hasMore = rows.length > limit;
  const shown = hasMore ? rows.slice(0, limit) : rows;
  const texts = await textsOf(shown, plan, { store, q: budget ?? reader, access, tenant: plan.tenant, budget });
  const nextCursor = hasMore ? cursors?.write(plan.keyset.positionOf(shown.at(-1)!)) : undefined;
  return { json: arrayOf(texts), hasMore, ...(nextCursor === undefined ? {} : { nextCursor }), ...counted };
}

/** Throws `invalid_cursor`. */
async function cursorsOf(store: Store, access: AccessContext, { query, after }: CursorRequest) {
  const scope: CursorScope = { collection: access.collection.name, caller: callerIdOf(access), query };
  const cursors = await store.cursors();
  return {
    position: after === undefined ? undefined : cursors.read(after, scope),
    write: (position: Position) => cursors.write(position, scope),
  };
}

/** PostgreSQL reads and drops the rows before the page: this many take it some milliseconds. */
const DEEP_OFFSET = 5_000;

interface PlainRead {
  readonly offset: number;
  readonly tenant: string | undefined;
}

/** The index on the tenant and the id leads to the page where the tenant is the statement's only value. */
function readPage(reader: Reader, page: Sql, { offset, tenant }: PlainRead): Promise<readonly Cells[]> {
  if (offset >= DEEP_OFFSET) return reader.rows(page, { lane: 'slow' });
  const isOfTenantAlone = tenant !== undefined && page.params.every(({ value }) => value === tenant);
  return reader.rows(page, isOfTenantAlone ? { plan: 'generic' } : {});
}

async function textsOf(rows: readonly Cells[], plan: PagePlan, expansion: Expansion): Promise<readonly string[]> {
  const { collection, capabilities, expands, keyset, members, view } = plan;
  const from = keyset.width;
  const texts =
    expands.length === 0
      ? rows.map((cells) => view.json(cells, from))
      : await toJson(expansion, { collection: collection.name, rows, from, members, expands });
  return capabilities === undefined ? texts : texts.map((text, i) => withCan(text, capabilities, rows[i]!));
}

/** The capabilities are the last cells of a row. */
function withCan(text: string, capabilities: CapabilityColumns, cells: Cells): string {
  const can = capabilities.read(cells, cells.length - capabilities.width);
  return `${text.slice(0, -1)},"can":${JSON.stringify(can)}}`;
}

/** Appends to one string: `join` would copy every text, and the answer is copied once when it is sent. */
function arrayOf(texts: readonly string[]): string {
  let array = '[';
  for (const [i, text] of texts.entries()) array += i === 0 ? text : `,${text}`;
  return `${array}]`;
}
