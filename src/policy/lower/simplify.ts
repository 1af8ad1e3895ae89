/**
 * `and`, `or` and `existsOf` build conditions and keep them small: they remove constants and
 * duplicates, flatten chains, and merge alternatives of one column into a list. Every step is valid
 * for three-valued leaves read as "definitely true".
 */
import {
  type ColumnRef,
  type Condition,
  type ConditionOperand,
  type CountRef,
  type Exists,
  FALSE,
  type Junction,
  type NullTest,
  type SlotValue,
  type Source,
  type Test,
  TRUE,
} from '../condition.ts';
import { equalityOf, isMember, isNonMember, membershipOf, OPERATORS, rank } from '../operators.ts';
import { isTo, isTruth } from '../scalar-types.ts';
import type { ValueType } from '../types.ts';
import type { Scalar } from '../values.ts';
import { columnsOf, conjunctsOf, withColumns } from '../visit.ts';

type Kind = Junction['kind'];
const other = (kind: Kind): Kind => (kind === 'and' ? 'or' : 'and');

export const and = (items: readonly Condition[]): Condition => junction('and', items);
export const or = (items: readonly Condition[]): Condition => junction('or', items);

export function isPresent(column: ColumnRef | CountRef | SlotValue): Condition {
  if (column.kind === 'count') return isWholeChain(column.exists);
  return column.kind === 'column' && column.nullable ? { kind: 'null', negated: true, column } : TRUE;
}

/** No ancestor is beyond the last that counts. */
function isWholeChain(exists: Exists): Condition {
  if (exists.relation.kind !== 'ancestors') return TRUE;
  return { ...exists, condition: FALSE, negated: true, beyond: true };
}

/**
 * A belongs_to that is only tested for existence becomes a test of its foreign key; a constant
 * needs no semi-join.
 */
export function existsOf(exists: Exists): Condition {
  const { negated, condition, relation, key, guard } = exists;
  if (condition.kind !== 'const') return stepBefore(exists);
  if (!condition.value) return exists.beyond ? exists : negated ? TRUE : FALSE;
  if (guard !== undefined) return exists;
  // The first of the ancestors is the record whose id the key holds.
  const isToOne = relation.kind === 'belongs_to' || relation.kind === 'ancestors';
  if (!isToOne || key.kind === 'slot') return exists;
  if (key.nullable) return { kind: 'null', negated: !negated, column: key };
  return negated ? FALSE : TRUE;
}

function junction(kind: Kind, given: readonly Condition[]): Condition {
  const absorbing = kind === 'and' ? FALSE : TRUE;
  const items: Condition[] = [];
  for (const item of given) {
    if (item.kind === kind) items.push(...item.items);
    else if (item.kind !== 'const') items.push(item);
    else if (item.value === absorbing.value) return absorbing;
  }
  if (items.length === 0) return kind === 'and' ? TRUE : FALSE;
  if (items.length === 1) return items[0]!;
  const smaller = combine(kind, items);
  if (smaller !== undefined) return junction(kind, smaller);
  // Conditions that read no other table come first.
  return { kind, items: items.toSorted((a, b) => costOf(a) - costOf(b)) };
}

function costOf(cond: Condition): number {
  if (cond.kind === 'exists' || (cond.kind === 'test' && cond.left.kind === 'count')) return 2;
  return cond.kind === 'and' || cond.kind === 'or' ? 1 + Math.max(...cond.items.map(costOf)) : 0;
}

/** Takes one step towards fewer items; undefined if there is none. */
function combine(kind: Kind, items: readonly Condition[]): readonly Condition[] | undefined {
  const keys = items.map((item) => keyOfCondition(item));
  const known = new Set(keys);
  if (known.size < items.length) return items.filter((_, i) => keys.indexOf(keys[i]!) === i);
  const kept = items.filter((item) => !isAbsorbed(kind, item, known));
  if (kept.length < items.length) return kept;
  const walked = withSharedWalks(kind, items);
  if (walked.length < items.length) return walked;
  const merged = withMergedLeaves(kind, items);
  return merged.length < items.length ? merged : undefined;
}

