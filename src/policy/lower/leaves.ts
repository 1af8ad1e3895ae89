/**
 * Leaves of the lowered form: a column against a value of the policy or of the request, and the
 * negation of a leaf.
 */
import { invariant } from '../../invariant.ts';
import {
  type ColumnRef,
  type Condition,
  type ConditionOperand,
  type CountRef,
  type Exists,
  FALSE,
  type Test,
  TRUE,
} from '../condition.ts';
import { isHoistable } from '../hoisting.ts';
import { OPERATORS, orderOf } from '../operators.ts';
import { elementOf, gridOf, isNumeric, isText, isWhole } from '../scalar-types.ts';
import { canEqual, gridTest, isOnGrid, numberTest } from '../scalars/numerals.ts';
import type { LiteralOperand, ValueType } from '../types.ts';
import type { Scalar } from '../values.ts';
import { and, booleanTest, existsOf, isPresent, listTest, or } from './simplify.ts';
import { type Binding, EMPTY, type PlannedOperand, WITHOUT_SUCCESSOR } from './specialise.ts';

export const constant = (value: boolean): Condition => (value ? TRUE : FALSE);

type States = Binding['states'];
/** How the request value turned out; undefined for other operands. */
export const stateOf = (operand: PlannedOperand, states: States): number | undefined =>
  operand.kind === 'slot' ? states[operand.slot] : undefined;

/** An empty list contains nothing, not even an absent value. */
export function settledByRequest(op: Test['op'], operand: PlannedOperand, states: States): boolean | undefined {
  const isEmpty =
    operand.kind === 'literal'
      ? Array.isArray(operand.value) && operand.value.length === 0
      : stateOf(operand, states) === EMPTY;
  return isEmpty ? OPERATORS[op].negative === true : undefined;
}

interface Meeting {
  readonly column: ColumnRef | CountRef;
  readonly states: States;
}

interface ComparedValue extends Meeting {
  readonly value: PlannedOperand;
}

export function valueTest(
  { op, negated }: Pick<Test, 'op' | 'negated'>,
  { column, value, states }: ComparedValue,
): Condition {
  const { family, negative, direction, strict } = OPERATORS[op];
  const member = negative !== true;
  const test = (right: ConditionOperand, as = op): Condition => ({
    kind: 'test',
    op: as,
    negated,
    left: column,
    right,
  });
  const { type } = column;
  const grid = gridOf(type);
  if (value.kind === 'literal' && grid !== undefined) {
    if (value.list) {
      const elements = (value.value as readonly string[]).filter((element) => isOnGrid(grid, element));
      return listTest({ column, type, elements, member });
    }
    const result = gridTest(grid, op, value.value as string);
    if (typeof result === 'boolean') return result ? isPresent(column) : FALSE;
    return test({ kind: 'literal', type, value: result.value }, result.op);
  }
  if (value.kind === 'literal' && isNumeric(type)) {
    if (value.list) return listTest({ column, type, elements: numericElements(type, value), member });
    const result = numberTest(type, op, { value: value.value as number, exact: value.exact as string | undefined });
    if (typeof result === 'boolean') return result ? isPresent(column) : FALSE;
    if (column.kind === 'count') return countTest(column, result.op, result.value);
    return test({ kind: 'literal', type, value: result.value }, result.op);
  }
  const right = valueFor(value, { column, states });
  if (right.kind === 'literal' && Array.isArray(right.value))
    return listTest({ column, type: right.type, elements: right.value as readonly Scalar[], member });
  if (family === 'equality') return booleanTest({ kind: 'test', op, negated, left: column, right });
  if (
    direction !== undefined &&
    right.kind === 'slot' &&
    isWhole(type) &&
    value.kind === 'slot' &&
    !isWhole(value.operand.type)
  ) {
    return test({ ...right, adapt: (direction === 'up') !== (strict === true) ? 'ceil' : 'floor' });
  }
  return test(right);
}

