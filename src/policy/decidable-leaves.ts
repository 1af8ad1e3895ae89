/**
 * What is known of a record before the database is asked, such as what an exact filter says of it, decides parts of a
 * condition on it. A known value is compared by the predicate, which agrees with the database.
 */
import { type ColumnRef, type Condition, type NullTest, RECORD, type Test } from './condition.ts';
import { closures } from './emit/closures.ts';
import type { Predicate } from './emit/decision.ts';
import { and, existsOf, or } from './lower/simplify.ts';
import { NO_RELATED, type Row } from './types.ts';
import { nodesOf } from './visit.ts';

/** Values of the record's own fields, belongs_tos and id, by name; null is absent. What is not in it is not known. */
export type Facts = Row;

type Leaf = Test | NullTest;

interface DecidableLeaf {
  readonly leaf: Leaf;
  readonly names: readonly string[];
  readonly predicate: Predicate;
}

const UNKNOWN = '?';
const HOLDS = '1';
const FAILS = '0';

/** The tests of a condition that read nothing but the record itself and the request. */
export class DecidableLeaves {
  readonly #leaves: readonly DecidableLeaf[];

  constructor(cond: Condition) {
    this.#leaves = [...new Set(leavesOf(cond))].flatMap((leaf) => {
      const names = namesOf(leaf);
      return names === undefined ? [] : [{ leaf, names, predicate: closures(leaf) }];
    });
  }

  /** How the leaves turn out, a character each; undefined where the facts decide none. */
  outcomes(facts: Facts, values: readonly unknown[]): string | undefined {
    let outcomes = '';
    let decidesSome = false;
    for (const { names, predicate } of this.#leaves) {
      const isKnown = names.every((name) => Object.hasOwn(facts, name));
      decidesSome ||= isKnown;
      outcomes += !isKnown ? UNKNOWN : predicate(values)(facts, NO_RELATED) ? HOLDS : FAILS;
    }
    return decidesSome ? outcomes : undefined;
  }

  /** What is left of the condition. */
  left(cond: Condition, outcomes: string): Condition {
    const settled = new Map<Condition, boolean>();
    this.#leaves.forEach(({ leaf }, i) => {
      if (outcomes[i] !== UNKNOWN) settled.set(leaf, outcomes[i] === HOLDS);
    });
    return withSettled(cond, settled);
  }
}

const leavesOf = (cond: Condition): readonly Leaf[] =>
  nodesOf(cond).filter((node) => node.kind === 'test' || node.kind === 'null');

/** Undefined where it reads other rows too. */
function namesOf(leaf: Leaf): readonly string[] | undefined {
  const operands = leaf.kind === 'null' ? [leaf.column] : [leaf.left, leaf.right];
  if (operands.some(({ kind }) => kind === 'count')) return undefined;
  const columns = operands.filter((operand): operand is ColumnRef => operand.kind === 'column');
  return columns.every(isOwn) ? columns.map(({ name }) => name) : undefined;
}

/** Of the stored record, wherever in the condition it is read. */
const isOwn = ({ source, mask }: ColumnRef): boolean =>
  source.id === RECORD.id && source.state === 'stored' && mask === undefined;

function withSettled(cond: Condition, settled: ReadonlyMap<Condition, boolean>): Condition {
  switch (cond.kind) {
    case 'const':
      return cond;
    case 'and':
      return and(cond.items.map((item) => withSettled(item, settled)));
    case 'or':
      return or(cond.items.map((item) => withSettled(item, settled)));
    case 'exists':
      return existsOf({ ...cond, condition: withSettled(cond.condition, settled) });
    case 'test':
    case 'null': {
      const value = settled.get(cond);
      return value === undefined ? cond : { kind: 'const', value };
    }
  }
}
