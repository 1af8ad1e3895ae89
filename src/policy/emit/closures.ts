/**
 * The JavaScript of a condition as composed closures, for places where code generation is off. It
 * means the same as the generated code.
 */
import {
  type ColumnRef,
  type Condition,
  type ConditionOperand,
  type Exists,
  NEXT,
  RECORD,
  type Test,
} from '../condition.ts';
import { isMember, OPERATORS, type Operator } from '../operators.ts';
import { elementOf, gridOf, isText } from '../scalar-types.ts';
import type { PartType, Related, Row } from '../types.ts';
import { own, type Scalar } from '../values.ts';
import { nodesOf, sourcesIn } from '../visit.ts';
import { UNLIMITED_WORK, type WorkBudget } from '../work-budget.ts';
import { countedOf, goesOn, isToOne, literalOf, manyOf, oneOf, type Predicate } from './decision.ts';
import { partOf } from './json-parts.ts';

interface RowFrame {
  readonly record: Row;
  readonly next: Row | undefined;
  readonly related: Related;
  readonly values: readonly unknown[];
  /** The rows that are walked to, by the identifier of their source. */
  readonly bound: Row[];
  /** Closures that count take their steps from it. */
  readonly work: WorkBudget;
}
type Closure = (frame: RowFrame) => boolean;

export function closures(cond: Condition): Predicate {
  const closure = closureOf(cond, false);
  const binds = sourcesIn(cond).size > 0;
  return (values) => (record, related, next) =>
    closure({ record, next, related, values, bound: binds ? [] : NO_ROWS, work: UNLIMITED_WORK });
}

/** Decides as long as the budget lasts. Throws `TooMuchWork`. */
export type BudgetedDecision = (record: Row, related: Related, work: WorkBudget) => boolean;

/** The closures of a condition that a caller states. */
export function budgetedClosures(cond: Condition): (values: readonly unknown[]) => BudgetedDecision {
  const closure = closureOf(cond, true);
  return (values) => (record, related, work) => closure({ record, next: undefined, related, values, bound: [], work });
}

const NO_ROWS: Row[] = [];

/** @param counts takes the steps of its work */
function closureOf(cond: Condition, counts: boolean): Closure {
  switch (cond.kind) {
    case 'const':
      return () => cond.value;
    case 'and':
      return everyClosure(cond.items.map((item) => closureOf(item, counts)));
    case 'or':
      return someClosure(cond.items.map((item) => closureOf(item, counts)));
    case 'null': {
      const read = columnReader(cond.column, counts);
      return cond.negated ? (frame) => read(frame) != null : (frame) => read(frame) == null;
    }
    case 'test':
      return testClosure(cond, counts);
    case 'exists': {
      const found = existsClosure(cond, counts);
      return cond.negated ? (frame) => !found(frame) : found;
    }
  }
}

/** Unrolled: calls are cheaper than a loop. */
function everyClosure(items: readonly Closure[]): Closure {
  const [a, b, c, ...others] = items as [Closure, Closure, Closure, ...Closure[]];
  if (c === undefined) return (frame) => a(frame) && b(frame);
  if (others.length === 0) return (frame) => a(frame) && b(frame) && c(frame);
  const rest = others.length === 1 ? others[0]! : everyClosure(others);
  return (frame) => a(frame) && b(frame) && c(frame) && rest(frame);
}

function someClosure(items: readonly Closure[]): Closure {
  const [a, b, c, ...others] = items as [Closure, Closure, Closure, ...Closure[]];
  if (c === undefined) return (frame) => a(frame) || b(frame);
  if (others.length === 0) return (frame) => a(frame) || b(frame) || c(frame);
  const rest = others.length === 1 ? others[0]! : someClosure(others);
  return (frame) => a(frame) || b(frame) || c(frame) || rest(frame);
}

type FrameReader = (frame: RowFrame) => unknown;

function columnReader({ part, type, ...ref }: ColumnRef, counts: boolean): FrameReader {
  if (part === undefined) return metered(memberReader(ref), counts && (elementOf(type) ? 'parse' : 'read'));
  const whole = metered(memberReader({ ...ref, name: part.member }), counts && 'parse');
  return (frame) => partOf(whole(frame), part, type as PartType);
}

function metered(reader: FrameReader, by: false | 'read' | 'parse'): FrameReader {
  if (by === false) return reader;
  return (frame) => {
    const value = reader(frame);
    frame.work[by](value);
    return value;
  };
}

function memberReader({ source: { id }, name }: Pick<ColumnRef, 'source' | 'name'>): FrameReader {
  const inherited = name in Object.prototype;
  switch (id) {
    case RECORD.id:
      return inherited ? ({ record }) => own(record, name) : ({ record }) => record[name];
    case NEXT.id:
      return inherited ? ({ next }) => own(next!, name) : ({ next }) => next![name];
    default:
      return inherited ? ({ bound }) => own(bound[id]!, name) : ({ bound }) => bound[id]![name];
  }
}

function operandReader(operand: ConditionOperand, counts: boolean): FrameReader {
  switch (operand.kind) {
    case 'column':
      return columnReader(operand, counts);
    case 'count':
      return countReader(operand.exists, counts);
    case 'literal': {
      const value = literalOf(operand.value);
      return () => value;
    }
    case 'slot': {
      const { slot } = operand;
      return metered(({ values }) => values[slot], counts && 'read');
    }
  }
}

