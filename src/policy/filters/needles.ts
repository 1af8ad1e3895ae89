/**
 * The limits of what a filter looks for inside of strings. A search takes a time of the product of two lengths, in the
 * databases and, beyond 250 units, in JavaScript: a caller who gives both would hold up everybody else.
 */
import type { PolicyIssue } from '../../../grammar/policy-error.ts';
import type { Span } from '../../../grammar/syntax.ts';
import { fold } from '../fold.ts';
import { OPERATORS } from '../operators.ts';
import { isText } from '../scalar-types.ts';
import type { Checked, CheckedCompare, Params } from '../types.ts';
import { comparesOf } from '../visit.ts';

/** UTF-16 units of one needle, and of all needles of a filter. */
export const NEEDLE_LIMITS = { each: 250, together: 1000 } as const;

/** A param that is looked for. */
interface ParamNeedle {
  readonly name: string;
  readonly folds: boolean;
}

export interface Needles {
  /** The units of those that the filter states. */
  readonly stated: number;
  readonly params: readonly ParamNeedle[];
}

const NO_NEEDLES: Needles = { stated: 0, params: [] };

const isSearch = ({ op, left }: CheckedCompare): boolean =>
  OPERATORS[op].searches === true && isText(left.type) && !('list' in left && left.list);

const needleUnits = (needle: string, folds: boolean): number => (folds ? fold(needle) : needle).length;

const looksFolded = ({ op }: CheckedCompare): boolean => OPERATORS[op].folds === true;

/** Zero for a needle that the filter does not state. */
const unitsOfStated = (compare: CheckedCompare): number =>
  compare.right.kind === 'literal' ? needleUnits(String(compare.right.value), looksFolded(compare)) : 0;

export function needlesOf(checked: Checked): Needles {
  const searches = comparesOf(checked).filter(isSearch);
  if (searches.length === 0) return NO_NEEDLES;
  return {
    stated: searches.reduce((sum, each) => sum + unitsOfStated(each), 0),
    params: searches.flatMap((each) =>
      each.right.kind === 'request' && each.right.source === 'param'
        ? [{ name: each.right.name, folds: looksFolded(each) }]
        : [],
    ),
  };
}

/** Reports the first needle beyond the limits that the filter states. */
export function statedNeedleIssues(checked: Checked): readonly PolicyIssue[] {
  let sum = 0;
  for (const compare of comparesOf(checked).filter(isSearch)) {
    const { span } = compare.right;
    const units = unitsOfStated(compare);
    sum += units;
    if (units > NEEDLE_LIMITS.each) return [needleIssue(TOO_LONG, span)];
    if (sum > NEEDLE_LIMITS.together) return [needleIssue(TOO_MUCH, span)];
  }
  return [];
}

const needleIssue = (message: string, span: Span): PolicyIssue => ({
  code: 'needle_too_long',
  severity: 'error',
  message,
  span,
});

const TOO_LONG = `expected a string of at most ${NEEDLE_LIMITS.each} characters to look for`;
const TOO_MUCH = `expected strings of at most ${NEEDLE_LIMITS.together} characters together to look for`;

/** Reports params beyond the limits: each that is too long, or the last of those that are too long together. */
export function paramNeedleIssues(
  { stated, params: needles }: Needles,
  params: Params,
): readonly { readonly name: string; readonly message: string }[] {
  const issues = new Map<string, string>();
  let sum = stated;
  for (const { name, folds } of needles) {
    const value = params[name];
    const units = typeof value === 'string' ? needleUnits(value, folds) : 0;
    sum += units;
    if (units > NEEDLE_LIMITS.each) issues.set(name, TOO_LONG);
    else if (sum > NEEDLE_LIMITS.together && issues.size === 0) issues.set(name, TOO_MUCH);
  }
  return [...issues].map(([name, message]) => ({ name, message }));
}
