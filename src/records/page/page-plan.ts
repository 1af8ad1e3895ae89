/**
 * A page: request → shape → plan. The request is bound with all of its values, and what these decide is settled; the
 * rest is its shape. The plan of a shape is made of the filters, of what they leave of the list rule, and of the
 * order. It serves all requests of the shape, so its statements are forms, which the values of each request fill.
 */
import type { Permit } from '../../policy/access.ts';
import type { Values } from '../../policy/emit/value-places.ts';
import {
  type AskedFilter,
  equalityFilter,
  type Filter,
  type MemberValue,
  type PlacedFilter,
} from '../../policy/filters/filter.ts';
import type { Row } from '../../policy/types.ts';
import type { Visibility } from '../../policy/visibility.ts';
import { join, Place, plannedFor, raw, type Sql, SqlForm, sql, tested, typedLiteral } from '../../sql.ts';
import {
  type AccessContext,
  accessIn,
  lookingUpIn,
  type Store,
  type UnindexedUse,
  visibilityOf,
} from '../access-context.ts';
import { CapabilityColumns } from '../capabilities.ts';
import type { Expand } from '../expand.ts';
import { recordKeyOf } from '../record-key.ts';
import type { Members } from '../record-shape.ts';
import { RecordView, withExpanded } from '../record-view.ts';
import { listedTenant, type ScopedRows, scopeOf, tenantFact } from '../scope.ts';
import type { AnsweredPermits } from '../shape-memory.ts';
import type { CountKind } from './count.ts';
import type { Position } from './cursor.ts';
import { afterWalks, conditionOf, type WalkedRows, walkedIds } from './first-ids.ts';
import {
  anyWindowOf,
  centreOf,
  columnOrderOf,
  isById,
  type Keyset,
  keysetOf,
  mostOf,
  type PlacedRows,
  type Sorting,
  settledSorts,
  textOfMost,
  windowOf,
} from './keyset.ts';
import {
  type GatheredWay,
  NO_CHOICE,
  type PageChoice,
  type PageWay,
  type RangeWay,
  type Walking,
} from './page-planner.ts';
import { type FirstValues, type OpaqueFilter, type PageQuestion, relatedRowsOf } from './page-question.ts';
import { maskOf } from './path-column.ts';
import {
  isTargetReadable,
  linkedRows,
  linkFilterOf,
  linkFilterTo,
  type RelatedFilter,
  relatedCondition,
} from './related-filters.ts';
import { unindexedUses } from './unindexed-uses.ts';

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
  /** The filter and the sort are the caller's own, so that the page may turn out slow. */
  readonly isQuery?: boolean;
}

/** A filter of a GET list. Each value already has the type of its field. */
export type ExactFilter = MemberValue | RelatedFilter;

export interface CursorRequest {
  /** Filter, params and sort in one spelling: equal for the queries that may share a cursor. */
  readonly query: string;
  /** The page begins after this cursor. */
  readonly after?: string | undefined;
}

/** The filters and the list rule of a request, bound to its caller. */
export interface BoundList {
  readonly request: ListRequest;
  /** Filters of the record's own members, and expressions over the record. */
  readonly filters: readonly AskedFilter[];
  readonly related: readonly RelatedFilter[];
  /** The part of the list rule that the filters leave open. */
  readonly permit: Permit;
  /** The caller may list every record, and the filters depend on nothing that may be hidden. */
  readonly isOpen: boolean;
  /** The tenant of the records, where they are divided by tenant. */
  readonly tenant: string | undefined;
  /** The first sorts of which all rows have one value. */
  readonly settled: number;
}
export interface AskedPage extends PageChoice, BoundList {
  readonly position: Position | undefined;
  /** The page ends with its last row, while other orders read all rows that match. */
  readonly endsEarly: boolean;
  /** The lists of keys of the filters. */
  readonly lists: OpaqueFilter['lists'];
  /** The permit, as the statement of the page prints it. */
  readonly rule: Permit;
  /** The same for statements that read all rows, if there are some. */
  readonly whole: Permit | undefined;
}
/** The values that fill the forms of a plan. */
export interface PageValues extends AnsweredPermits {
  readonly page: AskedPage;
}

