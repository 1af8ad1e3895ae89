/**
 * Reads literals as the type of the other side. A number is never rounded; a string may become a
 * datetime or an id, nothing else.
 */
import { replacing } from '../../../grammar/policy-error.ts';
import type { Bool, List, NumeralLiteral, TextLiteral } from '../../../grammar/syntax.ts';
import {
  describeType,
  gridOf,
  isNumeric,
  isText,
  isTo,
  isTruth,
  isWhole,
  type LiteralForm,
  scalarOf,
} from '../scalar-types.ts';
import type { LiteralOperand, ValueType } from '../types.ts';
import { plainNumeral, type Scalar, withoutTrailingZeros } from '../values.ts';
import type { CheckIssue } from './place.ts';

export type Literal = TextLiteral | NumeralLiteral | Bool;
interface LiteralRead {
  readonly value: Scalar;
  readonly type: ValueType;
  readonly exact?: string;
}

/** Digits without leading or trailing zeros, and their power of ten. */
function normalised(source: string): string {
  const [mantissa = '', exponent = '0'] = source.toLowerCase().split('e');
  const [whole = '', fraction = ''] = mantissa.replace('-', '').split('.');
  const digits = (whole + fraction).replace(/^0+/, '');
  const kept = withoutTrailingZeros(digits);
  return kept === '' ? '0' : `${kept}e${Number(exponent) - fraction.length + digits.length - kept.length}`;
}

/** A fraction is the nearest double; an integer is itself or `exact`. */
function isHeldExactly(source: string, value: number): boolean {
  if (!Number.isFinite(value)) return false;
  return !Number.isInteger(value) || normalised(source) === normalised(BigInt(value).toString());
}

function readNumber({ source }: NumeralLiteral): LiteralRead {
  const value = Number(source) + 0;
  const held = isHeldExactly(source, value);
  const type = held && Number.isSafeInteger(value) ? 'int' : 'float';
  return { value, type, ...(held ? {} : { exact: source }) };
}

function ownReading(literal: Literal): LiteralRead {
  switch (literal.kind) {
    case 'text':
      return { value: literal.value, type: 'string' };
    case 'bool':
      return { value: literal.value, type: 'bool' };
    case 'number':
      return readNumber(literal);
  }
}

function literalMismatch(literal: Literal, type: ValueType): CheckIssue {
  const found = describeType(ownReading(literal).type);
  const message = `expected ${describeType(type)}, found ${found}`;
  return { code: 'type_mismatch', message, span: literal.span, ...replacing(literal.span, retyped(literal, type)) };
}

/** `"5"` against an int is 5, `5` against a string is "5". */
function retyped(literal: Literal, type: ValueType): string | undefined {
  if (isText(type))
    return literal.kind === 'text'
      ? undefined
      : JSON.stringify(literal.kind === 'number' ? literal.source : `${literal.value}`);
  if (literal.kind !== 'text') return undefined;
  if ((isNumeric(type) || gridOf(type)) && /^-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?$/.test(literal.value))
    return literal.value;
  return isTruth(type) && /^(?:true|false)$/.test(literal.value) ? literal.value : undefined;
}

function malformedLiteral(
  { value, span }: TextLiteral,
  type: ValueType,
  { code, expected, corrected }: LiteralForm,
): CheckIssue {
  if (isTo(type)) return { code, message: `not ${expected}, which an ${describeType(type)} is`, span };
  const given = { code, message: `not a ${type}; expected one such as ${expected}`, span };
  const right = corrected?.(value);
  if (right === undefined || scalarOf(type).readText(right) === undefined) return given;
  const replacement = JSON.stringify(right);
  const message = `${given.message}; did you mean ${replacement}?`;
  return { ...given, message, ...replacing(span, replacement) };
}

function readAgainst(literal: Literal, type: ValueType): LiteralRead | CheckIssue {
  const { literal: form, readText } = scalarOf(type);
  if (literal.kind === 'text' && form !== undefined) {
    const value = readText(literal.value);
    return value === undefined ? malformedLiteral(literal, type, form) : { value, type };
  }
  if (literal.kind === 'number' && gridOf(type) !== undefined) return { value: plainNumeral(literal.source), type };
  const own = ownReading(literal);
  if (isNumeric(own.type) && isNumeric(type)) return { ...own, type: isWhole(type) ? own.type : type };
  return own.type === type ? own : literalMismatch(literal, type);
}

/** Against a float, a number is the nearest double, as stored values and parameters are; beyond all doubles it stays. */
export function nearestDouble<T extends Pick<LiteralOperand, 'value' | 'exact'>>(read: T): T {
  if (read.exact === undefined || !Number.isFinite(read.value)) return read;
  const { exact, ...nearest } = read;
  return nearest as T;
}

const isIssue = (read: LiteralRead | CheckIssue): read is CheckIssue => 'code' in read;

/** `against`: the type of the other side, if that has one. */
export function readLiteral(literal: Literal, against?: ValueType): LiteralOperand | CheckIssue {
  const read = against === undefined ? ownReading(literal) : readAgainst(literal, against);
  if (isIssue(read)) return read;
  return { kind: 'literal', ...read, list: false, span: literal.span };
}

export interface ReadList {
  readonly operand?: LiteralOperand;
  readonly issues: readonly CheckIssue[];
}

/** True if a literal is a number that no double holds. */
export const isExact = (literal: Literal): boolean =>
  literal.kind === 'number' && readNumber(literal).exact !== undefined;

interface ListElement {
  readonly type: ValueType | undefined;
  /** It is a number that no double holds, so that only such numbers of the list can equal it. */
  readonly isExact: boolean;
  /** It is a float by itself, not by the elements that it meets. */
  readonly isFloat: boolean;
}

/** `element`: the other side. */
export function readList(list: List, element: ListElement): ReadList {
  const against = element.type;
  const issues: CheckIssue[] = [];
  const items: LiteralRead[] = [];
  // If the other side has no type, the first element determines the type of the list.
  let expected = against;
  for (const item of list.items) {
    if (item.kind === 'null') {
      const message = '`null` in a list equals nothing; expected literals, with `is null` as a condition of its own';
      issues.push({ code: 'null_compared', message, span: item.span });
      continue;
    }
    const read = expected === undefined ? ownReading(item) : readAgainst(item, expected);
    if (isIssue(read)) issues.push(read);
    else items.push(read);
    if (!isIssue(read)) expected ??= read.type;
  }
  return issues.length > 0
    ? { issues }
    : { operand: listOperand(list, itemsFor(element, items), expected ?? 'string'), issues };
}

function itemsFor(element: ListElement, read: readonly LiteralRead[]): readonly LiteralRead[] {
  const items = element.isFloat ? read.map(nearestDouble) : read;
  const exact = element.isExact ? items.filter((item) => item.exact !== undefined) : [];
  return exact.length > 0 ? exact : items;
}

function listOperand(list: List, items: readonly LiteralRead[], type: ValueType): LiteralOperand {
  // A number that no double holds equals no stored number. A list of only such numbers keeps them,
  // because it is not the empty list.
  const held = items.filter((item) => item.exact === undefined);
  const kept = held.length > 0 ? held : items;
  const exact = held.length === 0 && items.length > 0 ? { exact: items.map((item) => item.exact!) } : {};
  const whole = kept.every((item) => item.exact === undefined && Number.isSafeInteger(item.value));
  const elementType = isNumeric(type) && !(isWhole(type) && whole) ? 'float' : type;
  return {
    kind: 'literal',
    value: kept.map((item) => item.value),
    ...exact,
    type: elementType,
    list: true,
    span: list.span,
  };
}
