/**
 * What requests leave of a policy. A shape is a residual without its values; requests of one signature share it, and a known shape costs binding alone.
 */
import { raw, type Sql } from '../sql.ts';
import { type Cond, FALSE, invariant, TRUE } from './lowered.ts';
import { type Decision, type Needs, needsOf, type Predicate } from './predicate.ts';
import { type Binding, type Plan, settleNow } from './specialise.ts';
import { NO_RELATED, type Residual } from './types.ts';
import { type Where, whereOf } from './where.ts';

/** A residual with what only this room's gate and explanation use. */
export interface PolicyResidual extends Residual {
  readonly cond: Cond;
  /** The condition as it stands under an `or`. */
  whereInUnion(alias: string): Sql;
}

// Requests differ in a few ways that matter to a policy; whoever sends every way there is meets a compilation of microseconds.
const KNOWN_SHAPES = 16;

/** The residuals that a policy's requests left, by signature; the least recently used one goes first. */
export class Shapes {
  readonly #make: (binding: Binding) => Shape;
  readonly #known = new Map<Binding['signature'], Shape>();
  #lastSignature: Binding['signature'] | undefined;
  #last: Shape | undefined;

  constructor(make: (binding: Binding) => Shape) {
    this.#make = make;
  }

  of(binding: Binding): Shape {
    const { signature } = binding;
    if (signature === this.#lastSignature) return this.#last!;
    const shape = this.#known.get(signature) ?? this.#make(binding);
    this.#known.delete(signature);
    this.#known.set(signature, shape);
    if (this.#known.size > KNOWN_SHAPES) this.#known.delete(this.#known.keys().next().value!);
    this.#lastSignature = signature;
    this.#last = shape;
    return shape;
  }
}

interface ShapeParts {
  readonly cond: Cond;
  readonly plan: Plan;
  readonly predicateOf: (cond: Cond) => Predicate;
  /** The policy names `@next` where that is not the record itself, so that it is no condition over stored rows. */
  readonly needsNext: boolean;
}

/** A residual without its values: all that requests of one signature share. */
export class Shape {
  readonly cond: Cond;
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

  get cond(): Cond {
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