/** @param access decides how the rules of the filters look up related rows */
export function boundList(store: Store, access: AccessContext, request: ListRequest): BoundList {
  const { collection } = access;
  const { exact = [], filter } = request;

  // The exact filters of the record's own members become one, `a = $0 and b = $1`
  const own = exact.filter((each): each is MemberValue => !isRelated(each));
  const named = own.length === exact.length ? NO_RELATED_FILTERS : exact.filter(isRelated);
  const place = { catalog: store.schema, collection: collection.name };
  const given = [...(own.length === 0 ? [] : [equalityFilter(own, place)]), ...(filter === undefined ? [] : [filter])];
  const asked = given.map((each) => each.asked(access, visibilityOf(access)));

  // A link that the filter of a query requires is the exact filter of its relation
  const link = filter && asked.at(-1)!.link;
  const filters = link === undefined ? asked : [...asked.slice(0, -1), ...(link.rest === undefined ? [] : [link.rest])];
  const related = link === undefined ? named : [...named, linkFilterTo(collection, link)];

  // The values that every matching record has decide parts of the list rule
  const facts: Row = Object.assign({}, ...filters.map((each) => each.facts));
  const listed = access.permit(collection.name, 'list');
  const tenant = listedTenant(access, facts);
  const permit = listed.given(store.isCluster ? { ...facts, ...tenantFact(access, tenant) } : facts);
  const isOpen = listed.verdict === 'allow' && named.length === 0 && asked.every((each) => each.isOpen);
  // A member that some records hide has no value there, so that it orders them
  const isHidden = (member: string): boolean =>
    maskOf({ visibility: visibilityOf(access) }, collection.name, member) !== undefined;
  const settled = request.sort === undefined ? 0 : settledSorts(request.sort, { ...facts, ...permit.facts }, isHidden);
  return { request, filters, related, permit, isOpen, tenant, settled };
}

interface AskedList extends Pick<AskedPage, 'position' | 'endsEarly'> {
  readonly bound: BoundList;
  readonly opaque?: OpaqueFilter | undefined;
}

/** Values may find the page sooner than the plain condition, which reads all rows if no index has its order. */
export function askedPage(
  store: Store,
  { collection }: AccessContext,
  { bound, position, endsEarly, opaque }: AskedList,
): AskedPage {
  const { request, filters, related, permit, tenant, settled } = bound;
  const { filter, limit, offset, sort: asked = [] } = request;
  const sort = asked.slice(settled);
  const tests = filters.flatMap((each) => each.tests);
  const links = related.length === 0 ? undefined : linkTestOf(related);
  const [first] = sort;
  const byId = first === undefined || isById(first);
  const ordering = byId || !endsEarly ? undefined : columnOrderOf(first, sort);
  // A filter or the rule may leave none of the first values
  const isBound =
    ordering !== undefined &&
    (filters.some((each) => each.isBoundOn(ordering.column)) || permit.bounds(ordering.column).length > 0);
  const isFirstPage = position === undefined && !isBound;
  const order = ordering && { ...ordering, isFirstPage, after: position?.[settled] ?? undefined };
  const ofAll = (): Permit => {
    const lookedUp = permit.lookingUp(store.pages.isNotMany);
    const isSooner = store.pages.looksUpSooner(collection, lookedUp.lookUps);
    return isSooner ? lookedUp : permit.lookingUp(store.pages.isNotMany, store.pages.isHashed);
  };
  const rule = endsEarly ? permit.lookingUp(store.pages.isFew) : ofAll();
  const most = limit + 1 + offset;
  const { lookUps } = rule;
  const unlisted = lookUps.length === 0 ? undefined : permit.lookingUp(store.pages.isListed).lookUps;
  const { relatedKeys } = rule;
  const known = { collection, permit: rule, lookUps, unlisted, relatedKeys, filters: tests, links, opaque, tenant };
  // The id, or the row of one related record, leads to few records by itself
  const isFound = tests.some(({ isId }) => isId) || related.some(({ relation: { kind } }) => kind !== 'many_to_many');
  const choice = isFound ? NO_CHOICE : store.pages.choice({ ...known, most, isById: byId, order });
  // A plan for all values would expect the related rows of an average record
  const isOpaque = filter !== undefined && filters.at(-1)?.opacity !== undefined;
  const isGathered = choice.way?.kind === 'gathered';
  const hasLongWalk = choice.way?.kind === 'branches' && choice.way.longWalk > 0;
  const isPlannedFor = choice.isPlannedFor || isOpaque || !endsEarly || (isGathered && permit.consultsOthers);
  const isWhole = (request.count ?? 'none') !== 'none' || isGathered || hasLongWalk;
  return {
    ...bound,
    position,
    endsEarly,
    lists: opaque?.lists,
    rule,
    whole: isWhole ? ofAll() : undefined,
    ...choice,
    isPlannedFor,
  };
}