/** `a or (a and b)` is `a`, `a and (a or b)` is `a`. */
function isAbsorbed(kind: Kind, item: Condition, known: ReadonlySet<string>): boolean {
  return item.kind === other(kind) && item.items.some((part) => known.has(keyOfCondition(part)));
}

// ---------------------------------------------------------------- walks

const isToOneExists = (item: Condition): item is Exists =>
  item.kind === 'exists' && (item.relation.kind === 'belongs_to' || item.relation.kind === 'has_one');

/**
 * A part that depends on no element comes before the elements, once for each record: so does the test of an element's
 * reference to the record. `any(@request.auth.tasks as v, v.team = @record.doc.team)`: the doc is looked up first, and its
 * team is then compared with a list of keys that the caller alone decides.
 */
function stepBefore(exists: Exists): Condition {
  const { negated, relation, source } = exists;
  if (negated || (relation.kind !== 'has_many' && relation.kind !== 'many_to_many')) return exists;
  const items = conjunctsOf(withOwnKey(exists));
  const isOfElement = (item: Condition): boolean => columnsOf(item).some((column) => column.source.id === source.id);
  const [within, beside] = [true, false].map((is) => items.filter((item) => isOfElement(item) === is));
  if (beside!.length > 0) return and([...beside!, existsOf({ ...exists, condition: and(within!) })]);
  const at = items.findIndex(
    (item) => isToOneExists(item) && !item.negated && item.key.kind === 'column' && item.key.source.id !== source.id,
  );
  if (at < 0) return exists;
  const step = items[at] as Exists;
  const element = existsOf({ ...exists, condition: and([...items.toSpliced(at, 1), step.condition]) });
  return existsOf({ ...step, condition: element });
}

/** The condition on the elements, whose reference to the record is the key by which they are found. */
function withOwnKey({ condition, relation, source, key, by }: Exists): Condition {
  if (relation.kind !== 'has_many' || by !== 'owner' || key.kind === 'slot') return condition;
  const isReference = (column: ColumnRef): boolean =>
    column.source.id === source.id && column.column === relation.viaColumn && column.mask === undefined;
  // The key of a step leads from a row that was loaded with it.
  return withColumns(condition, (column) => (isReference(column) ? key : column), true);
}

/** There is at most one row after a to-one step, so all conditions on it are merged. */
function withSharedWalks(kind: Kind, items: readonly Condition[]): readonly Condition[] {
  const walks = new Map<string, Exists[]>();
  for (const item of items) {
    if (!isToOneExists(item)) continue;
    const step = `${item.negated} ${item.from}.${item.relation.name} ${operandKey(item.key)}`;
    const known = walks.get(step);
    if (known === undefined) walks.set(step, [item]);
    else known.push(item);
  }
  const shared = [...walks.values()].map((group) => sharedWalk(kind, group));
  return walks.size === 0 ? items : [...items.filter((item) => !isToOneExists(item)), ...shared];
}

function sharedWalk(kind: Kind, group: readonly Exists[]): Condition {
  const [first, ...others] = group as readonly [Exists, ...Exists[]];
  if (others.length === 0) return first;
  const conditions = others.map(({ source, condition }) => withSource(condition, source.id, first.source));
  return existsOf({
    ...first,
    condition: junction(first.negated ? other(kind) : kind, [first.condition, ...conditions]),
  });
}

/** The condition about the row `to` in the place of the row with the id `from`. */
const withSource = (cond: Condition, from: number, to: Source): Condition =>
  withColumns(cond, (column) => (column.source.id === from ? { ...column, source: to } : column));

// ---------------------------------------------------------------- leaves of one column

