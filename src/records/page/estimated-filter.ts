/**
 * The rows that a filter finds, where the values of columns do not tell, and those of them that the list rule permits: by the
 * plans that the database would make for both.
 */
import { type ExpectedPlan, planOf } from '../../database/planner.ts';
import type { RelatedRows } from '../../policy/filters/filter-plans.ts';
import { type Sql, sql } from '../../sql.ts';
import type { AccessContext, Store } from '../access-context.ts';
import { scopeOf } from '../scope.ts';
import { conditionOf } from './first-ids.ts';
import type { BoundList } from './page-plan.ts';
import { FEW_KEYS } from './page-planner.ts';
import type { ExpectedRows, OpaqueFilter } from './page-question.ts';

/** Undefined: the table is small, or values tell. */
export async function estimatedFilter(
  store: Store,
  access: AccessContext,
  { filters, permit }: Pick<BoundList, 'filters' | 'permit'>,
): Promise<OpaqueFilter | undefined> {
  const { collection } = access;
  const filter = filters.at(-1);
  const opacity = filter?.opacity;
  if (filter === undefined || opacity === undefined || !store.pages.isLarge(collection, opacity, filter.lookUps))
    return undefined;
  const reader = store.readerFor(access);
  const planned = (conditions: readonly Sql[]): Promise<PlanNode> => {
    const rows = scopeOf({ store })
      .from(collection.name, 't')
      .where(...conditions);
    return planOf(reader, sql`SELECT 1 FROM ${rows}`);
  };
  const rule = conditionOf(permit.lookingUp(store.pages.isNotMany, store.pages.isHashed));
  const bothPlanned = (relatedRows?: RelatedRows): Promise<readonly PlanNode[]> => {
    const found = filters.map((each) => each.where('t', undefined, relatedRows));
    const byFilters = planned(found);
    return Promise.all([byFilters, rule.length === 0 ? byFilters : planned([...found, ...rule])]);
  };
  let [own, all] = await bothPlanned();
  const lists = listsIn(own!, store.pages.rowsOf(collection)!);
  const isAllOrNone = planNodesOf(own!).some((node) => node['One-Time Filter'] !== undefined);
  if (lists === 'long') [own, all] = await bothPlanned('as planned');
  return { ...expectedRows(own!), kind: opacity, lookUps: filter.lookUps, lists, isAllOrNone, all: expectedRows(all!) };
}

/** The cost of a short list, in the unit of the database. */
const SHORT_LIST_COST = 2_000;
/** The look-up of a key by an index reads up to four pages. Five times as many pages of a table have so many rows. */
const ROWS_OF_KEY = 45;

/**
 * The lists of keys, each of which is read once. Short: nothing else leads to other tables. Long: PostgreSQL, which expects ten
 * keys of any list, would compare each row with every key, or look for more keys than the table has pages.
 */
function listsIn(plan: PlanNode, rows: number): OpaqueFilter['lists'] {
  const nodes = planNodesOf(plan);
  const lists = nodes.filter((node) => node['Parent Relationship'] === 'InitPlan');
  if (lists.length === 0) return undefined;
  const isCompared = (list: PlanNode): boolean =>
    nodes.some(({ Filter = '' }) => placesOf(list).some((place) => String(Filter).includes(place)));
  const many = lists.filter((list) => list['Plan Rows'] > FEW_KEYS);
  if (many.some((list) => isCompared(list) || list['Plan Rows'] * ROWS_OF_KEY > rows)) return 'long';
  const within = new Set(lists.flatMap(planNodesOf));
  const isOfRecord = ({ Alias = 't', 'Parent Relationship': place }: PlanNode): boolean =>
    Alias === 't' && place !== 'SubPlan';
  const isShort = many.length === 0 && lists.every((list) => list['Total Cost'] <= SHORT_LIST_COST);
  return isShort && nodes.every((node) => within.has(node) || isOfRecord(node)) ? 'short' : undefined;
}

/** The names of a list in conditions: `$1` before PostgreSQL 17, `(InitPlan 1).col1` since. */
function placesOf({ 'Subplan Name': name }: PlanNode): readonly string[] {
  const [, plan, place] = /^(\w+ \d+)(?: \(returns (\$\d+)\))?/.exec(String(name)) ?? [];
  return place === undefined ? [`(${plan})`] : [`(${place})`];
}

function expectedRows(plan: PlanNode): ExpectedRows {
  const scanned = planNodesOf(plan).filter((node) => node['Node Type'] === 'Seq Scan');
  return {
    rows: plan['Plan Rows'],
    cost: plan['Total Cost'],
    scanned: [...new Set(scanned.map((node) => String(node['Relation Name'])))],
    ...costsOfHashed(plan),
    lookedUp: loopIn(plan),
  };
}

interface PlanNode extends ExpectedPlan {
  readonly Plans?: readonly PlanNode[];
}

const planNodesOf = (plan: PlanNode): readonly PlanNode[] => [plan, ...(plan.Plans ?? []).flatMap(planNodesOf)];

/** The nodes that read the records, outside of sub-plans. */
const nodesOfRecords = (plan: PlanNode): readonly PlanNode[] => [
  plan,
  ...(plan.Plans ?? [])
    .filter(({ 'Parent Relationship': place }) => place !== 'SubPlan' && place !== 'InitPlan')
    .flatMap(nodesOfRecords),
];

/**
 * The cost to read the related rows that are kept in a hash table, and that of the other sub-plans for each record. The cost of
 * the plan is that of look-ups for each row, which do not run: PostgreSQL decides between the two ways after the costs.
 */
function costsOfHashed(plan: PlanNode): Pick<ExpectedRows, 'hashed' | 'looped'> {
  const nodes = planNodesOf(plan);
  const named = (tested: readonly PlanNode[], names: RegExp): readonly PlanNode[] => {
    const found = new Set(tested.flatMap(({ Filter }) => String(Filter ?? '').match(names) ?? []));
    return nodes.filter((node) => found.has(String(node['Subplan Name'])));
  };
  const hashed = named(nodes, /(?<=hashed )SubPlan \d+/g);
  if (hashed.length === 0) return {};
  const looped = named(nodesOfRecords(plan), /(?<!hashed )SubPlan \d+/g);
  return {
    hashed: hashed.reduce((sum, each) => sum + each['Total Cost'], 0),
    looped: looped.reduce((sum, each) => sum + costOfFirstRow(each), 0),
  };
}

/** A test of related rows ends with the first that it finds. */
const costOfFirstRow = ({ 'Startup Cost': start, 'Total Cost': total, 'Plan Rows': rows }: PlanNode): number =>
  start + (total - start) / Math.max(1, rows);

/** The look-ups for each of so many rows, and the cost of one: those of rows that it has found before are kept in memory. */
function loopIn(plan: PlanNode): ExpectedRows['lookedUp'] {
  for (const { 'Node Type': type, Plans: [outer, inner] = [] } of planNodesOf(plan)) {
    const isLoop = type === 'Nested Loop' && inner !== undefined && inner['Node Type'] !== 'Memoize';
    if (isLoop && planNodesOf(outer!).some(({ Alias }) => Alias === 't'))
      return { rows: outer!['Plan Rows'], cost: inner['Total Cost'] };
  }
  return undefined;
}
