/**
 * The possible results of a condition (true, false, unknown), for any record and any request: never
 * too few, sometimes too many.
 */

import { OPERATORS } from '../operators.ts';
import { elementOf, gridOf, isNumeric } from '../scalar-types.ts';
import { gridTest, numberTest } from '../scalars/numerals.ts';
import type { Checked, CheckedCompare, CheckedOperand, CheckedQuantified, LiteralOperand } from '../types.ts';
import { boundedByField } from './field-bounds.ts';
import { CALLER, mayBeAbsent } from './resolve.ts';

export const CAN_BE_TRUE = 1;
export const CAN_BE_FALSE = 2;
export const CAN_BE_UNKNOWN = 4;
/** A set of outcomes, as bits. */
export type Outcomes = number;

interface Assumed {
  /** Operands that are known to be absent. */
  isAbsent(operand: CheckedOperand): boolean;
  /** The result of a comparison, if it is known. */
  readonly decide?: (compare: CheckedCompare) => boolean | undefined;
  /**
   * Every stored value is within the bounds and the enum that its field has now, though it may have
   * been written under others.
   */
  readonly isBounded: boolean;
}
const BY_DEFAULT: Assumed = { isAbsent: () => false, isBounded: true };

export function outcomes(checked: Checked, assumed: Partial<Assumed> = {}): Outcomes {
  return outcomesOf(checked, { ...BY_DEFAULT, ...assumed });
}

function outcomesOf(checked: Checked, assumed: Assumed): Outcomes {
  switch (checked.kind) {
    case 'const':
      return onlyOutcome(checked.value);
    case 'and':
      return checked.items.map((item) => outcomesOf(item, assumed)).reduce(both);
    case 'or':
      return negate(checked.items.map((item) => negate(outcomesOf(item, assumed))).reduce(both));
    case 'not':
      return negate(outcomesOf(checked.item, assumed));
    case 'is null':
      if (assumed.isAbsent(checked.operand)) return onlyOutcome(!checked.negated);
      return ofIsNull(checked.operand, checked.negated);
    case 'compare':
      return outcomesOfCompare(checked, assumed);
    case 'quantified':
      return ofQuantified(checked, assumed);
    case 'changed':
      return CAN_BE_TRUE | CAN_BE_FALSE;
  }
}

function negate(set: Outcomes): Outcomes {
  return (set & CAN_BE_TRUE ? CAN_BE_FALSE : 0) | (set & CAN_BE_FALSE ? CAN_BE_TRUE : 0) | (set & CAN_BE_UNKNOWN);
}

/** Kleene's `and` over every pair. */
function both(a: Outcomes, b: Outcomes): Outcomes {
  const canFail = (a | b) & CAN_BE_FALSE;
  const canHold = a & b & CAN_BE_TRUE;
  const isUnknown =
    (a & CAN_BE_UNKNOWN && b & (CAN_BE_TRUE | CAN_BE_UNKNOWN)) ||
    (b & CAN_BE_UNKNOWN && a & (CAN_BE_TRUE | CAN_BE_UNKNOWN));
  return canFail | canHold | (isUnknown ? CAN_BE_UNKNOWN : 0);
}

const isNullable = (operand: CheckedOperand): boolean => 'nullable' in operand && operand.nullable;

function ofIsNull(operand: CheckedOperand, negated: boolean): Outcomes {
  if (isNullable(operand)) return CAN_BE_TRUE | CAN_BE_FALSE;
  return onlyOutcome(negated);
}

const onlyOutcome = (result: boolean): Outcomes => (result ? CAN_BE_TRUE : CAN_BE_FALSE);

function outcomesOfCompare(compare: CheckedCompare, { isAbsent, decide, isBounded }: Assumed): Outcomes {
  const { op, left, right } = compare;
  const decided = decide?.(compare);
  if (decided !== undefined) return onlyOutcome(decided);
  const empty = right.kind === 'literal' && right.list && literalValues(right).length === 0;
  const operator = OPERATORS[op];
  if (empty && operator.family === 'list') return onlyOutcome(operator.negative === true);
  // An empty list does not contain an absent value either.
  const isList = left.kind === 'column' && elementOf(left.type) !== undefined;
  if (isAbsent(left) || isAbsent(right)) return isList ? CAN_BE_UNKNOWN | CAN_BE_FALSE : CAN_BE_UNKNOWN;
  // A needle of marks alone is absent in every operand.
  const isBlankable = operator.folds === true && right.kind !== 'literal';
  const absent = isNullable(left) || isNullable(right) || isBlankable ? CAN_BE_UNKNOWN : 0;
  return withinBounds(compare, ofPresentSides(compare), isBounded) | absent;
}

