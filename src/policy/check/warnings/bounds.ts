/** Bounds that no value is between: `score > 5 and score < 3`, `due > @now and due < @now - 1d`. */
import { OPERATORS, rank } from '../../operators.ts';
import { isWhole } from '../../scalar-types.ts';
import type { Checked, CheckedCompare, CheckedOperand } from '../../types.ts';
import { identity } from '../outcomes.ts';

interface ComparedBound {
  readonly compare: CheckedCompare;
  readonly value: string | number;
  readonly isStrict: boolean;
}
interface ComparedRange {
  lower?: ComparedBound;
  upper?: ComparedBound;
}

/** The two comparisons of one conjunction that exclude each other. */
export function excludingBounds(items: readonly Checked[]): readonly [CheckedCompare, CheckedCompare] | undefined {
  const ranges = new Map<string, ComparedRange>();
  for (const item of items) {
    const found = item.kind === 'compare' ? boundOfCompare(item) : undefined;
    if (found === undefined) continue;
    const { subject, bound, sides, isRelative } = found;
    // An instant relative to the request is not comparable with one that is written out.
    const key = `${isRelative ? 'now' : ''}${identity(subject)}`;
    const range: ComparedRange = ranges.get(key) ?? {};
    ranges.set(key, range);
    if (sides.includes('lower') && isNarrower(bound, range.lower, { sign: 1, subject })) range.lower = bound;
    if (sides.includes('upper') && isNarrower(bound, range.upper, { sign: -1, subject })) range.upper = bound;
    const { lower, upper } = range;
    if (lower !== undefined && upper !== undefined && lower !== upper && excludes(lower, upper, subject))
      return [lower.compare, upper.compare];
  }
  return undefined;
}

interface FoundBound {
  readonly subject: CheckedOperand;
  readonly bound: ComparedBound;
  readonly sides: readonly ('lower' | 'upper')[];
  /** The bound is a number of seconds from `@now`. */
  readonly isRelative: boolean;
}

function boundOfCompare(compare: CheckedCompare): FoundBound | undefined {
  const { left, right } = compare;
  const isSwapped = isFixed(left);
  const [subject, fixed] = isSwapped ? [right, left] : [left, right];
  const op = isSwapped ? OPERATORS[compare.op].mirror : compare.op;
  const value = boundValue(fixed);
  if (op === undefined || value === undefined || isFixed(subject)) return undefined;
  const { direction, strict, family, negative } = OPERATORS[op];
  const found = { subject, bound: { compare, value, isStrict: strict === true }, isRelative: fixed.kind === 'now' };
  if (direction !== undefined) return { ...found, sides: [direction === 'up' ? 'lower' : 'upper'] };
  return family === 'equality' && negative !== true ? { ...found, sides: ['lower', 'upper'] } : undefined;
}

const isFixed = ({ kind }: CheckedOperand): boolean => kind === 'literal' || kind === 'now';

function boundValue(operand: CheckedOperand): string | number | undefined {
  if (operand.kind === 'now') return operand.seconds;
  if (operand.kind !== 'literal' || operand.list || operand.exact !== undefined) return undefined;
  const { value } = operand;
  return typeof value === 'string' || typeof value === 'number' ? value : undefined;
}

interface Narrowing {
  /** 1 for lower bounds, -1 for upper ones. */
  readonly sign: number;
  readonly subject: CheckedOperand;
}

function isNarrower(bound: ComparedBound, known: ComparedBound | undefined, { sign, subject }: Narrowing): boolean {
  if (known === undefined) return true;
  const order = rank(bound.value, known.value, subject.type) * sign;
  return order > 0 || (order === 0 && bound.isStrict && !known.isStrict);
}

function excludes(lower: ComparedBound, upper: ComparedBound, subject: CheckedOperand): boolean {
  if (isWhole(subject.type) && typeof lower.value === 'number' && typeof upper.value === 'number') {
    const least = lower.isStrict ? Math.floor(lower.value) + 1 : Math.ceil(lower.value);
    const greatest = upper.isStrict ? Math.ceil(upper.value) - 1 : Math.floor(upper.value);
    return least > greatest;
  }
  const order = rank(lower.value, upper.value, subject.type);
  return order > 0 || (order === 0 && (lower.isStrict || upper.isStrict));
}
