/** Bounds that no value is between: `score > 5 and score < 3`. */
import { OPERATORS, rank } from '../operators.ts';
import { isWhole } from '../scalar-types.ts';
import type { Checked, CheckedCompare, CheckedOperand } from '../types.ts';
import { identity } from './outcomes.ts';

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
    const { subject, bound, sides } = found;
    const range: ComparedRange = ranges.get(identity(subject)) ?? {};
    ranges.set(identity(subject), range);
    if (sides.includes('lower') && isNarrower(bound, range.lower, 1)) range.lower = bound;
    if (sides.includes('upper') && isNarrower(bound, range.upper, -1)) range.upper = bound;
    const { lower, upper } = range;
    if (lower !== undefined && upper !== undefined && lower !== upper && excludes(lower, upper, subject))
      return [lower.compare, upper.compare];
  }
  return undefined;
}

interface Found {
  readonly subject: CheckedOperand;
  readonly bound: ComparedBound;
  readonly sides: readonly ('lower' | 'upper')[];
}

function boundOfCompare(compare: CheckedCompare): Found | undefined {
  const { left, right } = compare;
  const isSwapped = left.kind === 'literal';
  const [subject, literal] = isSwapped ? [right, left] : [left, right];
  const op = isSwapped ? OPERATORS[compare.op].mirror : compare.op;
  if (op === undefined || literal.kind !== 'literal' || subject.kind === 'literal') return undefined;
  const { value, exact, list } = literal;
  if (list || exact !== undefined || (typeof value !== 'string' && typeof value !== 'number')) return undefined;
  const { direction, strict, family, negative } = OPERATORS[op];
  const bound = { compare, value, isStrict: strict === true };
  if (direction !== undefined) return { subject, bound, sides: [direction === 'up' ? 'lower' : 'upper'] };
  return family === 'equality' && negative !== true ? { subject, bound, sides: ['lower', 'upper'] } : undefined;
}

/** `sign`: 1 for lower bounds, -1 for upper ones. */
function isNarrower(bound: ComparedBound, known: ComparedBound | undefined, sign: number): boolean {
  if (known === undefined) return true;
  const order = rank(bound.value, known.value) * sign;
  return order > 0 || (order === 0 && bound.isStrict && !known.isStrict);
}

function excludes(lower: ComparedBound, upper: ComparedBound, subject: CheckedOperand): boolean {
  if (isWhole(subject.type) && typeof lower.value === 'number' && typeof upper.value === 'number') {
    const least = lower.isStrict ? Math.floor(lower.value) + 1 : Math.ceil(lower.value);
    const greatest = upper.isStrict ? Math.ceil(upper.value) - 1 : Math.floor(upper.value);
    return least > greatest;
  }
  const order = rank(lower.value, upper.value);
  return order > 0 || (order === 0 && (lower.isStrict || upper.isStrict));
}