function testClosure(test: Test, counts: boolean): Closure {
  const { op, negated, left, right } = test;
  if (left.kind === 'column' && right.kind !== 'column' && right.kind !== 'count' && !negated) {
    const read = columnReader(left, counts);
    const fused =
      right.kind === 'slot'
        ? slotTest({ op, left }, read, right.slot)
        : literalTest({ op, left }, read, literalOf(right.value));
    if (fused !== undefined) return fused;
  }
  const { holds, holdsFor, folds } = OPERATORS[op];
  const a = metered(operandReader(left, counts), counts && folds === true && 'parse');
  const b = operandReader(right, counts);
  if (holdsFor !== undefined) return preparedTest(holdsFor, [a, b], negated);
  const isBeyond = left.kind === 'count' && left.beyond === true;
  return (frame) => {
    const x = a(frame);
    const y = b(frame);
    if (isBeyond && x === undefined) return y != null;
    return x != null && y != null && holds(x as Scalar, y as Scalar, left.type) !== negated;
  };
}

/** A request asks with one value, for many records. */
function preparedTest(
  holdsFor: NonNullable<Operator['holdsFor']>,
  [a, b]: readonly [FrameReader, FrameReader],
  negated: boolean,
): Closure {
  let latest: { readonly value: unknown; readonly holds: (left: Scalar) => boolean } | undefined;
  return (frame) => {
    const [x, y] = [a(frame), b(frame)];
    if (x == null || y == null) return false;
    if (latest?.value !== y) latest = { value: y, holds: holdsFor(y as Scalar) };
    return latest!.holds(x as Scalar) !== negated;
  };
}

// The most common tests, each as one function that does not look up the operator.

type ColumnComparison = Pick<Test, 'op'> & { readonly left: ColumnRef };

function slotTest({ op, left }: ColumnComparison, read: FrameReader, slot: number): Closure | undefined {
  const operator = OPERATORS[op];
  if (operator.family === 'equality' && isMember(operator)) return (frame) => read(frame) === frame.values[slot];
  return orderedTest(operator, left, [read, (frame) => frame.values[slot]]);
}

function literalTest({ op, left }: ColumnComparison, read: FrameReader, value: unknown): Closure | undefined {
  const operator = OPERATORS[op];
  if (operator.family === 'equality' && isMember(operator)) return (frame) => read(frame) === value;
  if (isMember(operator)) {
    const list = value as readonly unknown[];
    return (frame) => list.includes(read(frame));
  }
  return orderedTest(operator, left, [read, () => value]);
}

/** Compares numbers and datetimes, for both of which `<` is right. */
type NumberReader = (frame: RowFrame) => number | null | undefined;
type RightReader = (frame: RowFrame) => number;
type Ordering = (a: NumberReader, b: RightReader) => Closure;

/** Numbers and datetimes, which JavaScript orders as the language does; it does not for strings. */
function orderedTest(
  { direction, strict }: Operator,
  left: ConditionOperand,
  [a, b]: readonly [FrameReader, FrameReader],
): Closure | undefined {
  if (direction === undefined || isText(left.type) || gridOf(left.type)) return undefined;
  return ORDERINGS[direction][strict ? 'strict' : 'inclusive'](a as NumberReader, b as RightReader);
}

const ORDERINGS: Readonly<Record<'up' | 'down', Readonly<Record<'strict' | 'inclusive', Ordering>>>> = {
  down: {
    strict: (a, b) => (frame) => {
      const x = a(frame);
      return x != null && x < b(frame);
    },
    inclusive: (a, b) => (frame) => {
      const x = a(frame);
      return x != null && x <= b(frame);
    },
  },
  up: {
    strict: (a, b) => (frame) => {
      const x = a(frame);
      return x != null && x > b(frame);
    },
    inclusive: (a, b) => (frame) => {
      const x = a(frame);
      return x != null && x >= b(frame);
    },
  },
};

/** The rows are paid for at once, before the first that decides. */
function paid<T extends readonly Row[] | undefined>(rows: (frame: RowFrame) => T, of: Condition, counts: boolean) {
  if (!counts) return rows;
  const steps = nodesOf(of).length;
  return (frame: RowFrame): T => {
    const found = rows(frame);
    if (found !== undefined) frame.work.take(found.length * steps);
    return found;
  };
}

/** Undefined where the chain of ancestors goes on. */
function countReader(exists: Exists, counts: boolean): FrameReader {
  const key = operandReader(exists.key, counts);
  const condition = closureOf(exists.condition, counts);
  const rowsOf = paid((frame) => countedOf(exists, frame.related, key(frame)), exists.condition, counts);
  const { id } = exists.source;
  return (frame) => {
    const rows = rowsOf(frame);
    if (rows === undefined) return undefined;
    let count = 0;
    for (const row of rows) {
      frame.bound[id] = row;
      if (condition(frame)) count++;
    }
    return count;
  };
}

function existsClosure(exists: Exists, counts: boolean): Closure {
  const key = operandReader(exists.key, counts);
  const condition = closureOf(exists.condition, counts);
  const rowsOf = paid((frame) => manyOf(exists, frame.related, key(frame)), exists.condition, counts);
  const { id } = exists.source;
  const meets = (frame: RowFrame, row: Row): boolean => {
    frame.bound[id] = row;
    return condition(frame);
  };
  const some = (frame: RowFrame): boolean => rowsOf(frame).some((row) => meets(frame, row));
  if (exists.beyond) return (frame) => goesOn(exists, frame.related, key(frame)) || some(frame);
  if (!isToOne(exists)) return some;
  return (frame) => {
    const row = oneOf(exists, frame.related, key(frame));
    return row !== undefined && meets(frame, row);
  };
}
