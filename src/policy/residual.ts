/**
 * Residuals: what remains of a policy once a request is known. A shape is a residual without its
 * values; requests of one signature share it, so that a known shape costs no more than binding the
 * values.
 */

import { invariant } from '../invariant.ts';
import { raw, type Sql } from '../sql.ts';
import type { Branch } from './branch.ts';
import type { Condition, Value } from './condition.ts';
import { DecidableLeaves, type Facts } from './decidable-leaves.ts';
import { type BranchPrinting, type BranchShape, branchesOf } from './emit/branches.ts';
import { closures } from './emit/closures.ts';
import type { Decision, Predicate } from './emit/decision.ts';
import type { Printing } from './emit/printing.ts';
import { type ShapeNeeds, shapeNeedsOf } from './emit/shape-needs.ts';
import type { Where } from './emit/value-places.ts';
import { whereOf } from './emit/where.ts';
import { type Binding, type Plan, settleNow } from './lower/specialise.ts';
import { pinnedIds, pinsOf } from './pinned.ts';
import type { Needs, Residual } from './types.ts';

/**
 * For all policies together, beyond the latest shape of each; about 3 KiB a shape, and as much for each of its
 * remainders. A client that hits every shape pays a few µs of lowering each time.
 */
const KNOWN_SHAPES = 1024;

/**
 * What facts have left of one shape. The memory of shapes does not count them, so few are kept: a
 * client with more kinds of exact filters pays some µs each time.
 */
const KNOWN_REMAINDERS = 4;

/** The texts of one shape, by the names of its rows. */
const KNOWN_ALIASES = 8;

type BindingSignature = Binding['signature'];

interface Known {
  readonly shape: ResidualShape;
  readonly signature: BindingSignature;
  /** The cache that finds it. */
  readonly owner: Map<BindingSignature, Known>;
}

/** The most recently used shapes of every policy that shares this memory; evicts the least recently used. */
export class ShapeMemory {
  readonly #limit: number;
  readonly #recent = new Set<Known>();

  constructor(limit = KNOWN_SHAPES) {
    this.#limit = limit;
  }

  touch(known: Known): void {
    this.#recent.delete(known);
    this.#recent.add(known);
    if (this.#recent.size <= this.#limit) return;
    for (const oldest of this.#recent) {
      this.#recent.delete(oldest);
      oldest.owner.delete(oldest.signature);
      return;
    }
  }
}

/** One memory for the process, because it is the process's memory that it bounds. */
export const PROCESS_MEMORY = new ShapeMemory();

/** The shapes of one policy, by signature: always the latest, and those that the memory still holds. */
export class ShapeCache {
  readonly #memory: ShapeMemory;
  readonly #known = new Map<BindingSignature, Known>();
  #latest: Known | undefined;

  constructor(memory: ShapeMemory) {
    this.#memory = memory;
  }

  get(signature: BindingSignature): ResidualShape | undefined {
    if (this.#latest?.signature === signature) return this.#latest.shape;
    const known = this.#known.get(signature);
    return known && this.#use(known);
  }

  add(signature: BindingSignature, shape: ResidualShape): ResidualShape {
    const known = { shape, signature, owner: this.#known };
    this.#known.set(signature, known);
    return this.#use(known);
  }

  #use(known: Known): ResidualShape {
    this.#memory.touch(known);
    this.#latest = known;
    return known.shape;
  }
}

interface ShapeParts {
  readonly cond: Condition;
  readonly plan: Plan;
  readonly predicate: Predicate;
  /** The policy names `@next`, and `@next` is not the record itself. */
  readonly needsNext: boolean;
  /** The same for the written record. */
  readonly written: () => ResidualShape;
}

/** A residual without its values: all that requests of one signature share. */
export class ResidualShape {
  readonly cond: Condition;
  readonly plan: Plan;
  readonly verdict: Residual['verdict'];
  readonly needsNext: boolean;
  readonly predicate: Predicate;
  readonly #constant: Residual | undefined;
  readonly #wheres = new Map<string, Where>();
  readonly #makeWritten: () => ResidualShape;
  #written: ResidualShape | undefined;
  #needs: ShapeNeeds | undefined;
  #leaves: DecidableLeaves | undefined;
  #pins: { readonly column: string; readonly values: readonly Value[] } | undefined;
  #branches: (BranchPrinting & { readonly shapes: readonly BranchShape[] | undefined }) | undefined;
  /** By how the leaves turned out. */
  readonly #remainders = new Map<string, ResidualShape>();

  constructor({ cond, plan, predicate, needsNext, written }: ShapeParts) {
    this.cond = cond;
    this.plan = plan;
    this.needsNext = needsNext;
    this.verdict = cond.kind !== 'const' ? 'depends' : cond.value ? 'allow' : 'deny';
    this.#constant = cond.kind === 'const' ? new ConstantResidual(cond.value) : undefined;
    this.predicate = predicate;
    this.#makeWritten = written;
  }

  /** Lowered on first use: lists and deletes never use it. */
  get written(): ResidualShape {
    invariant(!this.needsNext, 'a policy that names @next is asked once, of both records');
    this.#written ??= this.#makeWritten();
    return this.#written;
  }

  with(binding: Binding): Residual {
    return this.#constant ?? new BoundResidual(this, binding);
  }

  get needs(): ShapeNeeds {
    this.#needs ??= shapeNeedsOf(this.cond);
    return this.#needs;
  }

