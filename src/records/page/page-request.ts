/**
 * The request for a page, with all of its values: its filters and the caller's list rule are bound, and what the
 * values decide is settled. The rest is its shape, for which one plan serves all requests.
 */
import type { Permit } from '../../policy/access.ts';
import type { ColumnValues } from '../../policy/branch.ts';
import { type AskedFilter, equalityFilter, type Filter, type MemberValue } from '../../policy/filter.ts';
import type { Row } from '../../policy/types.ts';
import type { HasMany, HasOne, ManyToMany } from '../../schema/model/model.ts';
import { type AccessContext, type Store, visibilityOf } from '../access-context.ts';
import type { Expand } from '../expand.ts';
import type { Members } from '../record-shape.ts';
import { withExpanded } from '../record-view.ts';
import { listedTenant } from '../scope.ts';
import type { Answered } from '../shape-memory.ts';
import type { CountKind } from './count.ts';
import type { Position } from './cursor.ts';
import { areInOrderOfIds, type Sorting, textOfMost } from './keyset.ts';
import type { BranchChoice, PageQuestion } from './page-planner.ts';

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

/** A filter of a GET list. Each value already has the type of its field. */
export type ExactFilter = MemberValue | RelatedFilter;
/** Names a related record. */
export type RelatedFilter =
  | { readonly kind: 'has_one'; readonly relation: HasOne; readonly id: string }
  | { readonly kind: 'any'; readonly relation: HasMany | ManyToMany; readonly id: string };

export interface CursorRequest {
  /** Filter, params and sort in one spelling: equal for the queries that may share a cursor. */
  readonly query: string;
  /** The page begins after this cursor. */
  readonly after?: string | undefined;
}

export interface AskedPage {
  readonly request: ListRequest;
  readonly position: Position | undefined;
  /** Filters of the record's own members, and expressions over the record. */
  readonly filters: readonly AskedFilter[];
  readonly related: readonly RelatedFilter[];
  /** The part of the list rule that the filters leave open. */
  readonly permit: Permit;
  /** The caller may list every record, and the filters depend on nothing that may be hidden. */
  readonly isOpen: boolean;
  /** The tenant of the records, where they are divided by tenant. */
  readonly tenant: string | undefined;
  /** Undefined: the page is found by the plain condition. */
  readonly branches: BranchChoice | undefined;
}
/** The values that fill the forms of a plan. */
export interface PageValues extends Answered {
  readonly page: AskedPage;
}

/** Binds the filters and the list rule, and settles what their values decide. */
export function askedPage(
  store: Store,
  access: AccessContext,
  { request, position }: Pick<AskedPage, 'request' | 'position'>,
): AskedPage {
  const { collection } = access;
  const { exact = [], filter, limit, offset, sort = [] } = request;

  // The exact filters of the record's own members become one, `a = $0 and b = $1`
  const own = exact.filter((each): each is MemberValue => !isRelated(each));
  const related = own.length === exact.length ? NO_RELATED_FILTERS : exact.filter(isRelated);
  const place = { catalog: store.schema, collection: collection.name };
  const given = [...(own.length === 0 ? [] : [equalityFilter(own, place)]), ...(filter === undefined ? [] : [filter])];
  const visibility = visibilityOf(access);
  const filters = given.map((each) => each.asked(access, visibility));

  // The values that every matching record has decide parts of the list rule
  const facts: Row = Object.assign({}, ...filters.map((each) => each.facts));
  const listed = access.permit(collection.name, 'list');
  const permit = listed.given(facts);
  const tenant = listedTenant(access, facts);
  const isOpen = listed.verdict === 'allow' && related.length === 0 && filters.every((each) => each.isOpen);

  // In the order of the ids, the branches of the list rule may find the page sooner than the plain condition
  const tests = filters.flatMap((each) => each.tests);
  const links = related.length === 0 ? undefined : linkTestOf(related);
  const search = { collection, permit, filters: tests, links, tenant, most: limit + 1 + offset };
  const isPlain = !areInOrderOfIds(sort) || isFoundByFilter(tests, related);
  const branches = isPlain ? undefined : store.pages.choice(search);
  return { request, position, filters, related, permit, isOpen, tenant, branches };
}

const NO_RELATED_FILTERS: readonly RelatedFilter[] = [];

const isRelated = (filter: ExactFilter): filter is RelatedFilter => filter.kind === 'has_one' || filter.kind === 'any';

type LinkFilter = RelatedFilter & { readonly relation: ManyToMany };

/** The first filter whose links a statement may start from. */
export const linkFilterOf = (related: readonly RelatedFilter[]): LinkFilter | undefined =>
  related.find((filter): filter is LinkFilter => filter.relation.kind === 'many_to_many');

/** The planner estimates the links of a filter by this test. */
function linkTestOf(related: readonly RelatedFilter[]): PageQuestion['links'] {
  const filter = linkFilterOf(related);
  if (filter === undefined) return undefined;
  const { linkTable, targetColumn } = filter.relation;
  return { table: linkTable, column: targetColumn, values: [filter.id] };
}

/** A filter finds few records by itself: by the id, or by the row of one related record. */
function isFoundByFilter(tests: readonly ColumnValues[], related: readonly RelatedFilter[]): boolean {
  const isOne = ({ relation }: RelatedFilter): boolean => relation.kind !== 'many_to_many';
  return tests.some(({ column }) => column === 'id') || related.some(isOne);
}

/**
 * All that decides the plan of the page, besides the answers of the caller's other rules. Its parts are names of the
 * schema and numbers of compiled rules and filters, so two shapes never have one spelling.
 */
export function shapeOf({ name }: AccessContext['collection'], page: AskedPage): string {
  const { request, position, filters, related, permit, tenant, branches } = page;
  const { members, expands = [], sort = [], limit, offset } = request;
  const order = sort.map(
    ({ path: { steps, field }, descending }) =>
      `${steps.map(({ relation }) => `${relation.name}.`).join('')}${field?.name ?? 'id'}${descending ? '-' : ''}`,
  );
  const after = position?.map((cell) => (cell === null ? 'n' : 'v')).join('');
  const selected = withExpanded(members, expands);
  const window =
    branches === undefined
      ? `${textOfMost(limit + 1)} ${offset > 0} ${textOfMost(limit + 1 + offset)}`
      : `${branches.ways} ${branches.length}`;
  return [
    name,
    permit.shape,
    filters.map(({ shape }) => shape),
    related.map(({ relation }) => relation.name),
    order,
    after,
    window,
    selected === undefined ? '*' : [...selected].sort(),
    tenant !== undefined,
    request.capabilities ?? false,
    request.count ?? 'none',
    request.isBudgeted ?? false,
  ].join('|');
}
