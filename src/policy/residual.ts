/**
 * What requests leave of a policy. A shape is a residual without its values; requests of one
 * signature share it, so that a known shape costs no more than binding the values.
 */
import { raw, type Sql } from '../sql.ts';
import { type Condition, invariant } from './condition.ts';
import type { Decision, Predicate } from './emit/decision.ts';
import { type Needs, needsOf } from './emit/needs.ts';
import { type Where, whereOf } from './emit/where.ts';
import { type Binding, type Plan, settleNow } from './lower/specialise.ts';
import { NO_RELATED, type Residual } from './types.ts';

/** Of all policies together, beyond the latest of each: some 3 KiB a shape. A client that hits every shape pays a few µs of lowering each time. */
const KNOWN_SHAPES = 1024;

type Signature = Binding['signature'];

interface Known {
  readonly shape: Shape;
  readonly signature: Signature;
  /** The cache that finds it. */
  readonly owner: Map<Signature, Known>;
}

/** The shapes that were used last, of every policy that shares this memory; the least recently used one goes first. */
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
    const oldest = this.#recent.values().next().value!;
    this.#recent.delete(oldest);
    oldest.owner.delete(oldest.signature);
  }
}

/** The memory of the process: what bounds it is the process's memory, not a service's. */
export const PROCESS_MEMORY = new ShapeMemory();

/** The shapes of one policy, by signature: always the latest, and those that the memory still holds. */
export class ShapeCache {
  readonly #memory: ShapeMemory;
  readonly #known = new Map<Signature, Known>();
  #latest: Known | undefined;

  constructor(memory: ShapeMemory) {
    this.#memory = memory;
  }

  get(signature: Signature): Shape | undefined {
    if (this.#latest?.signature === signature) return this.#latest.shape;
    const known = this.#known.get(signature);
    return known && this.#use(known);
  }

  add(signature: Signature, shape: Shape): Shape {
    const known = { shape, signature, owner: this.#known };
    this.#known.set(signature, known);
    return this.#use(known);
  }

  #use(known: Known): Shape {
    this.#memory.touch(known);
    this.#latest = known;
    return known.shape;
  }
}

interface ShapeParts {
  readonly cond: Condition;
  readonly plan: Plan;
  readonly predicate: Predicate;
  /** The policy names `@next` where that is not the record itself, so that it is no condition over stored rows. */
  readonly needsNext: boolean;
}

/** A residual without its values: all that requests of one signature share. */
export class Shape {
  readonly cond: Condition;
  readonly plan: Plan;
  readonly verdict: Residual['verdict'];
  readonly needsNext: boolean;
  readonly predicate: Predicate;
  readonly #constant: Residual | undefined;
  readonly #wheres = new Map<string, Where>();
  #needs: Needs | undefined;

  constructor({ cond, plan, predicate, needsNext }: ShapeParts) {
    this.cond = cond;
    this.plan = plan;
    this.needsNext = needsNext;
    this.verdict = cond.kind !== 'const' ? 'depends' : cond.value ? 'allow' : 'deny';
    this.#constant = cond.kind === 'const' ? constantResidual(cond.value) : undefined;
    this.predicate = predicate;
  }

  with(binding: Binding): Residual {
    return this.#constant ?? new BoundResidual(this, binding);
  }

  get needs(): Needs {
    this.#needs ??= needsOf(this.cond);
    return this.#needs;
  }

  where(alias: string, inUnion: boolean): Where {
    const key = inUnion ? `|${alias}` : alias;
    let known = this.#wheres.get(key);
    if (known === undefined) {
      // Aliases are the callers' own and few; a caller that makes them up must not fill the memory.
      if (this.#wheres.size >= 8) this.#wheres.clear();
      known = whereOf(this.cond, { alias, inUnion });
      this.#wheres.set(key, known);
    }
    return known;
  }
}

class BoundResidual implements Residual {
  readonly verdict = 'depends';
  readonly #shape: Shape;
  readonly #binding: Binding;
  #isSettled = false;
  #decision: Decision | undefined;

  constructor(shape: Shape, binding: Binding) {
    this.#shape = shape;
    this.#binding = binding;
  }

  get needs(): Needs {
    return this.#shape.needs;
  }

  where(alias: string): Sql {
    return this.#where(alias, false);
  }

  whereInUnion(alias: string): Sql {
    return this.#where(alias, true);
  }

  #where(alias: string, inUnion: boolean): Sql {
    invariant(!this.#shape.needsNext, 'a policy that names @next is tested, not searched by');
    return this.#shape.where(alias, inUnion).fill(this.#values());
  }

  /** Bound when first asked for: a list decides many records with it, and a search none. */
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
  return (record, related, next, nextRelated = NO_RELATED) => {
    invariant(next !== undefined, 'a policy that names @next is given the resulting record');
    return decide(record, related, next, nextRelated);
  };
}

const NO_NEEDS: Needs = { record: [], next: [] };
const SQL_TRUE = raw('TRUE');
const SQL_FALSE = raw('FALSE');

function constantResidual(value: boolean): Residual {
  const where = (): Sql => (value ? SQL_TRUE : SQL_FALSE);
  return {
    verdict: value ? 'allow' : 'deny',
    needs: NO_NEEDS,
    where,
    whereInUnion: where,
    test: () => value,
  };
}
