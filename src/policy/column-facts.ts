/**
 * Which column of a record has which value. A condition requires values of the records that meet it
 * (`factsOf`), and values that are known before the database is asked decide parts of a
 * condition (`DecidableParts`). Filters, tenants, branches and estimates all ask this module;
 * `records/page` reads the facts and tests of a filter from here.
 */
import type { ColumnValues } from './branch.ts';
import {
  type ColumnRef,
  type Condition,
  type ConditionOperand,
  type Exists,
  type NullTest,
  RECORD,
  type SlotValue,
  type Test,
  type Value,
} from './condition.ts';
import { closures } from './emit/closures.ts';
import type { Predicate } from './emit/decision.ts';
import { slotReader, type Values } from './emit/value-places.ts';
import { and, existsOf, or } from './lower/simplify.ts';
import { isMember, OPERATORS } from './operators.ts';
import { areOfOneForm, scalarOf } from './scalar-types.ts';
import { NO_RELATED, type Row, type ValueType } from './types.ts';
import { own } from './values.ts';
import { nodesOf, readsTenants } from './visit.ts';

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

/** An index on the column begins or ends with its value. */
export function isBoundOf(part: Condition, column: string): boolean {
  if (part.kind !== 'test' || part.negated || OPERATORS[part.op].family !== 'order') return false;
  const { left, right } = part;
  const isOfRecord = left.kind === 'column' && left.source.id === RECORD.id && left.mask === undefined;
  return isOfRecord && left.column === column && (right.kind === 'literal' || right.kind === 'slot');
}

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
const ABSENT_LINK = '-';
const GIVEN_LINK = '$';

/** The parts of a condition that facts settle. */
export class DecidableParts {
  /** The tests that read nothing but the record itself and the request. */
  readonly #leaves: readonly DecidableLeaf[];
  /** The columns of the record by which related rows are found: known ones find the same rows for every record. */
  readonly #links: readonly string[];

  constructor(cond: Condition) {
    const nodes = nodesOf(cond);
    const leaves = nodes.filter((node) => node.kind === 'test' || node.kind === 'null');
    this.#leaves = [...new Set(leaves)].flatMap((leaf) => {
      const names = namesReadBy(leaf);
      return names === undefined ? [] : [{ leaf, names, predicate: closures(leaf) }];
    });
    this.#links = readsTenants(cond) ? [] : [...new Set(nodes.flatMap(linksIn))];
  }

  /** The outcome of each leaf and the state of each link, a character each; undefined where the facts settle none. */
  outcomes(facts: Facts, values: Values): string | undefined {
    let outcomes = '';
    let settlesSome = false;
    for (const { names, predicate } of this.#leaves) {
      const isKnown = names.every((name) => Object.hasOwn(facts, name));
      settlesSome ||= isKnown;
      outcomes += !isKnown ? UNDECIDED : predicate(values)(facts, NO_RELATED) ? TRUE_LEAF : FALSE_LEAF;
    }
    for (const name of this.#links) {
      const isKnown = Object.hasOwn(facts, name);
      settlesSome ||= isKnown;
      outcomes += !isKnown ? UNDECIDED : facts[name] === null ? ABSENT_LINK : GIVEN_LINK;
    }
    return settlesSome ? outcomes : undefined;
  }

  /** The values that the remainder has in slots of its own. */
  linkValues(facts: Facts): readonly unknown[] {
    return this.#links.map((name) => own(facts, name) ?? null).filter((value) => value !== null);
  }

  /**
   * The condition without the parts that the outcomes settle.
   * @param slots of the condition, after which those of the links follow
   */
  left(cond: Condition, outcomes: string, slots: number): Condition {
    const leaves = new Map<Condition, boolean>();
    this.#leaves.forEach(({ leaf }, i) => {
      if (outcomes[i] !== UNDECIDED) leaves.set(leaf, outcomes[i] === TRUE_LEAF);
    });
    const links = new Map<string, number | null>();
    let slot = slots;
    this.#links.forEach((name, i) => {
      const state = outcomes[this.#leaves.length + i];
      if (state === GIVEN_LINK) links.set(name, slot++);
      else if (state === ABSENT_LINK) links.set(name, null);
    });
    return withSettled(cond, { leaves, links });
  }
}

/** The column of the record by which the related rows of the node are found. */
function linksIn(node: Condition): readonly string[] {
  const column = node.kind === 'exists' ? keyOfRows(node) : node.kind === 'test' ? linkIn(node)?.outer : undefined;
  return column === undefined ? [] : [column.name];
}

/** Undefined: the rows are of the request, in the record, or a chain that begins with it. */
function keyOfRows({ key, relation }: Exists): ColumnRef | undefined {
  const areApart = relation.kind !== 'elements' && relation.kind !== 'ancestors';
  return areApart && key.kind === 'column' && isStoredColumn(key) ? key : undefined;
}

/** The column of a related row that is compared with one of the record. */
function linkIn({ op, left, right }: Test): { readonly inner: ColumnRef; readonly outer: ColumnRef } | undefined {
  if (left.kind !== 'column' || right.kind !== 'column' || OPERATORS[op].family !== 'equality') return undefined;
  if (isStoredColumn(left) === isStoredColumn(right) || !areOfOneForm(left.type, right.type)) return undefined;
  return isStoredColumn(left) ? { inner: right, outer: left } : { inner: left, outer: right };
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

interface Settled {
  readonly leaves: ReadonlyMap<Condition, boolean>;
  /** The slots of known columns of the record; null: they have no value. */
  readonly links: ReadonlyMap<string, number | null>;
}

function withSettled(cond: Condition, settled: Settled): Condition {
  const { leaves, links } = settled;
  const slotOf = (column: ColumnRef | undefined) => (column === undefined ? undefined : links.get(column.name));
  switch (cond.kind) {
    case 'const':
      return cond;
    case 'and':
      return and(cond.items.map((item) => withSettled(item, settled)));
    case 'or':
      return or(cond.items.map((item) => withSettled(item, settled)));
    case 'exists': {
      const slot = slotOf(keyOfRows(cond));
      if (slot === null) return { kind: 'const', value: cond.negated };
      return existsOf({ ...withKey(cond, slot), condition: withSettled(cond.condition, settled) });
    }
    case 'test': {
      const value = leaves.get(cond);
      if (value !== undefined) return { kind: 'const', value };
      const link = linkIn(cond);
      const slot = slotOf(link?.outer);
      if (slot === null) return { kind: 'const', value: false };
      if (slot !== undefined) return { ...cond, left: link!.inner, right: slotValue(link!.outer.type, slot) };
      // A count of no rows at all is another one.
      const counted = (side: ConditionOperand): ConditionOperand =>
        side.kind === 'count'
          ? { ...side, exists: withKey(side.exists, slotOf(keyOfRows(side.exists)) ?? undefined) }
          : side;
      return { ...cond, left: counted(cond.left), right: counted(cond.right) };
    }
    case 'null': {
      const value = leaves.get(cond);
      return value === undefined ? cond : { kind: 'const', value };
    }
  }
}

const withKey = (exists: Exists, slot: number | undefined): Exists =>
  slot === undefined ? exists : { ...exists, key: slotValue(exists.key.type, slot) };

const slotValue = (type: ValueType, slot: number): SlotValue => ({ kind: 'slot', type, slot, hasNoSuccessor: false });
