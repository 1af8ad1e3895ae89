/**
 * Which column of a record has which value. A condition requires values of the records that meet it
 * (`factsOf`), and values that are known before the database is asked decide parts of a
 * condition (`DecidableLeaves`). Filters, tenants, branches and estimates all ask this module;
 * `records/page` reads the facts and tests of a filter from here.
 */
import type { ColumnValues } from './branch.ts';
import { type ColumnRef, type Condition, type NullTest, RECORD, type Test, type Value } from './condition.ts';
import { closures } from './emit/closures.ts';
import type { Predicate } from './emit/decision.ts';
import { slotReader, type Values } from './emit/value-places.ts';
import { and, existsOf, or } from './lower/simplify.ts';
import { isMember, OPERATORS } from './operators.ts';
import { areOfOneForm, scalarOf } from './scalar-types.ts';
import { NO_RELATED, type Row } from './types.ts';
import { nodesOf } from './visit.ts';

// ---------------------------------------------------------------- the requirements of a condition

/** A test for one value of a column, or for the elements of a list. */
export interface ValueTest extends Test {
  readonly left: ColumnRef;
  readonly right: Value;
}

/** `source`: the row that has the column. A column that is hidden in some records proves nothing about them. */
export function isValueTest(cond: Condition, source = RECORD.id): cond is ValueTest {
  if (cond.kind !== 'test' || cond.negated || !isMember(OPERATORS[cond.op])) return false;
  const { left, right } = cond;
  if (left.kind !== 'column' || left.source.id !== source || left.mask !== undefined || left.part) return false;
  return (right.kind === 'literal' || right.kind === 'slot') && areOfOneForm(left.type, right.type);
}

export const isOfOneValue = ({ op }: ValueTest): boolean => OPERATORS[op].family === 'equality';

/** The column of the test, for estimates. */
export const columnTested = ({ left }: ValueTest): Pick<ColumnValues, 'column' | 'isId'> =>
  left.name === 'id' ? { column: left.column, isId: true } : { column: left.column };

export function valuesOfTest({ right }: ValueTest, values: Values): readonly unknown[] {
  const value = right.kind === 'slot' ? slotReader(right)(values) : right.value;
  return Array.isArray(value) ? value : [value];
}

interface ColumnFact {
  readonly column: ColumnRef;
  /** Null is absent. */
  readonly value: unknown;
}

export type FactsOf = (values: Values) => readonly ColumnFact[];

/** Every record that meets the condition, stored or being created, has each of these values. */
export function factsOf(cond: Condition): FactsOf {
  switch (cond.kind) {
    case 'and': {
      const items = cond.items.map(factsOf);
      return (values) => items.flatMap((facts) => facts(values));
    }
    case 'or': {
      const items = cond.items.map(factsOf);
      return (values) => {
        const branches = items.map((facts) => facts(values));
        return inAll(branches, (a, b) => a.column.column === b.column.column && a.value === b.value);
      };
    }
    case 'null': {
      const facts = !cond.negated && isColumnOfRecord(cond.column) ? [{ column: cond.column, value: null }] : [];
      return () => facts;
    }
    case 'test':
      return equalityFactsOf(cond);
    case 'const':
    case 'exists':
      return () => [];
  }
}

function equalityFactsOf(cond: Condition): FactsOf {
  if (!isValueTest(cond) || !isOfOneValue(cond)) return () => [];
  const valueIn = storedValueOf(cond);
  return (values) => {
    const value = valueIn(values);
    return value === undefined ? [] : [{ column: cond.left, value }];
  };
}

/** The value that the column has to have. Undefined: it can have none, as an int never equals a number with a fraction. */
export function storedValueOf({ left, right }: ValueTest): (values: Values) => unknown {
  const { readJson, readStored = readJson } = scalarOf(left.type);
  return (values) => {
    const value = right.kind === 'literal' ? right.value : values[right.slot];
    return readStored(value) === undefined ? undefined : value;
  };
}

/** The elements of the first list that every other list has too. */
export function inAll<T>(lists: readonly (readonly T[])[], isSame: (a: T, b: T) => boolean): readonly T[] {
  const [first = [], ...others] = lists;
  return first.filter((each) => others.every((list) => list.some((other) => isSame(each, other))));
}

/** A predicate reads a part of a json field in the whole value, which a fact about the part does not give. */
const isColumnOfRecord = ({ source, mask, part }: ColumnRef): boolean =>
  source.id === RECORD.id && mask === undefined && part === undefined;

// ---------------------------------------------------------------- the remainder of a condition under known values

/** Values of the record's own fields, belongs_tos and id, by name; null is absent. Other members are not known. */
export type Facts = Row;

type Leaf = Test | NullTest;

interface DecidableLeaf {
  readonly leaf: Leaf;
  readonly names: readonly string[];
  /** Agrees with the database. */
  readonly predicate: Predicate;
}

const UNDECIDED = '?';
const TRUE_LEAF = '1';
const FALSE_LEAF = '0';

/** The tests of a condition that read nothing but the record itself and the request. */
export class DecidableLeaves {
  readonly #leaves: readonly DecidableLeaf[];

  constructor(cond: Condition) {
    const leaves = nodesOf(cond).filter((node) => node.kind === 'test' || node.kind === 'null');
    this.#leaves = [...new Set(leaves)].flatMap((leaf) => {
      const names = namesReadBy(leaf);
      return names === undefined ? [] : [{ leaf, names, predicate: closures(leaf) }];
    });
  }

  /** The outcome of each leaf, a character each; undefined where the facts decide none. */
  outcomes(facts: Facts, values: Values): string | undefined {
    let outcomes = '';
    let decidesSome = false;
    for (const { names, predicate } of this.#leaves) {
      const isKnown = names.every((name) => Object.hasOwn(facts, name));
      decidesSome ||= isKnown;
      outcomes += !isKnown ? UNDECIDED : predicate(values)(facts, NO_RELATED) ? TRUE_LEAF : FALSE_LEAF;
    }
    return decidesSome ? outcomes : undefined;
  }

  /** The condition without the leaves that the outcomes settle. */
  left(cond: Condition, outcomes: string): Condition {
    const settled = new Map<Condition, boolean>();
    this.#leaves.forEach(({ leaf }, i) => {
      if (outcomes[i] !== UNDECIDED) settled.set(leaf, outcomes[i] === TRUE_LEAF);
    });
    return withSettled(cond, settled);
  }
}

/** Undefined where the leaf reads other rows too. */
function namesReadBy(leaf: Leaf): readonly string[] | undefined {
  const operands = leaf.kind === 'null' ? [leaf.column] : [leaf.left, leaf.right];
  if (operands.some(({ kind }) => kind === 'count')) return undefined;
  const columns = operands.filter((operand): operand is ColumnRef => operand.kind === 'column');
  return columns.every(isStoredColumn) ? columns.map(({ name }) => name) : undefined;
}

/** Facts are about the stored record, wherever in the condition it is read. */
const isStoredColumn = (column: ColumnRef): boolean => isColumnOfRecord(column) && column.source.state === 'stored';

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
