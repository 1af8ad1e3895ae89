/**
 * THE table of operators. An entry defines an operator completely: its type rule, its complement,
 * its meaning in JavaScript, and its documentation (its SQL is in `emit/operator-sql.ts`, examples are in `scripts/docs/word-notes.ts`). The
 * stages look an entry up and use it; none of them knows an operator by name.
 */
import type { CompareOp, Span } from '../../grammar/syntax.ts';
import { compareText } from './collation.ts';
import { fold } from './fold.ts';
import { elementOf, gridOf, isText } from './scalar-types.ts';
import { listElements } from './scalars/list-values.ts';
import { isWithin } from './scalars/places.ts';
import type { CheckedCompare, CheckedOperand, ValueType } from './types.ts';
import { rankNumerals, type Scalar } from './values.ts';

/**
 * The types that the two sides may have. `same`: types that can be equal; `ordered`: strings, numbers,
 * dates and times; `element`: a value and a list; `holder`: a list and a value, or two strings; `text`: two
 * strings; `search`: a field with `search: true`, and a string that is not a field's; `place`: a point, and a circle.
 */
type SideRule = 'same' | 'ordered' | 'element' | 'holder' | 'text' | 'search' | 'place';

/**
 * `equality`: = and its negation; `order`: the orderings; `list`: an element of a list; `text`: a
 * part of a string; `place`: a point.
 */
type Family = 'equality' | 'order' | 'list' | 'text' | 'place';

export interface Operator {
  readonly symbol: CompareOp;
  readonly family: Family;
  readonly sides: SideRule;
  /** True: the operator holds for values that are not equal, or not in the list. */
  readonly negative?: true;
  /** For an ordering: whether it holds above or below the right side. */
  readonly direction?: 'up' | 'down';
  /** For an ordering: it does not hold for equal sides. */
  readonly strict?: true;
  /** An index on the left side can find the rows for which it holds. */
  readonly sargable?: true;
  /** The right side is a prefix, whose successor bounds the range. */
  readonly prefix?: true;
  /** The two sides are folded before they are compared. */
  readonly folds?: true;
  /** Looks for a string inside of a string, in a time of the product of their lengths. */
  readonly searches?: true;
  /** `list op value` is `value overList list`. */
  readonly overList?: CompareOp;
  /** `not (a op b)` for present sides. Without one, the printers negate the test itself. */
  readonly complement?: CompareOp;
  /** `a op b` is `b mirror a`. */
  readonly mirror?: CompareOp;
  /** Both sides are present. An ordering needs their type, unless they are numbers or compare by code point. */
  holds(left: Scalar, right: Scalar | readonly Scalar[], type?: ValueType): boolean;
  /** `holds` for many left sides; it prepares the right side once. */
  holdsFor?(right: Scalar): (left: Scalar) => boolean;
  /**
   * An expression over two JavaScript expressions whose values are present. It may name only
   * `rank(a, b)`, `rankNumerals(a, b)`, `fold(a)`, `listElements(a)`, `isWithin(a, b)` and the sides. An operator that folds gets a folded right side.
   */
  js(left: string, right: string, type: ValueType): string;
  readonly doc: string;
}

function ordering(
  symbol: '<' | '<=' | '>' | '>=',
  rest: Pick<Operator, 'complement' | 'mirror' | 'direction' | 'strict' | 'doc' | 'holds'>,
): Operator {
  return {
    symbol,
    family: 'order',
    sides: 'ordered',
    sargable: true,
    js: (left, right, type) => {
      if (gridOf(type) !== undefined) return `rankNumerals(${left}, ${right}) ${symbol} 0`;
      return isText(type) ? `rank(${left}, ${right}) ${symbol} 0` : `${left} ${symbol} ${right}`;
    },
    ...rest,
  };
}

/**
 * Orders two present values of one type: numbers by value, strings by code point (dates, times
 * and ids are ASCII).
 */
export function rank(left: Scalar, right: Scalar, type?: ValueType): number {
  if (type !== undefined && gridOf(type) !== undefined) return rankNumerals(String(left), String(right));
  if (typeof left === 'string' && typeof right === 'string') return compareText(left, right);
  return left < right ? -1 : left > right ? 1 : 0;
}

/** The checker has seen that the side is one value. */
const oneValue = (value: Scalar | readonly Scalar[]): Scalar => value as Scalar;
const scalarText = (value: Scalar | readonly Scalar[]): string => value as string;
function matching(needle: string): (value: Scalar) => boolean {
  const folded = fold(needle);
  return (value) => fold(scalarText(value)).includes(folded);
}
const asList = (value: Scalar | readonly Scalar[]): readonly Scalar[] => value as readonly Scalar[];

