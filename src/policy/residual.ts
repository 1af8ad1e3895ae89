/**
 * What requests leave of a policy. A shape is a residual without its values; requests of one signature share it, and a known shape costs binding alone.
 */
import { raw, type Sql } from '../sql.ts';
import { type Condition, FALSE, invariant, TRUE } from './condition.ts';
import { type Decision, type Needs, needsOf, type Predicate } from './emit/predicate.ts';
import { type Where, whereOf } from './emit/where.ts';
import { type Binding, type Plan, settleNow } from './lower/specialise.ts';
import { NO_RELATED, type Residual } from './types.ts';

/** A residual with what only this room's gate and explanation use. */
export interface PolicyResidual extends Residual {
  readonly cond: Condition;
  /** The condition as it stands under an `or`. */
  whereInUnion(alias: string): Sql;
}

/** Of all policies together, beyond the latest of each: some 3 KiB a shape. Whoever sends every way there is meets a lowering of microseconds. */
const KNOWN_SHAPES = 1024;

interface Known {
  readonly shape: Shape;
  readonly signature: Binding['signature'];
  /** Where it is found. */
  readonly among: Map<Binding['signature'], Known>;
}

/** The least recently used one first. */
const recent = new Set<Known>();

function touch(known: Known): void {
  recent.delete(known);
  recent.add(known);
  if (recent.size <= KNOWN_SHAPES) return;
  const oldest = recent.values().next().value!;
  recent.delete(oldest);
  oldest.among.delete(oldest.signature);
}

/** The residuals that a policy's requests left, by signature. The latest is kept with the policy, the others as long as they are among the recent ones of the process. */
export class Shapes {
  readonly #make: (binding: Binding) => Shape;
  readonly #known = new Map<Binding['signature'], Known>();
  #latest: Known | undefined;

  constructor(make: (binding: Binding) => Shape) {
    this.#make = make;
  }

  of(binding: Binding): Shape {
    if (this.#latest?.signature === binding.signature) return this.#latest.shape;
    const known = this.#known.get(binding.signature) ?? this.#add(binding);
    touch(known);
    this.#latest = known;
    return known.shape;
  }

  #add(binding: Binding): Known {
    const { signature } = binding;
    const known = { shape: this.#make(binding), signature, among: this.#known };
    this.#known.set(signature, known);
    return known;
  }
}

interface ShapeParts {
  readonly cond: Condition;
  readonly plan: Plan;
  readonly predicateOf: (cond: Condition) => Predicate;
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
  readonly #constant: PolicyResidual | undefined;
  readonly #wheres = new Map<string, Where>();
  #needs: Needs | undefined;

  constructor({ cond, plan, predicateOf, needsNext }: ShapeParts) {
    this.cond = cond;
    this.plan = plan;
    this.needsNext = needsNext;
    this.verdict = cond.kind !== 'const' ? 'depends' : cond.value ? 'allow' : 'deny';
    this.#constant = cond.kind === 'const' ? constantResidual(cond.value) : undefined;
    this.predicate = predicateOf(cond);
  }

  with(binding: Binding): PolicyResidual {
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

class BoundResidual implements PolicyResidual {
  readonly verdict = 'depends';
  readonly #shape: Shape;
  readonly #binding: Binding;
  #isSettled = false;
  #decision: Decision | undefined;

  constructor(shape: Shape, binding: Binding) {
    this.#shape = shape;
    this.#binding = binding;
  }

  get cond(): Condition {
    return this.#shape.cond;
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

function constantResidual(value: boolean): PolicyResidual {
  const where = (): Sql => (value ? SQL_TRUE : SQL_FALSE);
  return {
    verdict: value ? 'allow' : 'deny',
    cond: value ? TRUE : FALSE,
    needs: NO_NEEDS,
    where,
    whereInUnion: where,
    test: () => value,
  };
}

/** Every residual is made here; the gate asks for what only these have. */
export function asPolicyResidual(residual: Residual): PolicyResidual {
  invariant('whereInUnion' in residual, 'a residual is made by compile');
  return residual as PolicyResidual;
}
