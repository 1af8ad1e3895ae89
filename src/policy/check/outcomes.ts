/** Which of true, false and unknown a condition can come to, for any record and any request: never too few, sometimes too many. */
import { numberTest } from '../numerals.ts';
import { isMember, OPERATORS } from '../operators.ts';
import type { Checked, CheckedCompare, CheckedOperand, CheckedQuantified, LiteralOperand } from '../types.ts';
import { mayBeAbsent } from './resolve.ts';

export const TRUE = 1;
export const FALSE = 2;
export const UNKNOWN = 4;
/** A set of outcomes, as bits. */
export type Outcomes = number;

export function outcomes(checked: Checked): Outcomes {
  switch (checked.kind) {
    case 'const':
      return checked.value ? TRUE : FALSE;
    case 'and':
      return checked.items.map(outcomes).reduce(both);
    case 'or':
      return negate(checked.items.map((item) => negate(outcomes(item))).reduce(both));
    case 'not':
      return negate(outcomes(checked.item));
    case 'is null':
      return ofIsNull(checked.operand, checked.negated);
    case 'compare':
      return ofCompare(checked);
    case 'quantified':
      return ofQuantified(checked);
    case 'changed':
      return TRUE | FALSE;
  }
}

function negate(set: Outcomes): Outcomes {
  return (set & TRUE ? FALSE : 0) | (set & FALSE ? TRUE : 0) | (set & UNKNOWN);
}

/** Kleene's `and` over every pair. */
function both(a: Outcomes, b: Outcomes): Outcomes {
  const canFail = (a | b) & FALSE;
  const canHold = a & b & TRUE;
  const isUnknown = (a & UNKNOWN && b & (TRUE | UNKNOWN)) || (b & UNKNOWN && a & (TRUE | UNKNOWN));
  return canFail | canHold | (isUnknown ? UNKNOWN : 0);
}

const isNullable = (operand: CheckedOperand): boolean => 'nullable' in operand && operand.nullable;

function ofIsNull(operand: CheckedOperand, negated: boolean): Outcomes {
  if (isNullable(operand)) return TRUE | FALSE;
  return negated ? TRUE : FALSE;
}

function ofCompare(compare: CheckedCompare): Outcomes {
  const { op, left, right } = compare;
  const empty = right.kind === 'literal' && right.list && listOf(right).length === 0;
  const operator = OPERATORS[op];
  if (empty && operator.family === 'list') return operator.negative ? TRUE : FALSE;
  const absent = isNullable(left) || isNullable(right) ? UNKNOWN : 0;
  return present(compare) | absent;
}

const listOf = (literal: LiteralOperand): readonly (string | number | boolean)[] =>
  Array.isArray(literal.value) ? literal.value : [literal.value as string | number | boolean];

/** The outcomes for sides that are there. */
function present({ op, left, right }: CheckedCompare): Outcomes {
  if (left.kind === 'literal' && right.kind === 'literal') return ofLiterals(op, left, right);
  const operator = OPERATORS[op];
  if (sameColumn(left, right)) return operator.negative || operator.strict ? FALSE : TRUE;
  if (right.kind !== 'literal' || left.kind !== 'column') return TRUE | FALSE;
  if (right.list) return ofEnum(left, listOf(right), isMember(operator));
  if (left.type === 'int' && typeof right.value === 'number' && (right.type === 'int' || right.type === 'float')) {
    const test = numberTest('int', op, { value: right.value, exact: right.exact as string | undefined });
    if (typeof test === 'boolean') return test ? TRUE : FALSE;
  }
  return operator.family === 'equality' ? ofEnum(left, listOf(right), isMember(operator)) : TRUE | FALSE;
}

function ofLiterals(op: CheckedCompare['op'], left: LiteralOperand, right: LiteralOperand): Outcomes {
  if (left.exact !== undefined || right.exact !== undefined) return TRUE | FALSE;
  return OPERATORS[op].holds(left.value as string, right.value as string) ? TRUE : FALSE;
}

function sameColumn(left: CheckedOperand, right: CheckedOperand): boolean {
  return left.kind === 'column' && right.kind === 'column' && identity(left) === identity(right);
}

/** Equal for operands that are the same value, wherever they are written. */
export function identity(operand: CheckedOperand): string {
  return JSON.stringify(operand, (key, value: unknown) => (key === 'span' ? undefined : value));
}

function ofEnum(left: CheckedOperand, values: readonly unknown[], wanted: boolean): Outcomes {
  const names = left.kind === 'column' && left.column.kind === 'field' ? left.column.field.enum : undefined;
  if (names === undefined || values.some((value) => names.includes(value as string))) return TRUE | FALSE;
  return wanted ? FALSE : TRUE;
}

function ofQuantified({ quantifier, path, condition }: CheckedQuantified): Outcomes {
  const absent = mayBeAbsent(path) ? UNKNOWN : 0;
  const inner = outcomes(condition);
  switch (quantifier) {
    case 'any':
      return absent | FALSE | (inner & (TRUE | UNKNOWN));
    case 'none':
      return absent | TRUE | (inner & TRUE ? FALSE : 0) | (inner & UNKNOWN);
    case 'all':
      return absent | TRUE | (inner & (FALSE | UNKNOWN));
  }
}

export const canBe = (set: Outcomes, outcome: Outcomes): boolean => (set & outcome) !== 0;