  /** What the facts leave of it; undefined where they decide nothing. */
  given(facts: Facts, values: readonly unknown[]): ResidualShape | undefined {
    this.#leaves ??= new DecidableLeaves(this.cond);
    const outcomes = this.#leaves.outcomes(facts, values);
    if (outcomes === undefined) return undefined;
    let known = this.#remainders.get(outcomes);
    if (known === undefined) {
      known = this.#remainder(this.#leaves.left(this.cond, outcomes));
      this.#remainders.set(outcomes, known);
      const [oldest] = this.#remainders.keys();
      if (this.#remainders.size > KNOWN_REMAINDERS) this.#remainders.delete(oldest!);
    }
    return known;
  }

  #remainder(cond: Condition): ResidualShape {
    const predicate: Predicate = (values) => closures(cond)(values);
    // The facts are about the stored record.
    return new ResidualShape({
      cond,
      plan: this.plan,
      predicate,
      needsNext: this.needsNext,
      written: () => this.written,
    });
  }

  branches(alias: string, indexed: ReadonlySet<string>): readonly BranchShape[] | undefined {
    if (this.#branches?.alias !== alias || this.#branches.indexed !== indexed)
      this.#branches = { alias, indexed, shapes: branchesOf(this.cond, { alias, indexed }) };
    return this.#branches.shapes;
  }

  /** One column of a collection is asked for, always the same. */
  pins(column: string): readonly Value[] {
    if (this.#pins?.column !== column) this.#pins = { column, values: pinsOf(this.cond, column) };
    return this.#pins.values;
  }

  where(printing: Printing): Where {
    const { alias, next = '', inUnion } = printing;
    const key = `${alias}|${next}|${inUnion}`;
    const known = this.#wheres.get(key) ?? whereOf(this.cond, printing);
    // Callers choose the aliases. Filters have many, which must neither fill the memory nor push out
    // those that every request uses: the least recently used goes.
    if (this.#wheres.size >= KNOWN_ALIASES) {
      this.#wheres.delete(key);
      for (const [oldest] of this.#wheres) {
        if (this.#wheres.size < KNOWN_ALIASES) break;
        this.#wheres.delete(oldest);
      }
    }
    this.#wheres.set(key, known);
    return known;
  }
}

class BoundResidual implements Residual {
  readonly verdict = 'depends';
  readonly #shape: ResidualShape;
  readonly #binding: Binding;
  #isSettled = false;
  #decision: Decision | undefined;

  constructor(shape: ResidualShape, binding: Binding) {
    this.#shape = shape;
    this.#binding = binding;
  }

  get needs(): Needs {
    const { record, next, requested } = this.#shape.needs;
    const { values } = this.#binding;
    return { record, next, requested: requested.map(({ slot, ...need }) => ({ ...need, id: values[slot] as string })) };
  }

  get written(): Residual {
    return this.#shape.written.with(this.#binding);
  }

  given(facts: Facts): Residual {
    return this.#shape.given(facts, this.#values())?.with(this.#binding) ?? this;
  }

  where(alias: string, next?: string): Sql {
    return this.#where({ alias, next, inUnion: false });
  }

  whereInUnion(alias: string, next?: string): Sql {
    return this.#where({ alias, next, inUnion: true });
  }

  pinned(column: string): readonly string[] {
    return pinnedIds(this.#shape.pins(column), this.#binding.values);
  }

  branches(alias: string, indexed: ReadonlySet<string>): readonly Branch[] | undefined {
    const values = this.#values();
    return this.#shape.branches(alias, indexed)?.map((branch) => branch.fill(values));
  }

  #where(printing: Printing): Sql {
    const isComplete = !this.#shape.needsNext || printing.next !== undefined;
    invariant(isComplete, 'a condition that names @next is given the row of the resulting record');
    return this.#shape.where(printing).fill(this.#values());
  }

  /** Bound on first use: a list decides many records with it, a search none. */
  get test(): Decision {
    this.#decision ??= this.#bound();
    return this.#decision;
  }

  #bound(): Decision {
    const decide = this.#shape.predicate(this.#values());
    return this.#shape.needsNext ? givenNext(decide) : decide;
  }

  #values(): readonly unknown[] {
    if (!this.#isSettled) settleNow(this.#shape.plan, this.#binding);
    this.#isSettled = true;
    return this.#binding.values;
  }
}

function givenNext(decide: Decision): Decision {
  return (record, related, next) => {
    invariant(next !== undefined, 'a policy that names @next is given the resulting record');
    return decide(record, related, next);
  };
}

const NO_NEEDS: Needs = { record: [], next: [], requested: [] };
const SQL_TRUE = raw('TRUE');
const SQL_FALSE = raw('FALSE');

class ConstantResidual implements Residual {
  readonly verdict: Residual['verdict'];
  readonly needs = NO_NEEDS;
  readonly #sql: Sql;

  constructor(value: boolean) {
    this.verdict = value ? 'allow' : 'deny';
    this.#sql = value ? SQL_TRUE : SQL_FALSE;
  }

  get written(): Residual {
    return this;
  }

  given(): Residual {
    return this;
  }

  where(): Sql {
    return this.#sql;
  }

  whereInUnion(): Sql {
    return this.#sql;
  }

  pinned(): readonly string[] {
    return [];
  }

  branches(): undefined {
    return undefined;
  }

  test(): boolean {
    return this.verdict === 'allow';
  }
}