export const OPERATORS: Readonly<Record<CompareOp, Operator>> = {
  '=': {
    symbol: '=',
    family: 'equality',
    sides: 'same',
    sargable: true,
    complement: '!=',
    mirror: '=',
    holds: (left, right) => left === right,
    js: (left, right) => `${left} === ${right}`,
    doc: 'equal: strings by code point, numbers by value, datetimes to the microsecond, ids in lower case',
  },
  '!=': {
    symbol: '!=',
    family: 'equality',
    sides: 'same',
    negative: true,
    complement: '=',
    mirror: '!=',
    holds: (left, right) => left !== right,
    js: (left, right) => `${left} !== ${right}`,
    doc: 'both present, and not equal',
  },
  '<': ordering('<', {
    direction: 'down',
    strict: true,
    complement: '>=',
    mirror: '>',
    holds: (left, right, type) => rank(left, oneValue(right), type) < 0,
    doc: 'less: strings by code point, numbers by value, dates and times earlier',
  }),
  '<=': ordering('<=', {
    direction: 'down',
    complement: '>',
    mirror: '>=',
    holds: (left, right, type) => rank(left, oneValue(right), type) <= 0,
    doc: 'less or equal',
  }),
  '>': ordering('>', {
    direction: 'up',
    strict: true,
    complement: '<=',
    mirror: '<',
    holds: (left, right, type) => rank(left, oneValue(right), type) > 0,
    doc: 'greater: strings by code point, numbers by value, dates and times later',
  }),
  '>=': ordering('>=', {
    direction: 'up',
    complement: '<',
    mirror: '<=',
    holds: (left, right, type) => rank(left, oneValue(right), type) >= 0,
    doc: 'greater or equal; an int literal is not rounded: `n >= 1.5` is `n >= 2`; over a float it is the nearest double',
  }),
  in: {
    symbol: 'in',
    family: 'list',
    sides: 'element',
    sargable: true,
    complement: 'not in',
    holds: (left, right) => asList(right).includes(left),
    js: (left, right) => `${right}.includes(${left})`,
    doc: 'equal to an element of a literal list, of `@request.auth.roles`, or of a query parameter',
  },
  'not in': {
    symbol: 'not in',
    family: 'list',
    sides: 'element',
    negative: true,
    complement: 'in',
    holds: (left, right) => !asList(right).includes(left),
    js: (left, right) => `!${right}.includes(${left})`,
    doc: 'equal to no element of the list',
  },
  contains: {
    symbol: 'contains',
    family: 'text',
    sides: 'holder',
    searches: true,
    overList: 'in',
    holds(left, right, type) {
      if (type !== undefined && elementOf(type)) return listElements(scalarText(left)).includes(oneValue(right));
      return Array.isArray(left) ? left.includes(right) : scalarText(left).includes(scalarText(right));
    },
    js: (left, right, type) => `${elementOf(type) ? `listElements(${left})` : left}.includes(${right})`,
    doc: 'an element of a list or of a to-many relation, or a part of a string; the empty string is in each',
  },
  'starts with': {
    symbol: 'starts with',
    family: 'text',
    sides: 'text',
    sargable: true,
    prefix: true,
    holds: (left, right) => scalarText(left).startsWith(scalarText(right)),
    js: (left, right) => `${left}.startsWith(${right})`,
    doc: 'the string begins with the other; an index serves it',
  },
  'ends with': {
    symbol: 'ends with',
    family: 'text',
    sides: 'text',
    holds: (left, right) => scalarText(left).endsWith(scalarText(right)),
    js: (left, right) => `${left}.endsWith(${right})`,
    doc: 'the string ends with the other',
  },
  matches: {
    symbol: 'matches',
    family: 'text',
    sides: 'search',
    folds: true,
    searches: true,
    holds: (left, right) => matching(scalarText(right))(left),
    holdsFor: (right) => matching(scalarText(right)),
    js: (left, right) => `fold(${left}).includes(${right})`,
    doc:
      'a field with `search: true` contains the string, whatever the letter case and the accents; every string ' +
      'matches the empty string, and a string of nothing but accents is absent',
  },
  within: {
    symbol: 'within',
    family: 'place',
    sides: 'place',
    sargable: true,
    holds: (left, right) => isWithin(scalarText(left), scalarText(right)),
    js: (left, right) => `isWithin(${left}, ${right})`,
    doc: 'a point lies within a distance (`m`, `km`) of a latitude and longitude',
  },
};

const entries: readonly Operator[] = Object.values(OPERATORS);

function find(what: string, test: (operator: Operator) => boolean): CompareOp {
  const found = entries.find(test);
  if (found === undefined) throw new Error(`the table has no ${what}`);
  return found.symbol;
}

const EQUALITY = { true: equality(true), false: equality(false) };
const MEMBERSHIP = { true: membership(true), false: membership(false) };
const ORDER = {
  up: { true: order('up', true), false: order('up', false) },
  down: { true: order('down', true), false: order('down', false) },
};

function equality(negative: boolean): CompareOp {
  return find('equality', (each) => each.family === 'equality' && (each.negative ?? false) === negative);
}
function membership(negative: boolean): CompareOp {
  return find('list test', (each) => each.family === 'list' && (each.negative ?? false) === negative);
}
function order(direction: 'up' | 'down', strict: boolean): CompareOp {
  return find('ordering', (each) => each.direction === direction && (each.strict ?? false) === strict);
}

/** The operators that stages create themselves, found by their properties. */
export const equalityOf = (member: boolean): CompareOp => EQUALITY[`${!member}`];
export const membershipOf = (member: boolean): CompareOp => MEMBERSHIP[`${!member}`];
export const orderOf = (direction: 'up' | 'down', strict: boolean): CompareOp => ORDER[direction][`${strict}`];

export const equal = (left: CheckedOperand, right: CheckedOperand, span: Span): CheckedCompare => ({
  kind: 'compare',
  op: equalityOf(true),
  left,
  right,
  span,
});

/** `list HOLDS value`. */
export const HOLDS: CompareOp = find('holder', ({ sides }) => sides === 'holder');

/** `text ENDS_WITH value`. */
export const ENDS_WITH: CompareOp = find(
  'test of the end',
  ({ sides, holds }) => sides === 'text' && holds('ab', 'b') && !holds('ab', 'a'),
);

/** Holds for one value, or for the elements of one list. */
export const isMember = ({ family, negative }: Operator): boolean =>
  (family === 'equality' || family === 'list') && negative !== true;
/** Holds for all but one value, or for all but the elements of one list. */
export const isNonMember = ({ family, negative }: Operator): boolean =>
  (family === 'equality' || family === 'list') && negative === true;