/** A count is never negative. Tests for none, and for at least one, become a semi-join. */
function countTest(count: CountRef, op: Test['op'], value: number): Condition {
  const { direction, strict, negative } = OPERATORS[op];
  if (direction === undefined) {
    const member = negative !== true;
    if (value < 0) return member ? FALSE : isPresent(count);
    if (value === 0) return member ? noneOf(count) : atLeastOne(count);
    return boundedCount(count, op, value);
  }
  const least = direction === 'up' ? (strict ? value + 1 : value) : strict ? value : value + 1;
  const up = direction === 'up';
  if (least <= 0) return up ? isPresent(count) : FALSE;
  if (least === 1) return up ? atLeastOne(count) : noneOf(count);
  return boundedCount(count, op, value);
}

function noneOf({ exists }: CountRef): Condition {
  return existsOf({ ...exists, negated: true, ...(exists.relation.kind === 'ancestors' && { beyond: true }) });
}

/** The chain of ancestors is climbed once, unless an index finds what is below such an ancestor. */
function atLeastOne(count: CountRef): Condition {
  if (count.exists.relation.kind === 'ancestors' && !isHoistable(count.exists))
    return boundedCount(count, orderOf('up', false), 1);
  return and([isPresent(count), existsOf(count.exists)]);
}

const boundedCount = (count: CountRef, op: Test['op'], value: number): Condition => ({
  kind: 'test',
  op,
  negated: false,
  left: { ...count, limit: value + 1 },
  right: { kind: 'literal', type: 'int', value },
});

/**
 * Casts the value to the column's type, so that the column is never cast. The exception is an id
 * compared with a string that may not be an id.
 */
export function valueFor(operand: PlannedOperand, { column, states }: Meeting): ConditionOperand {
  invariant(operand.kind !== 'column' && operand.kind !== 'count', 'a value is not of a record');
  const own: ValueType = operand.kind === 'slot' ? operand.operand.type : operand.type;
  const met = elementOf(column.type) ?? column.type;
  const type = typeof met === 'object' && isText(own) ? own : met;
  if (operand.kind === 'literal') return { kind: 'literal', type, value: operand.value };
  const state = states[operand.slot];
  if (isWhole(met) && !isWhole(own))
    return { kind: 'slot', type, slot: operand.slot, adapt: 'whole', hasNoSuccessor: false };
  return { kind: 'slot', type, slot: operand.slot, hasNoSuccessor: state === WITHOUT_SUCCESSOR };
}

/** `N(c)`: c is not definitely true. Two-valued, because an unknown leaf counts as not true. */
export function complementOf(cond: Condition): Condition {
  switch (cond.kind) {
    case 'const':
      return constant(!cond.value);
    case 'and':
      return or(cond.items.map(complementOf));
    case 'or':
      return and(cond.items.map(complementOf));
    case 'null':
      return { ...cond, negated: !cond.negated };
    case 'exists':
      // The row is certain to exist, so the condition inside is negated, and the semi-join stays one.
      if (isCertain(cond)) return existsOf({ ...cond, condition: complementOf(cond.condition) });
      return { ...cond, negated: !cond.negated };
    case 'test':
      return or([complementTest(cond), ...[cond.left, cond.right].map(isAbsent)]);
  }
}

const isCertain = ({ relation, key, negated, guard }: Exists): boolean =>
  relation.kind === 'belongs_to' && key.kind === 'column' && !key.nullable && !negated && guard === undefined;

function complementTest(test: Test): Condition {
  const op = OPERATORS[test.op].complement;
  if (op === undefined) return { ...test, negated: !test.negated };
  return booleanTest({ ...test, op, left: complementOperand(test.left) });
}

/** If a chain of ancestors goes on, neither a test of their count nor its complement may be definitely true. */
function complementOperand(operand: ConditionOperand): ConditionOperand {
  if (operand.kind !== 'count' || operand.exists.relation.kind !== 'ancestors') return operand;
  const { beyond, ...count } = operand;
  return beyond ? count : { ...count, beyond: true };
}

const isAbsent = (operand: ConditionOperand): Condition =>
  operand.kind === 'column' && operand.nullable ? { kind: 'null', negated: false, column: operand } : FALSE;

/** The elements that an int column, or a float column, can equal. */
function numericElements(type: ValueType, literal: LiteralOperand): readonly Scalar[] {
  const { value, exact } = literal;
  return (value as readonly number[]).filter((element, i) => canEqual(type, { value: element, exact: exact?.[i] }));
}