function withinBounds(compare: CheckedCompare, set: Outcomes, isBounded: boolean): Outcomes {
  const bounded = boundedByField(compare);
  if (bounded === undefined || (bounded.by !== undefined && !isBounded)) return set;
  const left = (bounded.canHold ? CAN_BE_TRUE : 0) | (bounded.canFail ? CAN_BE_FALSE : 0);
  return set & left || set;
}

export const literalValues = ({ value }: LiteralOperand): readonly (string | number | boolean)[] =>
  Array.isArray(value) ? value : [value as string | number | boolean];

/** The outcomes if both sides are present. */
function ofPresentSides({ op, left, right }: CheckedCompare): Outcomes {
  if (left.kind === 'literal' && right.kind === 'literal') return ofLiterals(op, left, right);
  const operator = OPERATORS[op];
  if (sameColumn(left, right)) return operator.negative || operator.strict ? CAN_BE_FALSE : CAN_BE_TRUE;
  if (right.kind !== 'literal' || left.kind !== 'column') return CAN_BE_TRUE | CAN_BE_FALSE;
  const grid = gridOf(left.type);
  if (grid !== undefined && typeof right.value === 'string') {
    const test = gridTest(grid, op, right.value);
    if (typeof test === 'boolean') return onlyOutcome(test);
  }
  if (isNumeric(left.type) && typeof right.value === 'number') {
    const test = numberTest(left.type, op, { value: right.value, exact: right.exact as string | undefined });
    if (typeof test === 'boolean') return onlyOutcome(test);
  }
  return CAN_BE_TRUE | CAN_BE_FALSE;
}

function ofLiterals(op: CheckedCompare['op'], left: LiteralOperand, right: LiteralOperand): Outcomes {
  if (left.exact !== undefined || right.exact !== undefined) return CAN_BE_TRUE | CAN_BE_FALSE;
  return onlyOutcome(OPERATORS[op].holds(left.value as string, right.value as string, left.type));
}

function sameColumn(left: CheckedOperand, right: CheckedOperand): boolean {
  return left.kind === 'column' && right.kind === 'column' && identity(left) === identity(right);
}

/** Equal for operands that are the same value, wherever they are written. */
export function identity(operand: CheckedOperand): string {
  return JSON.stringify(operand, (key, value: unknown) => (key === 'span' ? undefined : value));
}

function ofQuantified({ quantifier, path, condition }: CheckedQuantified, assumed: Assumed): Outcomes {
  if (path.scope.kind === 'request' && assumed.isAbsent(path.scope.operand)) return CAN_BE_UNKNOWN;
  const absent = mayBeAbsent(path) || path.relation.kind === 'ancestors' ? CAN_BE_UNKNOWN : 0;
  const inner = outcomesOf(condition, assumed);
  switch (quantifier) {
    case 'any':
      return absent | CAN_BE_FALSE | (inner & (CAN_BE_TRUE | CAN_BE_UNKNOWN));
    case 'none':
      return absent | CAN_BE_TRUE | (inner & CAN_BE_TRUE ? CAN_BE_FALSE : 0) | (inner & CAN_BE_UNKNOWN);
    case 'all':
      return absent | CAN_BE_TRUE | (inner & (CAN_BE_FALSE | CAN_BE_UNKNOWN));
  }
}

export const canBe = (set: Outcomes, outcome: Outcomes): boolean => (set & outcome) !== 0;

/** A value that every caller whom the rules are asked about has. */
export const isAlwaysKnown = (operand: CheckedOperand): boolean =>
  operand.kind === 'request' &&
  ((operand.source === 'auth' && CALLER.has(operand.name)) ||
    (operand.source === 'fact' && operand.name !== 'request.origin'));
