/** The remainder of a policy once a request is known: a cached condition with the values of that request. */

import { invariant } from '../invariant.ts';
import { raw, type Sql } from '../sql.ts';
import type { Branch } from './branch.ts';
import { type Facts, requiredFacts } from './column-facts.ts';
import { isTo } from './condition.ts';
import type { Decision } from './emit/decision.ts';
import type { Printing } from './emit/printing.ts';
import { type Binding, settleNow } from './lower/specialise.ts';
import type { CachedResidual } from './residual-cache.ts';
import type { Needs, Residual } from './types.ts';

export const residualOf = (cached: CachedResidual, binding: Binding): Residual =>
  cached.verdict === 'depends' ? new BoundResidual(cached, binding) : CONSTANTS[cached.verdict];

class BoundResidual implements Residual {
  readonly verdict = 'depends';
  readonly #cached: CachedResidual;
  readonly #binding: Binding;
  #isSettled = false;
  #decision: Decision | undefined;

  constructor(cached: CachedResidual, binding: Binding) {
    this.#cached = cached;
    this.#binding = binding;
  }

  get needs(): Needs {
    const { record, next, requested } = this.#cached.needs();
    const { values } = this.#binding;
    return { record, next, requested: requested.map(({ slot, ...need }) => ({ ...need, id: values[slot] as string })) };
  }

  get written(): Residual {
    return residualOf(this.#cached.written(), this.#binding);
  }

  given(facts: Facts): Residual {
    const left = this.#cached.given(facts, this.#values());
    return left === undefined ? this : residualOf(left, this.#binding);
  }

  where(alias: string, next?: string): Sql {
    return this.#where({ alias, next, inUnion: false });
  }

  whereInUnion(alias: string, next?: string): Sql {
    return this.#where({ alias, next, inUnion: true });
  }

  pinned(column: string): readonly string[] {
    return requiredFacts(this.#cached.cond, this.#values())
      .filter((fact) => fact.column.column === column && isTo(fact.column.type) && fact.value !== null)
      .map(({ value }) => value as string);
  }

  branches(alias: string, indexed: ReadonlySet<string>): readonly Branch[] | undefined {
    const values = this.#values();
    return this.#cached.branches(alias, indexed)?.map((branch) => branch.fill(values));
  }

  #where(printing: Printing): Sql {
    const isComplete = !this.#cached.needsNext || printing.next !== undefined;
    invariant(isComplete, 'a condition that names @next is given the row of the resulting record');
    return this.#cached.where(printing).fill(this.#values());
  }

  /** Bound on first use: a list decides many records with it, a search none. */
  get test(): Decision {
    this.#decision ??= this.#bound();
    return this.#decision;
  }

  #bound(): Decision {
    const decide = this.#cached.predicate(this.#values());
    return this.#cached.needsNext ? givenNext(decide) : decide;
  }

  #values(): readonly unknown[] {
    if (!this.#isSettled) settleNow(this.#cached.plan, this.#binding);
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

function constantResidual(value: boolean): Residual {
  const where = (): Sql => raw(value ? 'TRUE' : 'FALSE');
  const residual: Residual = {
    verdict: value ? 'allow' : 'deny',
    needs: NO_NEEDS,
    where,
    whereInUnion: where,
    test: () => value,
    get written() {
      return residual;
    },
    given: () => residual,
    pinned: () => [],
    branches: () => undefined,
  };
  return residual;
}

const CONSTANTS = { allow: constantResidual(true), deny: constantResidual(false) };
