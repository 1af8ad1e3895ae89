/**
 * The remainder of a policy once a request is known: a cached condition with the values of that
 * request. Requests of one signature share a condition, with all that was made from it, so a known
 * signature costs no more than binding its values.
 */
import { BoundedMap } from '../bounded-map.ts';
import { invariant, present } from '../invariant.ts';
import { memoized } from '../memoized.ts';
import { raw, type Sql, type TenantValue } from '../sql.ts';
import { isTouchedBy } from './analyse/touched-rows.ts';
import type { Branch, KeyCount, LookUp, RelatedKeys } from './branch.ts';
import { DecidableParts, type Facts, type FactsOf, factsOf, isBoundOf } from './column-facts.ts';
import { type Condition, type Exists, isHeld, isRoot, NEXT } from './condition.ts';
import { type BranchPrinting, type BranchShape, branchesOf } from './emit/branches.ts';
import { closures } from './emit/closures.ts';
import type { Decision, Predicate } from './emit/decision.ts';
import type { Printing } from './emit/printing.ts';
import { type ShapeNeeds, shapeNeedsOf } from './emit/shape-needs.ts';
import type { PrintedWhere, Values } from './emit/value-places.ts';
import { whereOf } from './emit/where.ts';
import { excludedKeysOf, isHoistable, keyCountOf, keyListOf, lookUpsIn, unknownKeysOf } from './hoisting.ts';
import { or } from './lower/simplify.ts';
import type { Binding } from './lower/specialise.ts';
import { isTo } from './scalar-types.ts';
import type { IsFew, Needs, Residual, Row, Verdict } from './types.ts';
import { columnsOf, conjunctsOf, nodesOf, readsTenants, renumbered } from './visit.ts';

/** Values of one request, or the way to them from the request that will fill a form. */
interface BoundValues {
  readonly values: Values;
}
type ValueSource = BoundValues | ((request: never) => Values);

export const residualOf = (cached: CachedResidual, source: ValueSource, tenant?: TenantValue): Residual =>
  cached.verdict === 'depends'
    ? new BoundResidual(cached, source, tenant === undefined ? UNBOUND : { tenant })
    : CONSTANTS[cached.verdict];

interface BoundOptions {
  /** A character for each relation test that can be a list of keys. Undefined: all are. */
  readonly lists?: string | undefined;
  readonly tenant?: TenantValue | undefined;
}
const UNBOUND: BoundOptions = {};

class BoundResidual implements Residual {
  readonly verdict = 'depends';
  readonly shape: string;
  readonly walks: boolean;
  readonly lookUps: readonly LookUp[];
  readonly #cached: CachedResidual;
  readonly #source: ValueSource;
  readonly #lists: string | undefined;
  readonly #tenant: TenantValue | undefined;
  #decision: Decision | undefined;

  constructor(cached: CachedResidual, source: ValueSource, { lists, tenant }: BoundOptions) {
    const shape = lists === undefined ? cached.shape : `${cached.shape}:${lists}`;
    this.shape = tenant === undefined ? shape : `${shape}@`;
    this.#tenant = tenant;
    this.walks = cached.walks;
    this.lookUps = lists === undefined ? NO_LOOK_UPS : (cached.lookUps.get(lists) ?? cached.findLookUps(lists));
    this.#cached = cached;
    this.#source = source;
    this.#lists = lists;
  }