const NO_RELATED_FILTERS: readonly RelatedFilter[] = [];

const isRelated = (filter: ExactFilter): filter is RelatedFilter => filter.kind === 'has_one' || filter.kind === 'any';

/** The planner estimates the links of a filter by this test. */
function linkTestOf(related: readonly RelatedFilter[]): PageQuestion['links'] {
  const filter = linkFilterOf(related);
  if (filter === undefined) return undefined;
  const { linkTable, targetColumn } = filter.relation;
  return { table: linkTable, column: targetColumn, values: [filter.id] };
}

/**
 * All that decides the plan of the page, besides the answers of the caller's other rules. Its parts are names of the
 * schema and numbers of compiled rules and filters, so two shapes never have one spelling.
 */
export function pageShape({ name }: AccessContext['collection'], page: AskedPage): string {
  const { request, position, endsEarly, filters, related, rule, whole, tenant, settled, way, isPlannedFor, lists } =
    page;
  const { members, expands = [], sort = [], limit, offset } = request;
  const order = sort.map(
    ({ path: { steps, field, isFolded, from }, descending }) =>
      `${steps.map(({ relation }) => `${relation.name}.`).join('')}${field?.name ?? 'id'}${isFolded ? ':' : ''}${from ? '@' : ''}${descending ? '-' : ''}`,
  );
  const after = position?.map((cell) => (cell === null ? 'n' : 'v')).join('');
  const window =
    way?.kind === 'branches'
      ? way.text
      : `${textOfMost(limit + 1)} ${offset > 0} ${textOfMost(limit + 1 + offset)} ${way?.text}`;
  const count = request.count ?? 'none';
  return [
    name,
    rule.shape,
    filters.map(({ shape }) => shape),
    related.map(({ relation }) => relation.name),
    order,
    settled,
    after,
    window,
    members === undefined ? '*' : [...members, ...expands.map(({ relation }) => relation.name)].sort(),
    tenant !== undefined,
    endsEarly,
    isPlannedFor,
    lists,
    request.capabilities ?? false,
    count,
    whole?.shape,
    request.isQuery ?? false,
  ].join('|');
}

// ---------------------------------------------------------------- the plan of a shape

export class PagePlan {
  readonly keyset: Keyset;
  readonly view: RecordView;
  /** The place of the record's first cell. */
  readonly from: number;
  readonly capabilities: CapabilityColumns | undefined;
  /** Selects one row more than the page shows. */
  readonly statement: SqlForm<PageValues>;
  /** `FROM … WHERE …` of all records that match, if they are counted. */
  readonly source: SqlForm<PageValues> | undefined;
  /** The characters of both. */
  readonly text: number;
  readonly unindexed: readonly UnindexedUse[];

