/**
 * A policy's condition as branches, of each of which an index on (column, id) finds the records in
 * the order of their ids: one value of the column, or a list of keys, each with a range of the
 * index of its own. A page needs no more than its first records of each range. No condition with
 * another branch is taken apart.
 */
import { type Sql, sql, type TenantValue } from '../../sql.ts';
import type { Branch, ColumnValues, KeyCount } from '../branch.ts';
import { columnTested, isOfOneValue, isValueTest, type ValueTest, valuesOfTest } from '../column-facts.ts';
import { type Condition, type Exists, RECORD } from '../condition.ts';
import { keyCountOf } from '../hoisting.ts';
import { and } from '../lower/simplify.ts';
import { conjunctsOf } from '../visit.ts';
import type { Printing } from './printing.ts';
import { POLICY_PLACES, PrintedWhere, type Values } from './value-places.ts';
import { Printer, whereOf } from './where.ts';

export interface BranchPrinting {
  readonly alias: string;
  /** Columns of the record that an index begins with, followed by the id. */
  readonly indexed: ReadonlySet<string>;
  /** The relation tests beside the one that gives the keys that are lists of keys; undefined: all that can be. */
  readonly listed?: ReadonlySet<Exists> | undefined;
  readonly hasTenant: boolean;
}
export interface BranchShape {
  fill(values: Values, tenant?: TenantValue): Branch;
  /** For a form: the request that fills it gives the values. */
  placed(valuesOf: (request: never) => Values, tenant?: TenantValue): Branch;
}

/** More branches would cost more than they save. */
const MOST_BRANCHES = 8;
/** The most values of one branch by which its records may be found. */
const MOST_RANGES = 3;
/** The most lists of keys of one branch. */
const MOST_KEYS = 2;
/** The most parts of one condition: a list waits for this analysis. */
const MOST_VISITS = 64;

export function branchesOf(cond: Condition, printing: BranchPrinting): readonly BranchShape[] | undefined {
  const ways = new WaysByIndex(printing.indexed).of(cond);
  // Other conjuncts may contradict a branch.
  const possible = ways?.map((way) => and(way)).filter((way) => way.kind !== 'const' || way.value);
  if (possible === undefined || possible.length === 0) return undefined;
  const apart = possible.map((way) => ({ cond: way, accesses: accessesOf(way, printing.indexed) }));
  if (apart.some(({ accesses }) => accesses.length === 0)) return undefined;
  return apart.map(({ cond: way, accesses }) => branchShape(way, accesses, printing));
}

// ---------------------------------------------------------------- taking apart

/** A test for a value of a column, for an element of a list, or for keys that are found first. */
type BranchAccess = ValueTest | Exists;
/** Conjuncts, one of which an index serves. */
type Way = readonly Condition[];

/**
 * The ways in which a condition may hold. The time is linear in the condition: each part is visited
 * at most once, and of the `or`s of an `and` one is distributed, because the ways of several
 * multiply.
 */
class WaysByIndex {
  readonly #indexed: ReadonlySet<string>;
  #visits = 0;

  constructor(indexed: ReadonlySet<string>) {
    this.#indexed = indexed;
  }

  /** Undefined if a branch has no index, and if there are too many. */
  of(cond: Condition): readonly Way[] | undefined {
    if (++this.#visits > MOST_VISITS) return undefined;
    if (cond.kind === 'const') return cond.value ? undefined : [];
    if (cond.kind === 'or') return this.#ofAll(cond.items);
    const accesses = accessesOf(cond, this.#indexed);
    const isById = accesses.some((access) => access.kind === 'test' && access.left.name === 'id');
    const inside = isById ? undefined : this.#inside(cond);
    // An `or` beside the access may have ranges that are shorter.
    return inside ?? (accesses.length === 0 ? undefined : [conjunctsOf(cond)]);
  }

  /** Splits at the first fully indexed `or`. */
  #inside(cond: Condition): readonly Way[] | undefined {
    if (cond.kind !== 'and') return undefined;
    for (const [i, item] of cond.items.entries()) {
      if (item.kind !== 'or') continue;
      const ways = this.of(item);
      if (ways === undefined) continue;
      const others = cond.items.toSpliced(i, 1);
      return ways.map((way) => [...way, ...others]);
    }
    return undefined;
  }

  #ofAll(items: readonly Condition[]): readonly Way[] | undefined {
    const all: Way[] = [];
    for (const item of items) {
      const ways = this.of(item);
      if (ways === undefined) return undefined;
      all.push(...ways);
      if (all.length > MOST_BRANCHES) return undefined;
    }
    return all;
  }
}

/** The accesses by one value and by keys: statistics decide which has the shortest ranges. Without them, the first. */
function accessesOf(cond: Condition, indexed: ReadonlySet<string>): readonly BranchAccess[] {
  const parts = conjunctsOf(cond);
  const served = parts.filter((part) => isValueTest(part)).filter(({ left }) => indexed.has(left.column));
  // A value of the request, such as the caller's id, is likely rarer than a literal.
  const ones = served
    .filter(isOfOneValue)
    .toSorted((a, b) => Number(a.right.kind !== 'slot') - Number(b.right.kind !== 'slot'));
  const keys = parts.filter((part): part is Exists => isServedByKeys(part, cond, indexed));
  const lists = served.filter((test) => !isOfOneValue(test));
  return [...ones.slice(0, MOST_RANGES), ...[...keys, ...lists].slice(0, MOST_KEYS)];
}