function withMergedLeaves(kind: Kind, items: readonly Condition[]): readonly Condition[] {
  const merged: Condition[] = [];
  for (const item of items) {
    let result: Condition | undefined;
    const at = merged.findIndex((known) => {
      result = mergeOf(kind, known, item);
      return result !== undefined;
    });
    if (at < 0) merged.push(item);
    else merged[at] = result!;
  }
  return merged;
}

function mergeOf(kind: Kind, a: Condition, b: Condition): Condition | undefined {
  if (a.kind === 'null') return mergeNull(kind, a, b);
  if (b.kind === 'null') return mergeNull(kind, b, a);
  return a.kind === 'test' && b.kind === 'test' ? mergeTests(kind, a, b) : undefined;
}

export const isSameColumn = (a: ColumnRef, b: ColumnRef): boolean =>
  a.source.id === b.source.id && a.column === b.column;

function mergeNull(kind: Kind, a: NullTest, b: Condition): Condition | undefined {
  if (b.kind === 'null') {
    if (!isSameColumn(a.column, b.column)) return undefined;
    // Equal ones too: a merge may produce a duplicate of its neighbour.
    if (a.negated === b.negated) return a;
    return kind === 'and' ? FALSE : TRUE;
  }
  const implied = b.kind === 'test' ? [b.left, b.right] : b.kind === 'exists' && !b.negated ? [b.key] : [];
  if (!implied.some((side) => side.kind === 'column' && isSameColumn(side, a.column))) return undefined;
  // A test that holds has both sides present, so "is present" beside it is redundant in `and`, and
  // implied in `or`.
  if (a.negated) return kind === 'and' ? b : a;
  return kind === 'and' ? FALSE : undefined;
}

interface ColumnTest extends Test {
  readonly left: ColumnRef;
}
const isOnColumn = (test: Test): test is ColumnTest => test.left.kind === 'column' && !test.negated;

function mergeTests(kind: Kind, a: Test, b: Test): Condition | undefined {
  if (!isOnColumn(a) || !isOnColumn(b) || !isSameColumn(a.left, b.left)) return undefined;
  if (OPERATORS[a.op].complement === b.op && operandKey(a.right) === operandKey(b.right))
    return kind === 'and' ? FALSE : bothPresent(a);
  if (a.right.kind !== 'literal' || b.right.kind !== 'literal' || !isSameType(a.right.type, b.right.type))
    return undefined;
  return mergeLists(kind, a, b) ?? mergeBounds(kind, a, b);
}

const isSameType = (a: ValueType, b: ValueType): boolean => (isTo(a) && isTo(b) ? a.id === b.id : a === b);

function bothPresent(test: Test): Condition {
  return and([test.left, test.right].map((side) => (side.kind === 'column' ? isPresent(side) : TRUE)));
}

const listedValues = ({ right }: Test): readonly Scalar[] => {
  const value = right.kind === 'literal' ? right.value : [];
  return typeof value === 'object' ? value : [value];
};

/**
 * `or`: the alternatives of `=` and `in` are one list. `and`: what `!=` and `not in` exclude is one
 * list, what `=` and `in` both allow is another.
 */
function mergeLists(kind: Kind, a: ColumnTest, b: ColumnTest): Condition | undefined {
  const [one, two] = [OPERATORS[a.op], OPERATORS[b.op]];
  const member = isMember(one);
  const isMerged = member ? isMember(two) : isNonMember(one) && isNonMember(two);
  if (!isMerged) return undefined;
  const [x, y] = [listedValues(a), listedValues(b)];
  const elements = (kind === 'or') === member ? [...x, ...y] : x.filter((value) => y.includes(value));
  return listTest({ column: a.left, type: a.right.type, elements, member });
}

export interface ListTest {
  readonly column: ColumnRef | CountRef;
  readonly type: ValueType;
  readonly elements: readonly Scalar[];
  /** `in`, or `not in`. */
  readonly member: boolean;
}