  /** @param page of the shape, of whose values none is used */
  constructor(store: Store, access: AccessContext, page: AskedPage) {
    const statements = new PageStatements(store, access, page);
    this.keyset = statements.keyset;
    this.view = statements.view;
    this.from = statements.keyset.columns.length;
    this.capabilities = statements.capabilities;
    this.statement = new SqlForm(page.isPlannedFor ? plannedFor(statements.page) : statements.page);
    this.source = (page.request.count ?? 'none') === 'none' ? undefined : new SqlForm(statements.source);
    this.text = this.statement.text.length + (this.source?.text.length ?? 0);
    this.unindexed = unindexedUses(store, access.collection, page);
  }
}

const valuesOfFilter =
  (i: number) =>
  ({ page }: PageValues): Values =>
    page.filters[i]!.values;

const centreValue =
  (i: number, name: 'lat' | 'lng' | 'cosine') =>
  ({ page }: PageValues): number =>
    centreOf(page.request.sort![i]!)[name];

/** Makes the statements of a shape; its permits, filters and numbers have places instead of values. */
class PageStatements {
  readonly keyset: Keyset;
  readonly view: RecordView;
  readonly capabilities: CapabilityColumns | undefined;
  readonly #store: Store;
  readonly #access: AccessContext;
  readonly #page: AskedPage;
  readonly #rule: Permit;
  readonly #tenant: Place<PageValues> | undefined;
  readonly #position: readonly unknown[] | undefined;
  readonly #rows: ScopedRows;
  readonly #filters: readonly Sql[];
  /** The filters, with the list of keys of the last one, or with the test that a row has one of these keys. */
  readonly #byKeys: (part: 'list' | 'test') => readonly Sql[];
  /** The filters, of few rows that an order has found. */
  readonly #tests: readonly Sql[];
  /** The same of many rows, beside which PostgreSQL may keep related tables in memory. */
  readonly #testsOfMany: () => readonly Sql[];
  /** Conditions of the filters that name a related record, in the order of these. */
  readonly #related: readonly Sql[];
  /** Conditions without a column of the record, on which the rest of the statement waits. */
  readonly #first: readonly Sql[];
  readonly #visibility: Visibility;
  /** The records that match besides the list rule, from the links where a filter requires some. */
  readonly #matching: RowSelection;

