/**
 * Comparisons that the possible values of one side decide: `score > 100` where no score is above 100,
 * `status in [all values of the enum]`, `count(…) >= 0`.
 */
import { isMember, isNonMember, OPERATORS, rank } from '../operators.ts';
import { isText } from '../scalar-types.ts';
import type { CatalogField, CheckedCompare, LiteralOperand, ValueType } from '../types.ts';

/** The outcomes of a comparison whose sides are present. */
export interface Bounded {
  readonly canHold: boolean;
  readonly canFail: boolean;
  /** The bounds in words. */
  readonly fact: string;
  /** The declaration that bounds new writes only; undefined if no value can ever be outside. */
  readonly by?: 'bounds' | 'enums';
}

type Limit = number | string;
interface FieldLimits {
  readonly min?: Limit | undefined;
  readonly max?: Limit | undefined;
  /** The type of the values; undefined for numbers. */
  readonly type?: ValueType;
}

/** `undefined` if the possible values say nothing of it. */
export function boundedByField(compare: CheckedCompare): Bounded | undefined {
  const isSwapped = compare.left.kind === 'literal';
  const [subject, literal] = isSwapped ? [compare.right, compare.left] : [compare.left, compare.right];
  const op = isSwapped ? OPERATORS[compare.op].mirror : compare.op;
  if (op === undefined || literal.kind !== 'literal' || literal.exact !== undefined) return undefined;
  if (subject.kind === 'count') {
    const decided = ofValue(op, literal, { min: 0 });
    return decided && { ...decided, fact: 'a count is at least 0' };
  }
  if (subject.kind !== 'column' || subject.column.kind !== 'field') return undefined;
  const { field } = subject.column;
  if (field.enum !== undefined) {
    const decided = ofEnum(op, literal, field.enum);
    if (decided !== undefined)
      return { ...decided, fact: `\`${field.name}\` has ${enumFact(field.enum)}`, by: 'enums' };
  }
  if (field.min === undefined && field.max === undefined) return undefined;
  const decided = isText(field.type)
    ? ofLength(op, literal, { min: field.min, max: field.max })
    : ofValue(op, literal, field);
  return decided && { ...decided, fact: factOf(field), by: 'bounds' };
}

type DecidedBound = Omit<Bounded, 'fact'>;

const limitsIn = ({ value }: LiteralOperand): readonly Limit[] =>
  (Array.isArray(value) ? value : [value]).filter((each): each is Limit => typeof each !== 'boolean');

function ofEnum(op: CheckedCompare['op'], literal: LiteralOperand, names: readonly Limit[]): DecidedBound | undefined {
  const operator = OPERATORS[op];
  const values = limitsIn(literal);
  const isOneOf = names.some((name) => values.includes(name));
  const isAlways = names.every((name) => values.includes(name));
  if (isMember(operator)) return { canHold: isOneOf, canFail: !isAlways };
  if (isNonMember(operator)) return { canHold: !isAlways, canFail: isOneOf };
  return undefined;
}

const enumFact = (names: readonly Limit[]): string =>
  names.length === 1 ? `the one value \`${names[0]}\`` : 'no other values';

const isInBounds = (value: Limit, { min, max, type }: FieldLimits): boolean =>
  (min === undefined || rank(value, min, type) >= 0) && (max === undefined || rank(value, max, type) <= 0);

function ofValue(op: CheckedCompare['op'], literal: LiteralOperand, limits: FieldLimits): DecidedBound | undefined {
  const operator = OPERATORS[op];
  const values = limitsIn(literal);
  const { min, max } = limits;
  const isOneOf = values.some((value) => isInBounds(value, limits));
  const isAlways = min === max && values.some((value) => value === min);
  if (isMember(operator)) return { canHold: isOneOf, canFail: !isAlways };
  if (isNonMember(operator)) return { canHold: !isAlways, canFail: isOneOf };
  const [value] = values;
  if (operator.direction === undefined || value === undefined) return undefined;
  // The least and the greatest value decide for all between them.
  const [best, worst] = operator.direction === 'up' ? [max, min] : [min, max];
  const holdsFor = (limit: Limit | undefined): boolean | undefined =>
    limit === undefined ? undefined : operator.holds(limit, value, limits.type);
  return { canHold: holdsFor(best) ?? true, canFail: !(holdsFor(worst) ?? false) };
}

/** Strings are bounded in their length, in code points. */
function ofLength(op: CheckedCompare['op'], literal: LiteralOperand, limits: FieldLimits): DecidedBound | undefined {
  const operator = OPERATORS[op];
  const lengths = limitsIn(literal).map((value) => [...String(value)].length);
  const isOneOf = lengths.some((length) => isInBounds(length, limits));
  if (isMember(operator)) return { canHold: isOneOf, canFail: true };
  if (isNonMember(operator)) return { canHold: true, canFail: isOneOf };
  const isPart = operator.family === 'text' && operator.folds !== true;
  if (!isPart || limits.max === undefined) return undefined;
  return { canHold: lengths.every((length) => length <= Number(limits.max)), canFail: true };
}

function factOf({ name, type, min, max }: CatalogField): string {
  const range = min === undefined ? `at most ${max}` : max === undefined ? `at least ${min}` : `from ${min} to ${max}`;
  return isText(type) ? `\`${name}\` has ${range} characters` : `\`${name}\` is ${range}`;
}