  placed<Request>(valuesOf: (request: Request) => Values): Residual {
    return new BoundResidual(this.#cached, valuesOf, { lists: this.#lists, tenant: this.#tenant });
  }

  within(tenant: TenantValue): Residual {
    if (!this.#cached.readsTenants()) return this;
    return new BoundResidual(this.#cached, this.#source, { lists: this.#lists, tenant });
  }

  lookingUp(others: readonly Residual[], isFew?: IsFew, isHashed?: IsFew): Residual {
    if (others.length > 0) {
      const all = [this, ...others.filter((each) => each instanceof BoundResidual)];
      const cached = all.map((each) => each.#cached);
      const key = cached.map(({ shape }) => shape).join();
      const union = unions.get(key) ?? unionResidual(key, cached);
      const isPlaced = typeof this.#source === 'function';
      // The values of absent slots are holes, which `flatMap` would drop.
      const source = isPlaced
        ? sourcePlaces(all.map((each) => each.#source))
        : { values: NOTHING_BOUND.concat(...all.map((each) => each.values)) };
      const [tenant] = all.flatMap((each) => each.#tenant ?? []);
      return new BoundResidual(union, source, { tenant }).lookingUp([], isFew, isHashed);
    }
    if (!this.walks) return this;
    const source = this.#source;
    const tenant = this.#tenant;
    if (isHashed !== undefined && this.#lists !== undefined)
      return new BoundResidual(this.#cached, source, { lists: `${FREE}${this.#lists.replace(FREE, '')}`, tenant });
    let lists = isHashed === undefined ? '' : FREE;
    for (const { exists, count, isOfRequest } of this.#cached.lists()) {
      const asked =
        typeof source === 'function'
          ? undefined
          : ([exists.target.table, () => count(source.values), isOfRequest] as const);
      const isListed = (asked && isFew?.(...asked)) ?? isOfRequest;
      lists += isListed ? LISTED : asked && isHashed?.(...asked) ? HASHED : LOOK_UP;
    }
    return new BoundResidual(this.#cached, source, { lists, tenant });
  }

  get needs(): Needs {
    const { record, next, requested } = this.#cached.needs();
    const idAt = (slot: number): string => this.values[slot] as string;
    // The id is read when it is asked for: with places, there is none.
    const named = ({ slot, ...need }: (typeof requested)[number]) => ({
      ...need,
      get id() {
        return idAt(slot);
      },
    });
    return { record, next, requested: requested.map(named) };
  }

  dependsOn(collection: string, rows: readonly Row[]): boolean {
    return isTouchedBy(this.#cached.cond, this.values, collection, rows);
  }

  get written(): Residual {
    return residualOf(this.#cached.written(), this.#source, this.#tenant);
  }

  readsAny(columns: ReadonlySet<string>): boolean {
    return this.#cached.readsAny(columns);
  }

  given(facts: Facts): Residual {
    const left = this.#cached.given(facts, this.values);
    return left === undefined ? this : residualOf(left.remainder, left, this.#tenant);
  }

  get relatedKeys(): RelatedKeys | undefined {
    return this.#cached.unknownKeys()?.keys;
  }

  branchesBesideKeys(alias: string, indexed: ReadonlySet<string>): readonly Branch[] | undefined {
    const others = this.#cached.besideKeys();
    return others === undefined ? [] : residualOf(others, this.#source, this.#tenant).branches(alias, indexed);
  }

  byKeys(alias: string, part: 'list' | 'test'): Sql {
    const { test } = present(this.#cached.unknownKeys(), 'the related rows that give keys');
    return this.#where({ alias, inUnion: false, keyed: { test, part } });
  }

  where(alias: string, next?: string): Sql {
    return this.#where({ alias, next, inUnion: false });
  }

  whereInUnion(alias: string, next?: string): Sql {
    return this.#where({ alias, next, inUnion: true });
  }

  get facts(): Row {
    const facts = this.#cached.facts()(this.values);
    return Object.fromEntries(facts.map(({ column, value }) => [column.name, value]));
  }

  pinned(column: string): readonly string[] {
    return this.#cached
      .facts()(this.values)
      .filter((fact) => fact.column.column === column && isTo(fact.column.type) && fact.value !== null)
      .map(({ value }) => value as string);
  }

  bounds(column: string): readonly Residual[] {
    return this.#cached.bounds(column).map((each) => residualOf(each, this.#source, this.#tenant));
  }

  branches(alias: string, indexed: ReadonlySet<string>): readonly Branch[] | undefined {
    const source = this.#source;
    const tenant = this.#tenant;
    const branches = this.#cached.branches({ alias, indexed, hasTenant: tenant !== undefined }, this.#lists);
    if (typeof source === 'function') return branches?.map((each) => each.placed(source, tenant));
    const { values } = this;
    return branches?.map((each) => each.fill(values, tenant));
  }

  #where(printing: Printing): Sql {
    const isComplete = !this.#cached.needsNext || printing.next !== undefined;
    invariant(isComplete, 'a condition that names @next is given the row of the resulting record');
    const tenant = this.#tenant;
    const where = this.#cached.where(tenant === undefined ? printing : { ...printing, hasTenant: true }, this.#lists);
    return typeof this.#source === 'function' ? where.placed(this.#source, tenant) : where.fill(this.values, tenant);
  }

  /** Bound on first use: a list decides many records with it, a search none. */
  get test(): Decision {
    this.#decision ??= this.#bound();
    return this.#decision;
  }

  #bound(): Decision {
    const decide = this.#cached.predicate(this.values);
    return this.#cached.needsNext ? givenNext(decide) : decide;
  }

  get values(): Values {
    const binding = this.#source;
    if (typeof binding === 'function') invariant(false, 'a residual with places has no values');
    return binding.values;
  }
}

function givenNext(decide: Decision): Decision {
  return (record, related, next) => {
    invariant(next !== undefined, 'a policy that names @next is given the resulting record');
    return decide(record, related, next);
  };
}

const NO_LOOK_UPS: readonly LookUp[] = [];
const NO_NEEDS: Needs = { record: [], next: [], requested: [] };

function constantResidual(value: boolean): Residual {
  const where = (): Sql => raw(value ? 'TRUE' : 'FALSE');
  const verdict = value ? 'allow' : 'deny';
  const residual: Residual = {
    verdict,
    shape: verdict,
    values: [],
    needs: NO_NEEDS,
    dependsOn: () => false,
    where,
    whereInUnion: where,
    test: () => value,
    get written() {
      return residual;
    },
    given: () => residual,
    readsAny: () => false,
    placed: () => residual,
    within: () => residual,
    facts: {},
    pinned: () => [],
    bounds: () => [],
    branches: () => undefined,
    relatedKeys: undefined,
    branchesBesideKeys: () => undefined,
    byKeys: where,
    walks: false,
    lookUps: NO_LOOK_UPS,
    lookingUp: () => residual,
  };
  return residual;
}

const CONSTANTS = { allow: constantResidual(true), deny: constantResidual(false) };

// ---------------------------------------------------------------- what requests of one signature share

/**
 * The limit of all policies together, beyond the latest entry of each; about 3 KiB an entry, and as
 * much for each of its remainders. A client that hits every signature pays a few µs of lowering
 * each time.
 */
const MOST_ENTRIES = 1024;

/**
 * The remainders that facts leave of one entry. The memory of entries does not count them, so few are kept: a
 * client with more kinds of exact filters pays some µs each time.
 */
const MOST_REMAINDERS = 4;

/** The texts of one entry, by the names of its rows. Callers choose the aliases, and filters have many. */
const KEPT_TEXTS = 8;

type BindingSignature = Binding['signature'];

interface CacheEntry {
  readonly residual: CachedResidual;
  readonly signature: BindingSignature;
  /** The policy's own map, which finds it. */
  readonly owner: Map<BindingSignature, CacheEntry>;
}

/** The recently used entries of every policy that shares this memory. */
export class ResidualMemory {
  readonly #recent: BoundedMap<CacheEntry, CacheEntry>;

  constructor(limit = MOST_ENTRIES) {
    this.#recent = new BoundedMap(limit);
  }

  get size(): number {
    return this.#recent.size;
  }

  touch(entry: CacheEntry): void {
    if (this.#recent.get(entry) !== undefined) return;
    const dropped = this.#recent.set(entry, entry);
    dropped?.owner.delete(dropped.signature);
  }
}

/** The process has one such memory, because the limit is on the memory of the process. */
export const PROCESS_MEMORY = new ResidualMemory();

/** The entries of one policy, by signature: always the latest, and all that the memory still holds. */
export class ResidualCache {
  readonly #memory: ResidualMemory;
  readonly #entries = new Map<BindingSignature, CacheEntry>();
  #latest: CacheEntry | undefined;

  constructor(memory: ResidualMemory) {
    this.#memory = memory;
  }

  get(signature: BindingSignature): CachedResidual | undefined {
    if (this.#latest?.signature === signature) return this.#latest.residual;
    const entry = this.#entries.get(signature);
    return entry && this.#use(entry);
  }

  add(signature: BindingSignature, residual: CachedResidual): CachedResidual {
    const entry = { residual, signature, owner: this.#entries };
    this.#entries.set(signature, entry);
    return this.#use(entry);
  }

  #use(entry: CacheEntry): CachedResidual {
    this.#memory.touch(entry);
    this.#latest = entry;
    return entry.residual;
  }
}

interface KnownBranches {
  readonly indexed: ReadonlySet<string>;
  readonly shapes: readonly BranchShape[] | undefined;
}

interface ResidualParts {
  readonly cond: Condition;
  /** The values that a request binds. */
  readonly slots: number;
  readonly predicate: Predicate;
  /** The related rows that the predicate reads. Default: those of the condition. */
  readonly needs?: () => ShapeNeeds;
  /** The policy names `@next`, and `@next` is not the record itself. */
  readonly needsNext: boolean;
  /** The same for the written record. */
  readonly written: () => CachedResidual;
}

/** Process-wide: no two residuals without values have one number. */
let residualsMade = 0;
export const madeResiduals = (): number => residualsMade;

/** A residual without its values. Each part is made when it is first asked for. */
export class CachedResidual {
  readonly cond: Condition;
  readonly slots: number;
  readonly verdict: Verdict;
  readonly shape = `${++residualsMade}`;
  readonly needsNext: boolean;
  readonly predicate: Predicate;
  /** Lists and deletes never ask for it. */
  readonly written: () => CachedResidual;
  readonly needs: () => ShapeNeeds;
  /** The condition has the values of links, and the predicate has not. */
  readonly #isOfLinks: boolean;
  readonly facts: () => FactsOf = memoized(() => factsOf(this.cond));
  readonly walks: boolean;
  readonly lists = memoized(() => listsIn(this.cond));
  readonly unknownKeys = memoized(() => unknownKeysOf(this.cond));
  /** The parts of an `or` beside the one with related keys. */
  readonly besideKeys: () => CachedResidual | undefined = memoized(() => {
    const { others = [] } = this.unknownKeys() ?? {};
    return others.length === 0 ? undefined : this.#remainder(or(others));
  });
  /** It reads rows of the record's tenant. */
  readonly readsTenants = memoized(() => readsTenants(this.cond));
  readonly #ownColumns = memoized(() => columnsOf(this.cond).filter(({ source: { id } }) => isRoot(id)));
  readonly #parts = memoized(() => new DecidableParts(this.cond));
  readonly #texts = new BoundedMap<string, PrintedWhere>(KEPT_TEXTS);
  /** Remainders by the outcomes of the parts. */
  readonly #remainders = new BoundedMap<string, CachedResidual>(MOST_REMAINDERS);
  readonly #branches = new BoundedMap<string, KnownBranches>(KEPT_TEXTS);
  /** The bounds of each column that was asked for. */
  readonly #bounds = new BoundedMap<string, readonly CachedResidual[]>(KEPT_TEXTS);
  /** The related rows that `where` looks up, by its lists. */
  readonly lookUps = new BoundedMap<string, readonly LookUp[]>(KEPT_TEXTS);

  constructor({ cond, slots, predicate, needs, needsNext, written }: ResidualParts) {
    this.cond = cond;
    this.#isOfLinks = needs !== undefined;
    this.needs = needs ?? memoized(() => shapeNeedsOf(cond));
    this.slots = slots;
    this.walks = nodesOf(cond).some(({ kind }) => kind === 'exists');
    this.needsNext = needsNext;
    this.verdict = cond.kind !== 'const' ? 'depends' : cond.value ? 'allow' : 'deny';
    this.predicate = predicate;
    this.written = memoized(() => {
      invariant(!needsNext, 'a policy that names @next is asked once, of both records');
      return written();
    });
  }

  readsAny(columns: ReadonlySet<string>): boolean {
    // A stored row has no column for what other rows hold.
    return this.#ownColumns().some(
      ({ source: { id }, column, part }) => columns.has(part?.column ?? column) || (id === NEXT.id && isHeld(column)),
    );
  }

  /** The remainder under these facts, and its values; undefined if they decide nothing. */
  given(facts: Facts, values: Values): (BoundValues & { readonly remainder: CachedResidual }) | undefined {
    const parts = this.#parts();
    const outcomes = parts.outcomes(facts, values);
    if (outcomes === undefined) return undefined;
    const links = parts.linkValues(facts);
    const remainder = this.#remainders.get(outcomes) ?? this.#settledBy(outcomes, this.slots + links.length);
    if (links.length === 0) return { remainder, values };
    return { remainder, values: [...Array.from({ length: this.slots }, (_, i) => values[i]), ...links] };
  }

  #settledBy(outcomes: string, slots: number): CachedResidual {
    const left = this.#parts().left(this.cond, outcomes, this.slots);
    const { predicate, needs } = this;
    // A decision in memory finds related rows from the record itself, and not by the value of a link.
    const isOfLinks = this.#isOfLinks || slots > this.slots;
    const remainder = isOfLinks ? this.#remainder(left, { slots, predicate, needs }) : this.#remainder(left);
    this.#remainders.set(outcomes, remainder);
    return remainder;
  }

  #remainder(cond: Condition, how?: Pick<ResidualParts, 'slots' | 'predicate' | 'needs'>): CachedResidual {
    const { needsNext, slots, written } = this;
    // The facts are about the stored record, so the written one keeps its condition.
    return new CachedResidual({
      cond,
      slots,
      predicate: (values) => closures(cond)(values),
      needsNext,
      written,
      ...how,
    });
  }

  bounds(column: string): readonly CachedResidual[] {
    let known = this.#bounds.get(column);
    if (known === undefined) {
      const parts = conjunctsOf(this.cond).filter((part) => isBoundOf(part, column));
      known = parts.map((part) => this.#remainder(part));
      this.#bounds.set(column, known);
    }
    return known;
  }

  branches(printing: Omit<BranchPrinting, 'listed'>, lists?: string): readonly BranchShape[] | undefined {
    const { alias, indexed, hasTenant } = printing;
    const key = lists === undefined && !hasTenant ? alias : `${alias}|${hasTenant}|${lists}`;
    const known = this.#branches.get(key);
    if (known?.indexed === indexed) return known.shapes;
    const shapes = branchesOf(this.cond, { ...printing, listed: this.#listed(lists) });
    this.#branches.set(key, { indexed, shapes });
    return shapes;
  }

  /** @param lists a character for each test that can be a list of keys; undefined: all are */
  where(printing: Printing, lists?: string): PrintedWhere {
    const { alias, next = '', inUnion, hasTenant = false, keyed } = printing;
    const key = `${alias}|${next}|${inUnion}|${hasTenant}|${keyed?.part}|${lists}`;
    const known = this.#texts.get(key);
    if (known !== undefined) return known;
    const hashed = lists?.startsWith(FREE) === true ? this.#listed(lists, HASHED) : undefined;
    const where = whereOf(this.cond, { ...printing, listed: this.#listed(lists), hashed });
    this.#texts.set(key, where);
    return where;
  }

  findLookUps(lists: string): readonly LookUp[] {
    const made = lists.startsWith(FREE) ? NO_LOOK_UPS : lookUpsIn(this.cond, this.#listed(lists)!);
    this.lookUps.set(lists, made);
    return made;
  }

  #listed(lists: string | undefined, as = `${LISTED}${HASHED}`): ReadonlySet<Exists> | undefined {
    if (lists === undefined) return undefined;
    const from = lists.startsWith(FREE) ? FREE.length : 0;
    return new Set(this.lists().flatMap(({ exists }, i) => (as.includes(lists[from + i]!) ? [exists] : [])));
  }
}

// ---------------------------------------------------------------- lists of keys, or look-ups

const LISTED = 'k';
/** A list that no index serves: PostgreSQL keeps it in a hash table. */
const HASHED = 'h';
const LOOK_UP = 'r';
/** PostgreSQL chooses how the tests that are not lists are evaluated. */
const FREE = '*';

interface KeyedTest {
  readonly exists: Exists;
  /** The keys are of rows that refer to a record of the request. */
  readonly isOfRequest: boolean;
  readonly count: (values: Values) => KeyCount | undefined;
}

/** The relation tests that can be printed as lists of keys. */
const listsIn = (cond: Condition): readonly KeyedTest[] =>
  nodesOf(cond)
    .filter((node) => node.kind === 'exists')
    .map((exists) => ({
      exists,
      isOfRequest: (keyListOf(exists) ?? excludedKeysOf(exists)) !== undefined,
      count: keyCountOf(exists),
    }))
    .filter(({ exists, isOfRequest }) => isOfRequest || isHoistable(exists));

/** Process-wide: a memo of a pure function. */
const unions = new BoundedMap<string, CachedResidual>(MOST_ENTRIES);

const NOTHING_BOUND: Values = [];

/** The places of a form: all are filled by one request. */
const sourcePlaces =
  (sources: readonly ValueSource[]) =>
  (request: never): Values =>
    NOTHING_BOUND.concat(...sources.map((source) => (typeof source === 'function' ? source(request) : source.values)));

/** Builds the condition of a union, in which the walks by one relation are shared. */
function unionResidual(key: string, parts: readonly CachedResidual[]): CachedResidual {
  let slots = 0;
  const conds = parts.map((part, i) => {
    const moved = renumbered(part.cond, { slots, sources: i * MOST_SOURCES });
    slots += part.slots;
    return moved;
  });
  const cond = or(conds);
  const written = (): never => {
    throw new Error('a union is of stored records');
  };
  const union = new CachedResidual({ cond, slots, predicate: closures(cond), needsNext: false, written });
  unions.set(key, union);
  return union;
}

/** More rows than the limits of the language let one condition bind. */
const MOST_SOURCES = 1_000_000;