  constructor(store: Store, caller: AccessContext, page: AskedPage) {
    const { collection } = caller;
    const { request, filters, related, position, settled } = page;
    const { sort = [] } = request;
    // Short lists of keys take an access of their own, which exact filters are not worth
    const isShort = page.endsEarly && request.filter === undefined;
    const tenant = page.tenant === undefined ? undefined : new Place(({ page: { tenant } }: PageValues) => tenant);
    const access = accessIn(caller, tenant);
    const visibility = visibilityOf(isShort ? lookingUpIn(access) : access);
    this.#store = store;
    this.#access = access;
    this.#visibility = visibility;
    this.#page = page;
    this.#tenant = tenant;
    this.#rule = page.rule.placed(({ page: { rule } }: PageValues) => rule).within(tenant);
    this.#position = position?.map((cell, i) => (cell === null ? null : new Place(positionCell(i))));
    const inTime = request.isQuery ? store.inTime : undefined;
    const range = page.way?.kind === 'filter range' ? page.way.column : undefined;
    const isGathered = page.way?.kind === 'gathered';
    const ofWhole = (): Visibility => visibilityOf(lookingUpIn(access, undefined, store.pages.isHashed));
    const ofAll = isGathered ? ofWhole() : visibility;
    const printed = (how: Partial<PlacedFilter<PageValues>>): readonly Sql[] =>
      filters.map((filter, i) => {
        return filter.placed('t', { visibility, inTime, valuesOf: valuesOfFilter(i), range, ...how });
      });
    const relatedRows = relatedRowsOf(page.lists);
    this.#filters = printed({ visibility: ofAll, relatedRows });
    const isAlike = page.way === undefined || page.lists === 'short';
    this.#tests = isAlike ? this.#filters : printed({ relatedRows: 'looked up' });
    const ofMany = page.lists === 'short' ? undefined : 'as planned';
    this.#testsOfMany = () => printed({ visibility: ofWhole(), relatedRows: ofMany });
    this.#byKeys = (byKeys) => printed({ visibility: ofAll, relatedRows, byKeys });
    const scope = scopeOf({ store, tenant });
    this.#rows = scope.from(collection.name, 't');
    const row = { scope, visibility, collection: collection.name, alias: 't' };
    this.keyset = keysetOf(sort, row, settled, (i) => ({
      lat: new Place(centreValue(i, 'lat')),
      lng: new Place(centreValue(i, 'lng')),
      cosine: new Place(centreValue(i, 'cosine')),
    }));
    const members = withExpanded(request.members, request.expands ?? []);
    this.view = new RecordView(store, access, { collection: collection.name, members, tenant });
    this.capabilities = request.capabilities ? new CapabilityColumns(access) : undefined;
    const listed = { access, scope, rows: this.#rows };
    const ids = related.map((_, i) => new Place(({ page: asked }: PageValues) => asked.related[i]!.id));
    this.#related = related.map((filter, i) => relatedCondition(listed, filter, ids[i]));
    const target = ({ relation }: RelatedFilter, i: number): readonly Sql[] =>
      relation.kind === 'many_to_many' ? [isTargetReadable(listed, { relation, id: ids[i] })] : [];
    const firsts = (filter: AskedFilter, i: number): readonly Sql[] =>
      filter.placedFirsts('t', { visibility, valuesOf: valuesOfFilter(i) });
    this.#first = page.way === undefined ? [] : [...related.flatMap(target), ...filters.flatMap(firsts)];
    const link = linkFilterOf(related);
    const from = link === undefined ? -1 : related.indexOf(link);
    const links = link && linkedRows(listed, { relation: link.relation, id: ids[from] });
    const others = links === undefined ? this.#related : this.#related.toSpliced(from, 1);
    const required = links === undefined ? [] : [links.condition];
    const conditions = [...required, ...this.#filters, ...sortedConditions(others)];
    this.#matching = { rows: links?.rows ?? this.#rows, conditions };
  }

  /** The list rule, for statements that read all rows. */
  get #ruleOfAll(): Permit {
    return this.#page.whole!.placed(({ page: { whole } }: PageValues) => whole!).within(this.#tenant);
  }

  get #whole(): readonly Sql[] {
    return conditionOf(this.#ruleOfAll);
  }

  get source(): Sql {
    const { rows, conditions } = this.#matching;
    return sql`FROM ${rows.where(...conditions, ...this.#whole)}`;
  }

  get page(): Sql {
    const { way } = this.#page;
    const most = this.#placed(({ request: { limit } }) => limit + 1);
    const offset = this.#placed(({ request }) => request.offset);
    if (way?.kind === 'branches') {
      const conditions = [...this.#tests, ...sortedConditions(this.#related)];
      const { collection } = this.#access;
      const after = this.#after(this.keyset);
      const id = recordKeyOf(collection).of('t');
      const source = { collection, id, rows: this.#rows, after, conditions, descending: this.keyset.byId!.descending };
      const walked = this.#walkedIn(way.within, this.keyset);
      const walks = this.#walksOf(way).map((walk) => ({ ...walk, ...walked }));
      const first = this.#store.pages.condition(way, this.#rule, { ...source, walks });
      return this.#selected(this.keyset, { rows: this.#rows, conditions: [first] }, anyWindowOf(most, offset));
    }
    if (way !== undefined) return this.#foundBy(way, windowOf(most, offset));
    const { halves } = this.keyset;
    if (halves === undefined) return this.#range(this.keyset, this.#after(this.keyset), windowOf(most, offset));
    const { column, at, present, absent } = halves;
    const without = sql`${column} IS NULL`;
    const position = this.#position;
    const none = { rows: 0, place: 0 };
    if (position !== undefined && position[at] === null)
      return this.#range(absent, [...this.#after(absent), without], windowOf(most, none));
    const upTo = this.#placed(({ request }) => request.limit + 1 + request.offset);
    const half = windowOf(upTo, none);
    const withValue = [...this.#after(present), sql`${column} IS NOT NULL`];
    // The statement reads rows without a value only if the rows with a value do not fill the page.
    const isShort = sql`(SELECT count(*) FROM "present") < ${mostOf(upTo.rows, upTo.place)}`;
    // A SELECT by its first word: after a loss of the connection, only a SELECT is sent again.
    return sql`
      SELECT *
        FROM (WITH "present" AS MATERIALIZED (${this.#range(present, withValue, half)})
              SELECT *
                FROM "present"
               UNION ALL
             (${this.#range(absent, [without, isShort], half)})) AS "page"
       ORDER BY ${this.keyset.order} ${windowOf(most, offset)}`;
  }

  #foundBy(way: Exclude<PageWay, { kind: 'branches' }>, window: Sql): Sql {
    const { keyset } = this;
    const after = this.#after(keyset);
    const others = sortedConditions(this.#related);
    switch (way.kind) {
      case 'rule range': {
        const [branch] = this.#store.pages.chosenBranches(way.ways, this.#rule, this.#access.collection);
        const rest = [...(branch!.where === undefined ? [] : [branch!.where]), ...this.#tests, ...others];
        const conditions = [branch!.range!, ...after, ...rest.map(tested)];
        return this.#selected(keyset.within(branch!.column), { rows: this.#rows, conditions }, window);
      }
      case 'filter range': {
        const conditions = [...after, ...this.#tests, ...[...others, ...conditionOf(this.#rule)].map(tested)];
        return this.#selected(keyset.within(way.column), { rows: this.#rows, conditions }, window);
      }
      case 'gathered':
        return this.#gathered(way, window);
    }
  }

  #gathered(way: GatheredWay, window: Sql): Sql {
    const { keyset } = this;
    const others = sortedConditions(this.#related);
    const matching = this.#gatheredBy(way, others);
    const id = recordKeyOf(this.#access.collection).of('t');
    const { halves } = keyset;
    // The rows without a value are one range, and the last of the order.
    const isAtEnd = halves !== undefined && this.#position?.[halves.at] === null;
    if ((way.walk === 0 && way.longWalk === 0 && way.keys === 0) || isAtEnd)
      return this.#selected(keyset, matching(this.#filters), window);
    const upTo = this.#placed(({ request }) => request.limit + 1 + request.offset);
    const most = mostOf(upTo.rows, upTo.place);
    const ids = ({ rows, conditions }: RowSelection): Sql => sql`(
       SELECT ${join([sql`${id} AS id`, ...keyset.columns], ', ')}
         FROM ${rows.where(...conditions)}
        ORDER BY ${keyset.order}
        LIMIT ${most})`;
    const all = ids(matching(this.#filters));
    const isPresent = halves === undefined ? [] : [sql`${halves.column} IS NOT NULL`];
    const walked = halves?.present ?? keyset;
    const within = [...isPresent, ...this.#bounds];
    const { first } = way;
    const { columns } = walked;
    const walkOf = (tests: WalkTests): WalkedRows => {
      const passed = this.#walkedIn(way.within, walked, within);
      const from = first === undefined ? passed.from : this.#firstRows(first, walked, tests.rows, within);
      const further = first === undefined ? FURTHER : undefined;
      return { columns, most, further, ...tests, ...passed, from };
    };
    const walks = this.#walksOf(way).map(walkOf);
    const gathered = walks.length === 0 ? all : afterWalks(walks, [all]);
    // Nothing is known of the keys: only a short walk comes before them, and the long one where they are many.
    const short = walks[0] && { ...walks[0], rows: Math.min(walks[0].rows, SHORT_WALK) };
    const byKeys = ({ list, found }: KeyedRows): Sql =>
      sql`(${walkedIds(short, [ids(found), gathered], { list, most: way.keys })})`;
    const among = sql`${id} = ANY(ARRAY${way.keys === 0 ? gathered : byKeys(this.#keyed(way, matching, others))})`;
    return this.#selected(keyset, { rows: this.#rows, conditions: [among] }, window);
  }

  /** The rows of the filters that are found first, with the conditions that are tested on them. */
  #gatheredBy({ by, isOrdered }: GatheredWay, others: readonly Sql[]): FindsRows {
    const after = this.#after(this.keyset);
    if (isOrdered) {
      const { columns, order } = this.keyset;
      return (filters) => {
        // The index of the order would read all rows for the few that match.
        const found = this.#fenced([...filters, ...after, ...others]);
        const fenced = sql`(SELECT ${join([raw('t.*'), ...columns], ', ')} FROM ${found} ORDER BY ${order} OFFSET 0) AS t`;
        return { rows: selectedFrom(fenced), conditions: conditionOf(this.#rule) };
      };
    }
    const rest = [...after, ...this.#whole];
    // A rule of the row alone is tested before the filters look up other rows, and chooses no index.
    const [first, then] =
      by === 'all'
        ? [[...rest, ...others], []]
        : this.#page.whole!.consultsOthers
          ? [[], [...rest, ...others]]
          : [rest.map(tested), others];
    return (filters) => ({
      rows: selectedFrom(this.#fenced([...filters, ...first])),
      conditions: then,
    });
  }

  /** Keys that are found first, and their rows. */
  #keyed({ by }: GatheredWay, matching: FindsRows, others: readonly Sql[]): KeyedRows {
    if (by === 'keys') return { list: this.#byKeys('list').at(-1)!, found: matching(this.#byKeys('test')) };
    const rule = this.#ruleOfAll;
    const conditions = [rule.byKeys('t', 'test'), ...this.#tests, ...this.#after(this.keyset), ...others];
    return { list: rule.byKeys('t', 'list'), found: { rows: selectedFrom(this.#fenced(conditions)), conditions: [] } };
  }

  /** The rows that meet the conditions, which alone choose how PostgreSQL finds them. */
  #fenced(conditions: readonly Sql[]): Sql {
    return sql`(SELECT t.* FROM ${this.#rows.where(...conditions)} OFFSET 0) AS t`;
  }

  /** The walks before another way. */
  #walksOf({ walk, tested: most, longWalk }: Walking): readonly WalkTests[] {
    const others = sortedConditions(this.#related);
    const first = { rows: walk, tested: most, conditions: [...this.#tests, ...others], rule: this.#rule };
    const short = walk === 0 ? [] : [first];
    if (longWalk === 0) return short;
    // PostgreSQL would expect that a join finds enough soon, and look up what it may keep.
    const conditions = [...this.#testsOfMany(), ...others, ...this.#whole].map(tested);
    return [...short, { rows: longWalk, tested: undefined, conditions, rule: undefined }];
  }

  /** The rows of a walk, in the whole order or in the range of one value. */
  #walkedIn(within: RangeWay | undefined, keyset: Keyset, conditions: readonly Sql[] = []) {
    const after = this.#after(keyset);
    const { column: key } = recordKeyOf(this.#access.collection);
    const isRange = within !== undefined;
    if (!isRange) return { from: this.#rows.where(...after, ...conditions), order: keyset.order, isRange, key };
    const { column, range } = this.#rangeIn(within);
    return { from: this.#rows.where(range, ...after, ...conditions), order: keyset.within(column).order, isRange, key };
  }

  /** The first rows of the order, up to the last value that statistics expect there, or more: all others come after them. */
  #firstRows({ isAlone }: FirstValues, keyset: Keyset, most: number, conditions: readonly Sql[]): Sql {
    if (!isAlone) return this.#rows.where(keyset.upTo(LAST_VALUE), ...conditions);
    const parts = keyset.upToAlone(LAST_VALUE).map(
      ({ condition, order }) => sql`
      (SELECT t.*
         FROM ${this.#rows.where(condition, ...conditions)}
        ORDER BY ${order}
        LIMIT ${typedLiteral('int8', most)})`,
    );
    return sql`(${join(parts, ' UNION ALL ')}) AS t`;
  }

  #rangeIn(within: RangeWay): { readonly column: string; readonly range: Sql } {
    if (within.kind === 'rule range') {
      const [branch] = this.#store.pages.chosenBranches(within.ways, this.#rule, this.#access.collection);
      return { column: branch!.column, range: branch!.range! };
    }
    const { column } = within;
    const place = this.#page.filters.findIndex((filter) => filter.hasRange(column));
    return { column, range: this.#page.filters[place]!.placedRange('t', column, valuesOfFilter(place)) };
  }

  /** Parts of the filters and of the rule between whose values the order of the page begins and ends. */
  get #bounds(): readonly Sql[] {
    const { filters, request, settled } = this.#page;
    const first = request.sort?.[settled];
    const column = first === undefined || isById(first) ? undefined : first.path.field?.column;
    if (column === undefined) return [];
    const visibility = this.#visibility;
    const ofFilters = filters.flatMap((each, i) =>
      each.placedBounds('t', column, { visibility, valuesOf: valuesOfFilter(i) }),
    );
    return [...ofFilters, ...this.#rule.bounds(column).map((each) => each.where('t'))];
  }

  #placed(count: (page: AskedPage) => number): PlacedRows {
    return { rows: count(this.#page), place: new Place(({ page }: PageValues) => count(page)) };
  }

  #after(keyset: Keyset): readonly Sql[] {
    return this.#position === undefined ? [] : [keyset.after(this.#position)];
  }

  #range(keyset: Keyset, where: readonly Sql[], window: Sql): Sql {
    const { rows, conditions } = this.#matching;
    const all = [...where, ...conditions, ...conditionOf(this.#rule)];
    return this.#selected(keyset, { rows, conditions: all }, window);
  }

  #selected(keyset: Keyset, { rows, conditions }: RowSelection, window: Sql): Sql {
    const { capabilities } = this;
    const columns = [...keyset.columns, this.view.columns('t')];
    if (capabilities !== undefined) columns.push(capabilities.of('t'));
    return sql`
      SELECT ${columns.length === 1 ? columns[0]! : join(columns, ', ')}
        FROM ${rows.where(...this.#first, ...conditions)}
       ORDER BY ${keyset.order} ${window}`;
  }
}

const LAST_VALUE = new Place(({ page: { way } }: PageValues) =>
  way?.kind === 'gathered' ? way.first?.upTo : undefined,
);

/** A walk that has nearly filled a page goes on for so many times its rows: all that match are expected to cost twice as much as it. */
const FURTHER = 3;
/** The rows of a walk that fills a first page where about half of the rows match. */
const SHORT_WALK = 50;

/** The rows of a subquery. */
const selectedFrom = (from: Sql): RowSelection['rows'] => ({
  where: (...conditions) => (conditions.length === 0 ? from : sql`${from} WHERE ${join(conditions, ' AND ')}`),
});

/** The tests of the rows of a walk. */
type WalkTests = Pick<WalkedRows, 'rows' | 'tested' | 'conditions' | 'rule'>;

interface RowSelection {
  readonly rows: Pick<ScopedRows, 'where'>;
  readonly conditions: readonly Sql[];
}
type FindsRows = (filters: readonly Sql[]) => RowSelection;
interface KeyedRows {
  /** A SELECT of the keys. */
  readonly list: Sql;
  readonly found: RowSelection;
}

const positionCell =
  (i: number) =>
  ({ page: { position } }: PageValues) =>
    position![i];

/** In the order of their texts, so that equal sets of filters share a statement. */
const sortedConditions = (conditions: readonly Sql[]): readonly Sql[] =>
  conditions.toSorted((a, b) => (a.text < b.text ? -1 : 1));
