/** Random lists over a world, as parts that can be left out one by one. */
import type { Action } from '../../../src/policy/types.ts';
import type { AccessContext } from '../../../src/records/access-context.ts';
import type { ExactFilter, ListRequest } from '../../../src/records/page/page-plan.ts';
import type { Collection, Schema } from '../../../src/schema/model/model.ts';
import type { QueryDoors } from '../query/store-modules.ts';
import type { Random } from '../random.ts';
import { PlanConditions } from './plan-conditions.ts';
import { CALLERS, idOf, NOW, type TableSpec, tableOf, type WorldSpec } from './plan-world.ts';

interface ExactPart {
  readonly member: string;
  /** The value of a field, or the id of a related record. */
  readonly value: unknown;
}
export interface AskedList {
  readonly collection: string;
  /** The number of the user. */
  readonly caller: number;
  /** The rules of the collection that count, by their places. */
  readonly rules: readonly number[];
  readonly exact: readonly ExactPart[];
  /** Conjuncts of the filter of a query. */
  readonly filter: readonly string[];
  readonly sort: readonly string[];
  readonly expand: readonly string[];
  readonly limit: number;
  readonly offset: number;
  /** The second page by its cursor. */
  readonly isSecond: boolean;
}

/** @param rules the list rules of each collection */
export function randomList(
  world: WorldSpec,
  rules: ReadonlyMap<string, readonly string[]>,
  random: Random,
  isExpanded = false,
): AskedList {
  const tables = world.tables.filter(({ name }) => name !== 'users');
  const largest = tables.toSorted((a, b) => b.rows - a.rows)[0]!;
  const table = random.pick([largest, ...tables]);
  const isQuery = random.chance(0.6);
  const conditions = new PlanConditions(world, 'filter', random);
  const exact = Array.from({ length: isQuery ? random.pick([0, 0, 0, 1]) : random.pick([0, 1, 1, 2]) }, () =>
    exactPart(world, table, random),
  ).filter((part) => part !== undefined);
  return {
    collection: table.name,
    caller: random.pick(CALLERS),
    rules: (rules.get(table.name) ?? []).map((_, i) => i),
    exact: exact.filter(({ member }, i) => exact.findIndex((other) => other.member === member) === i),
    filter: isQuery ? Array.from({ length: random.pick([0, 1, 1, 2]) }, () => conditions.conjunct(table)) : [],
    sort: random.chance(0.35) ? sortOf(table, random) : [],
    expand: random.chance(isExpanded ? 1 : 0.15) ? expandsOf(world, table, random) : [],
    limit: random.pick([20, 20, 20, 20, 1, 5, 50, 100]),
    offset: random.chance(0.9) ? 0 : random.pick([1, 20, 300]),
    isSecond: random.chance(0.15),
  };
}

function exactPart(world: WorldSpec, table: TableSpec, random: Random): ExactPart | undefined {
  const { fields, references, links } = table;
  const someOf = (collection: string): string => {
    const { rows } = tableOf(world, collection);
    const number = collection === 'users' ? random.pick(CALLERS) : random.pick([1, 2, 1 + random.below(rows)]);
    return idOf(collection, number);
  };
  const makers = [
    ...fields
      .filter(({ type, isSearched }) => type !== 'datetime' && !isSearched)
      .map(({ name, values }) => () => ({ member: name, value: random.pick(values) })),
    ...references.map(({ name, collection }) => () => ({ member: name, value: someOf(collection) })),
    ...(links === undefined ? [] : [() => ({ member: links.name, value: someOf(links.collection) })]),
    ...backsOf(world, table).map(({ name, of }) => () => ({ member: name, value: someOf(of) })),
  ];
  return makers.length === 0 ? undefined : random.pick(makers)();
}

const backsOf = ({ tables }: WorldSpec, { name }: TableSpec) =>
  tables.flatMap((other) =>
    other.references.flatMap(({ collection, back }) =>
      collection === name && back !== undefined ? [{ name: back, of: other.name }] : [],
    ),
  );

/** An order through a relation reads all rows in every form. */
function sortOf({ fields }: TableSpec, random: Random): readonly string[] {
  const names = ['id', 'created_at', ...fields.map(({ name }) => name)];
  const keys = Array.from({ length: random.pick([1, 1, 1, 2]) }, () => random.pick(names));
  return [...new Set(keys)].map((key) => (random.chance(0.5) ? `-${key}` : key));
}

function expandsOf(world: WorldSpec, table: TableSpec, random: Random): readonly string[] {
  const { references, links } = table;
  const names = [
    ...references.map(({ name }) => name),
    ...(links === undefined ? [] : [links.name]),
    ...backsOf(world, table).map(({ name }) => name),
  ];
  return random.shuffled(names).slice(0, 1 + random.below(2));
}

/** Each list without one of its parts. */
export function* smallerLists(list: AskedList): Iterable<AskedList> {
  if (list.isSecond) yield { ...list, isSecond: false };
  if (list.offset > 0) yield { ...list, offset: 0 };
  for (const part of ['expand', 'exact', 'filter', 'sort'] as const)
    for (const i of list[part].keys()) yield { ...list, [part]: list[part].toSpliced(i, 1) };
  if (list.rules.length > 1) for (const i of list.rules.keys()) yield { ...list, rules: list.rules.toSpliced(i, 1) };
  if (list.limit !== 20) yield { ...list, limit: 20 };
}

// ---------------------------------------------------------------- requests

/** The first page; the second one is that after its cursor. */
export function requestOf(list: AskedList, cursor: string | undefined, doors: QueryDoors, schema: Schema): ListRequest {
  const collection = schema.collections.get(list.collection)!;
  const { filter, sort, expand, limit, offset, exact } = list;
  const body = {
    ...(filter.length > 0 && { filter: filter.map((part) => `(${part})`).join(' and ') }),
    ...(sort.length > 0 && { sort }),
    ...(expand.length > 0 && { expand: Object.fromEntries(expand.map((name) => [name, true])) }),
    ...(cursor === undefined ? { offset } : { cursor }),
    limit,
  };
  const request = doors.queryRequestOf(body, schema, collection);
  return { ...request, exact: exact.map((part) => exactFilter(part, collection)), isQuery: filter.length > 0 };
}

function exactFilter({ member, value }: ExactPart, { fields, relations }: Collection): ExactFilter {
  const field = fields.get(member);
  if (field !== undefined) return { kind: 'field', field, value: value as string };
  const relation = relations.get(member)!;
  if (relation.kind === 'belongs_to') return { kind: 'belongs_to', relation, value: value as string };
  if (relation.kind === 'has_one') return { kind: 'has_one', relation, id: value as string };
  return { kind: 'any', relation, id: value as string };
}

const writesNothing = (): never => {
  throw new Error('a list asks for no checks');
};

export function accessOf(list: AskedList, doors: QueryDoors, schema: Schema): AccessContext {
  const collection = schema.collections.get(list.collection)!;
  const auth = { id: idOf('users', list.caller), roles: ['member'] };
  const request = { auth, query: {}, now: NOW };
  const permit = (of: string, action: Action) => {
    const all = schema.collections.get(of)!.access[action];
    const isListed = of === list.collection && action === 'list' && list.rules.length > 0;
    return doors.decide({ rules: isListed ? list.rules.map((i) => all[i]!) : all, request });
  };
  const prospect = () => ({ certain: permit(list.collection, 'update'), possible: permit(list.collection, 'update') });
  const caller = { auth, kind: 'user', principal: auth.id } as const;
  return { collection, permit, member: () => undefined, violation: writesNothing, prospect, ...caller, now: NOW };
}
