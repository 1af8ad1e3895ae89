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
import type { WorkBudget } from '../work-budget.ts';
import { countedOf, goesOn, isToOne, literalOf, manyOf, oneOf, type Predicate } from './decision.ts';
import { partOf } from './json-parts.ts';

interface RowFrame {
  readonly record: Row;
  readonly next: Row | undefined;
  readonly related: Related;
  readonly values: readonly unknown[];
  /** The rows that are walked to, by the identifier of their source. */
  readonly bound: Row[];
  /** Metered closures take their steps from it. */
  readonly work?: WorkBudget;
}
type Closure = (frame: RowFrame) => boolean;
type FrameReader = (frame: RowFrame) => unknown;
type RowsReader<T extends readonly Row[] | undefined> = (frame: RowFrame) => T;

/** Wraps what a closure reads, so that its frame pays for it. */
interface Metering {
  column(reader: FrameReader, of: Pick<ColumnRef, 'part' | 'type'>): FrameReader;
  value(reader: FrameReader, by: 'read' | 'parse' | 'fold' | 'json'): FrameReader;
  rows<T extends readonly Row[] | undefined>(rows: RowsReader<T>, of: Condition): RowsReader<T>;
}

/** Set while the closures of a caller's condition are made. Undefined: those of the schema's author take no steps. */
let meter: Metering | undefined;

const METERING: Metering = {
  column: (reader, { part, type }) => METERING.value(reader, part ? 'json' : elementOf(type) ? 'parse' : 'read'),
  value: (reader, by) => (frame) => {
    const value = reader(frame);
    frame.work![by](value);
    return value;
  },
  // The rows are paid for at once, before the first that decides.
  rows: (rows, of) => {
    const steps = nodesOf(of).length;
    return (frame) => {
      const found = rows(frame);
      if (found !== undefined) frame.work!.take(found.length * steps);
      return found;
    };
  },
};

export function closures(cond: Condition): Predicate {
  const closure = closureOf(cond);
  const binds = sourcesIn(cond).size > 0;
  return (values) => (record, related, next) => closure({ record, next, related, values, bound: binds ? [] : NO_ROWS });
}

/** Decides as long as the budget lasts. Throws `TooMuchWork`. */
export type BudgetedDecision = (record: Row, related: Related, work: WorkBudget) => boolean;

/** The closures of a condition that a caller states. */
export function budgetedClosures(cond: Condition): (values: readonly unknown[]) => BudgetedDecision {
  meter = METERING;
  let closure: Closure;
  try {
    closure = closureOf(cond);
  } finally {
    meter = undefined;
  }
  return (values) => (record, related, work) => closure({ record, next: undefined, related, values, bound: [], work });
}

const NO_ROWS: Row[] = [];

function closureOf(cond: Condition): Closure {
  switch (cond.kind) {
    case 'const':
      return () => cond.value;
    case 'and':
      return everyClosure(cond.items.map(closureOf));
    case 'or':
      return someClosure(cond.items.map(closureOf));
    case 'null': {
      const read = columnReader(cond.column);
      return cond.negated ? (frame) => read(frame) != null : (frame) => read(frame) == null;
    }
    case 'test':
      return testClosure(cond);
    case 'exists': {
      const found = existsClosure(cond);
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

function columnReader({ part, type, ...ref }: ColumnRef): FrameReader {
  const member = memberReader(part === undefined ? ref : { ...ref, name: part.member });
  const whole = meter?.column(member, { part, type }) ?? member;
  if (part === undefined) return whole;
  return (frame) => partOf(whole(frame), part, type as PartType);
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

function operandReader(operand: ConditionOperand): FrameReader {
  switch (operand.kind) {
    case 'column':
      return columnReader(operand);
    case 'count':
      return countReader(operand.exists);
    case 'literal': {
      const value = literalOf(operand.value);
      return () => value;
    }
    case 'slot': {
      const { slot } = operand;
      const read: FrameReader = ({ values }) => values[slot];
      return meter?.value(read, 'read') ?? read;
    }
  }
}

function testClosure(test: Test): Closure {
  const { op, negated, left, right } = test;
  if (left.kind === 'column' && right.kind !== 'column' && right.kind !== 'count' && !negated) {
    const read = columnReader(left);
    const fused =
      right.kind === 'slot'
        ? slotTest({ op, left }, read, right.slot)
        : literalTest({ op, left }, read, literalOf(right.value));
    if (fused !== undefined) return fused;
  }
  const { holds, holdsFor, folds } = OPERATORS[op];
  const operand = operandReader(left);
  const a = (folds && meter?.value(operand, 'fold')) || operand;
  const b = operandReader(right);
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

/** Undefined where the chain of ancestors goes on. */
function countReader(exists: Exists): FrameReader {
  const key = operandReader(exists.key);
  const condition = closureOf(exists.condition);
  const found = (frame: RowFrame) => countedOf(exists, frame.related, key(frame));
  const rowsOf = meter?.rows(found, exists.condition) ?? found;
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

function existsClosure(exists: Exists): Closure {
  const key = operandReader(exists.key);
  const condition = closureOf(exists.condition);
  const found = (frame: RowFrame) => manyOf(exists, frame.related, key(frame));
  const rowsOf = meter?.rows(found, exists.condition) ?? found;
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