/** Tests for `in` (`not in`) the remaining literals of a non-empty list: a null column is neither. */
export function listTest({ column, type, elements: given, member }: ListTest): Condition {
  const elements = [...new Set(given)];
  const [first] = elements;
  if (first === undefined) return member ? FALSE : isPresent(column);
  if (isTruth(type) && elements.length === 2) return member ? isPresent(column) : FALSE;
  const base = { kind: 'test', negated: false, left: column } as const;
  if (elements.length > 1)
    return { ...base, op: membershipOf(member), right: { kind: 'literal', type, value: elements } };
  return booleanTest({ ...base, op: equalityOf(member), right: { kind: 'literal', type, value: first } });
}

/** Equivalent tests get one form: `pinned != true` is `pinned = false`. */
export function booleanTest(test: Test): Test {
  const { op, right } = test;
  const { family, negative } = OPERATORS[op];
  if (family !== 'equality' || !negative || right.kind !== 'literal' || typeof right.value !== 'boolean') return test;
  return { ...test, op: equalityOf(true), right: { ...right, value: !right.value } };
}

/** Two bounds of one direction: `and` keeps the narrower, `or` the wider. No value is between bounds that cross. */
function mergeBounds(kind: Kind, a: ColumnTest, b: ColumnTest): Condition | undefined {
  const [one, two] = [OPERATORS[a.op], OPERATORS[b.op]];
  if (one.direction === undefined || two.direction === undefined) return undefined;
  const [x, y] = [listedValues(a)[0]!, listedValues(b)[0]!];
  const order = one.direction === 'up' ? rank(x, y, a.left.type) : rank(y, x, a.left.type);
  const aIsStrict = one.strict === true;
  if (one.direction !== two.direction) {
    const areCrossed = order > 0 || (order === 0 && (aIsStrict || two.strict === true));
    return kind === 'and' && areCrossed ? FALSE : undefined;
  }
  const aIsNarrower = order === 0 ? aIsStrict : order > 0;
  return aIsNarrower === (kind === 'and') ? a : b;
}

// ---------------------------------------------------------------- identity

/**
 * Equal for conditions that say the same of the same rows; the rows that an `exists` binds are
 * named by their depth.
 */
export function keyOfCondition(cond: Condition, bound: readonly number[] = []): string {
  switch (cond.kind) {
    case 'const':
      return String(cond.value);
    case 'and':
    case 'or':
      return `${cond.kind}(${cond.items.map((item) => keyOfCondition(item, bound)).join()})`;
    case 'test':
      return `${cond.negated ? '!' : ''}${cond.op}(${operandKey(cond.left, bound)},${operandKey(cond.right, bound)})`;
    case 'null':
      return `${cond.negated ? '!' : ''}null(${operandKey(cond.column, bound)})`;
    case 'exists': {
      const inner = keyOfCondition(cond.condition, [...bound, cond.source.id]);
      return `${cond.negated ? '!' : ''}exists(${existsKey(cond)},${operandKey(cond.key, bound)},${inner})`;
    }
  }
}

const existsKey = ({ from, relation: { kind, name }, beyond }: Exists): string =>
  kind === 'ancestors' ? `ancestors ${from}.${name} ${beyond === true}` : `${from}.${name}`;

function operandKey(operand: ConditionOperand, bound: readonly number[] = []): string {
  if (operand.kind === 'literal') return JSON.stringify([operand.value, operand.type]);
  if (operand.kind === 'slot') return `$${operand.slot}${operand.adapt ?? ''}`;
  if (operand.kind === 'count')
    return `count(${keyOfCondition(operand.exists, bound)},${operand.limit ?? ''},${operand.beyond === true})`;
  const depth = bound.indexOf(operand.source.id);
  return `${depth < 0 ? `#${operand.source.id}` : `^${depth}`}.${operand.column}`;
}