function isServedByKeys(part: Condition, cond: Condition, indexed: ReadonlySet<string>): boolean {
  if (part.kind !== 'exists') return false;
  const keys = semiJoinKeys(part, cond, { alias: '' });
  return keys !== undefined && keys.of.source.id === RECORD.id && indexed.has(keys.of.column);
}

// ---------------------------------------------------------------- printing

/** `accesses`: the parts of the condition that an index may serve, at least one. */
function branchShape(cond: Condition, accesses: readonly BranchAccess[], printing: BranchPrinting): BranchShape {
  const ways = accesses.map((access) => partsOfShape(cond, access, printing));
  return {
    fill: (values, tenant) => new FilledBranch(ways, { values, print: (where) => where.fill(values, tenant) }),
    placed: (of, tenant) => new FilledBranch(ways, { values: [], print: (where) => where.placed(of, tenant) }),
  };
}

function partsOfShape(cond: Condition, access: BranchAccess, printing: BranchPrinting): BranchParts {
  const { alias, listed, hasTenant } = printing;
  const keysPrinting = { alias, hasTenant };
  const parts = conjunctsOf(cond);
  const tests = parts.filter((part) => isValueTest(part));
  const { column, name } = access.kind === 'test' ? access.left : semiJoinKeys(access, cond, keysPrinting)!.of;
  const isId = name === 'id';
  const isOneRange = access.kind === 'test' && isOfOneValue(access);
  const others = parts.length - tests.length - (access.kind === 'exists' ? 1 : 0);
  const rest = and(parts.filter((part) => part !== access));
  const test = isOneRange && !isId ? access : undefined;
  const isAll = rest.kind === 'const' && rest.value;
  let printed: PrintedWhere | undefined;
  const where = () => {
    if (!isAll) printed ??= whereOf(rest, { alias, inUnion: false, isOfFound: true, listed, beside: cond, hasTenant });
    return printed;
  };
  const range = isOneRange ? whereOf(access, { alias, inUnion: false, range: test, hasTenant }) : undefined;
  const found = () =>
    access.kind === 'test' ? listOf(access) : new PrintedWhere(semiJoinKeys(access, cond, keysPrinting)!.keys);
  const keys = isOneRange ? undefined : found();
  const count = isOneRange ? undefined : keysOfAccess(access);
  return { column, isId, tests, others, count, keys, range, where };
}

interface BranchParts {
  readonly column: string;
  readonly isId: boolean;
  readonly tests: readonly ValueTest[];
  readonly others: number;
  readonly count: ((values: Values) => KeyCount | undefined) | undefined;
  readonly keys: PrintedWhere | undefined;
  readonly range: PrintedWhere | undefined;
  /** Printed when it is asked for, once. */
  where(): PrintedWhere | undefined;
}
interface BranchFilling {
  /** None for a form, whose branches are chosen already. */
  readonly values: Values;
  print(where: PrintedWhere): Sql;
}
/** Its SQL is made when it is asked for: often the estimates alone are. */
class FilledBranch implements Branch {
  readonly column: string;
  readonly isId: boolean;
  readonly place: number;
  readonly isOneRange: boolean;
  readonly others: number;
  readonly #parts: BranchParts;
  readonly #filling: BranchFilling;
  readonly #ways: readonly BranchParts[];
  #tests: readonly ColumnValues[] | undefined;

  constructor(ways: readonly BranchParts[], filling: BranchFilling, place = 0) {
    const parts = ways[place]!;
    this.place = place;
    this.column = parts.column;
    this.isId = parts.isId;
    this.isOneRange = parts.keys === undefined;
    this.others = parts.others;
    this.#parts = parts;
    this.#filling = filling;
    this.#ways = ways;
  }

  get alternatives(): readonly Branch[] {
    const others = this.place === 0 ? this.#ways.slice(1) : [];
    return others.map((_, i) => new FilledBranch(this.#ways, this.#filling, i + 1));
  }

  get keys(): Sql | undefined {
    const { keys } = this.#parts;
    return keys && this.#filling.print(keys);
  }

  get range(): Sql | undefined {
    const { range } = this.#parts;
    return range && this.#filling.print(range);
  }

  get where(): Sql | undefined {
    const where = this.#parts.where();
    return where && this.#filling.print(where);
  }

  get tests(): readonly ColumnValues[] {
    this.#tests ??= this.#parts.tests.map((test) => columnValues(test, this.#filling.values));
    return this.#tests;
  }

  get count(): KeyCount | undefined {
    return this.#parts.count?.(this.#filling.values);
  }
}

const semiJoinKeys = (exists: Exists, cond: Condition, printing: Pick<Printing, 'alias' | 'hasTenant'>) =>
  new Printer(printing).keysOf(exists, cond);

function listOf({ right }: ValueTest): PrintedWhere {
  const list = POLICY_PLACES.of(right, true);
  return new PrintedWhere(sql`SELECT unnest(${list})`);
}

const columnValues = (test: ValueTest, values: Values): ColumnValues => ({
  ...columnTested(test),
  values: valuesOfTest(test, values),
  isStated: test.right.kind === 'literal',
});

function keysOfAccess(access: BranchAccess): (values: Values) => KeyCount | undefined {
  if (access.kind === 'exists') return keyCountOf(access);
  return (values) => ({ kind: 'list', count: valuesOfTest(access, values).length });
}
