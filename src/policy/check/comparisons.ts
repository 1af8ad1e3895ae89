/** The type rules of comparisons. The table of operators assigns one to each operator. */
import { replacing } from '../../../grammar/policy-error.ts';
import { nearest } from '../../../grammar/suggest.ts';
import type { Compare, Span } from '../../../grammar/syntax.ts';
import { isBlankNeedle } from '../fold.ts';
import { equal, equalityOf, HOLDS, membershipOf, OPERATORS } from '../operators.ts';
import { describeType, elementOf, isNumeric, isOpaque, isText, isTo, isWhole, scalarOf } from '../scalar-types.ts';
import { canEqual } from '../scalars/numerals.ts';
import {
  type Checked,
  type CheckedOperand,
  type ColumnOperand,
  type IdType,
  idOf,
  type ToManyPath,
  type ValueType,
} from '../types.ts';
import { isRolesOfCaller } from '../visit.ts';
import { addressTest, impossibleFact, isAddressFact } from './fact-comparisons.ts';
import { isExact, type Literal, nearestDouble, readList, readLiteral } from './literals.ts';
import { addressOfUser, elementByName, isAddress } from './named-records.ts';
import { readAs, typeGiven } from './params.ts';
import type { CheckIssue } from './place.ts';
import {
  type Comparing,
  isScalar,
  isWholePath,
  type Pair,
  type ScalarSide,
  type Side,
  sideOf,
  textAt,
} from './sides.ts';

export function checkCompare(expr: Compare, at: Comparing): Checked | undefined {
  const left = sideOf(expr.left, { ...at, beside: expr.right });
  const right = sideOf(expr.right, { ...at, beside: expr.left });
  if (left === undefined || right === undefined) return undefined;
  const pair = { expr, left, right, at };
  const counted = [left, right].find(isCount);
  const issue = counted && wrongCount(counted, counted === left ? right : left);
  if (issue !== undefined) return rejectPair(pair, issue);
  if (left.kind === 'null' || right.kind === 'null') return rejectPair(pair, comparedWithNull(pair));
  if (left.kind === 'to many' && OPERATORS[expr.op].sides === 'holder' && isWholePath(left))
    return containsElement(pair, left.relation.path);
  if (OPERATORS[expr.op].sides === 'place') return placed(pair);
  const whole = [left, right].find(isJson);
  if (whole !== undefined) return rejectPair(pair, comparedJson(pair, whole));
  if (isAddressFact(left) || isAddressFact(right)) return addressTest(pair);
  const list = [left, right].find(isListField);
  if (list !== undefined) return list === left ? containsTest(pair, list) : rejectPair(pair, comparedList(pair, list));
  const bare = left.kind === 'to many' ? left : right.kind === 'to many' ? right : undefined;
  if (bare !== undefined) return rejectPair(pair, bareToMany(pair, bare));
  const impossible = impossibleFact(pair);
  if (impossible !== undefined) return rejectPair(pair, impossible);
  switch (OPERATORS[expr.op].sides) {
    case 'same':
    case 'ordered':
    case 'text':
      return scalars(pair);
    case 'element':
      return membershipTest(pair);
    case 'holder':
      return holding(pair);
    case 'search':
      return searching(pair);
    case 'place':
      return placed(pair);
  }
}

const isCount = (side: Side): boolean => side.kind === 'fixed' && side.operand.kind === 'count';

/** A count may be compared with literals, values of the request, and int fields. */
function wrongCount(counted: Side, other: Side): CheckIssue | undefined {
  if (isCount(other)) {
    const message = 'a count is compared with a number, a value of the request or an int, not with another count';
    return { code: 'count_compared', message, span: { ...counted.span, end: other.span.end } };
  }
  if (other.kind !== 'fixed' || other.operand.kind !== 'column' || isWhole(other.operand.type)) return undefined;
  return mismatch(other.span, other.operand.type, 'int');
}

function rejectPair({ at }: Pair, issue: CheckIssue): undefined {
  return at.report(issue);
}

// ---------------------------------------------------------------- types

function comparable(left: ValueType, right: ValueType): boolean {
  if (isTo(left)) return isTo(right) ? left.id === right.id : isOfIds(right, left);
  if (isTo(right)) return isOfIds(left, right);
  return left === right || (isNumeric(left) && isNumeric(right));
}

/** An int id is one of the integers; other ids have texts. */
const isOfIds = (type: ValueType, id: IdType): boolean => (isWhole(id) ? isWhole(type) : isText(type));

function mismatch(span: Span, found: ValueType, expected: ValueType): CheckIssue {
  const both = typeof found === 'object' && typeof expected === 'object';
  const message = both
    ? `ids of \`${found.id}\` and of \`${expected.id}\` are never equal`
    : `expected ${describeType(expected)}, found ${describeType(found)}`;
  return { code: 'type_mismatch', message, span };
}

/** The type that a side has by itself. */
function ownType(side: ScalarSide): ValueType | undefined {
  switch (side.kind) {
    case 'fixed':
      return side.operand.type;
    case 'literal': {
      const read = readLiteral(side.literal);
      return 'code' in read ? undefined : read.type;
    }
    case 'query':
      return undefined;
  }
}

/** The side as an operand of a comparison with type `against`. */
function settle(side: ScalarSide, against: ValueType, at: Comparing): CheckedOperand | undefined {
  switch (side.kind) {
    case 'query':
      return readAs(side.query, against, false);
    case 'fixed':
      if (comparable(side.operand.type, against)) return side.operand;
      return at.report(mismatch(side.span, side.operand.type, against));
    case 'literal': {
      const read = readLiteral(side.literal, against);
      if (!('code' in read)) return read;
      return at.report(read);
    }
  }
}

/**
 * The type both sides are read as: that of a path before that of a literal, since only literals are
 * converted.
 */
function pivotOf(left: ScalarSide, right: ScalarSide): ValueType {
  const fixed = left.kind === 'fixed' ? left : right.kind === 'fixed' ? right : undefined;
  return ownType(fixed ?? left) ?? ownType(right) ?? givenType(left) ?? givenType(right) ?? 'string';
}

/** The type of a param that no other side gives a type. */
const givenType = (side: ScalarSide): ValueType | undefined =>
  side.kind === 'query' ? typeGiven(side.query.given) : undefined;

// ---------------------------------------------------------------- = != < <= > >=, starts with, ends with

function scalars(pair: Pair): Checked | undefined {
  const { expr, left, right, at } = pair;
  if (!isScalar(left) || !isScalar(right)) return rejectPair(pair, listCompared(pair));
  const rule = OPERATORS[expr.op].sides;
  const pivot = rule === 'text' ? 'string' : pivotOf(left, right);
  if (rule === 'ordered' && !scalarOf(pivot).ordered) return rejectPair(pair, unordered(expr, pivot));
  const empty = typeof pivot === 'object' ? [left, right].find(isEmptyString) : undefined;
  if (empty !== undefined) return rejectPair(pair, emptyIdentifier(pair, empty));
  const address = typeof pivot === 'object' && pivot.id === 'users' ? [left, right].find(isAddress) : undefined;
  if (address !== undefined) return rejectPair(pair, addressOfUser(pair, address));
  if (rule === 'text') return texts(pair, left, right);
  return finish(pair, settle(left, pivot, at), settle(right, pivot, at));
}

/** Substrings are searched in strings only; an id is not a string. */
function texts(pair: Pair, left: ScalarSide, right: ScalarSide): Checked | undefined {
  return finish(pair, settleText(left, pair.at), settleText(right, pair.at));
}

function settleText(side: ScalarSide, at: Comparing): CheckedOperand | undefined {
  if (side.kind !== 'fixed' || isText(side.operand.type)) return settle(side, 'string', at);
  return at.report(mismatch(side.span, side.operand.type, 'string'));
}

const isEmptyString = (side: ScalarSide): boolean =>
  side.kind === 'literal' && side.literal.kind === 'text' && side.literal.value === '';

/** `@request.auth.id != ""`: the check for a signed-in caller in other systems. */
function emptyIdentifier({ expr, left, right, at }: Pair, empty: ScalarSide): CheckIssue {
  const other = empty === left ? right : left;
  const test = OPERATORS[expr.op].negative ? 'is not null' : 'is null';
  const message = `an id is never an empty string; expected \`${test}\``;
  const fix = { span: expr.span, replacement: `${textAt(at, other.span)} ${test}` };
  return { code: 'identifier_malformed', message, span: empty.span, suggestion: test, fix };
}

function finish(pair: Pair, left: CheckedOperand | undefined, right: CheckedOperand | undefined): Checked | undefined {
  const { op, span } = pair.expr;
  const isFloat = isFloatSide(pair.left) || isFloatSide(pair.right);
  const operandOf = (side: CheckedOperand): CheckedOperand =>
    isFloat && side.kind === 'literal' && !side.list ? nearestDouble(side) : side;
  return left && right && { kind: 'compare', op, left: operandOf(left), right: operandOf(right), span };
}

/** A float by itself, not by the literal that it meets. The literal of an argument means what it means in its place. */
const isFloatSide = (side: Side): boolean =>
  side.kind === 'fixed' &&
  side.operand.kind !== 'literal' &&
  isNumeric(side.operand.type) &&
  !isWhole(side.operand.type);

function unordered({ op, opSpan }: Compare, type: ValueType): CheckIssue {
  const message = `\`${op}\` compares strings, numbers, dates and times, not ${describeType(type)}; expected \`=\` or \`!=\``;
  return { code: 'type_unordered', message, span: opSpan };
}

/** `@request.auth.roles = "admin"`, `@record.status = ["a", "b"]`. */
function listCompared({ expr, left, right, at }: Pair): CheckIssue {
  const [one, many] = isScalar(left) ? [left, right] : [right, left];
  const message = `\`${expr.op}\` compares single values; a list takes \`contains\` or \`in\``;
  const given = { code: 'list_compared', message, span: many.span };
  const { family, negative } = OPERATORS[expr.op];
  if (!isScalar(one) || family !== 'equality') return given;
  const [value, list] = [textAt(at, one.span), textAt(at, many.span)];
  const replacement = `${value} ${membershipOf(!negative)} ${list}`;
  return { ...given, suggestion: membershipOf(true), fix: { span: expr.span, replacement } };
}

// ---------------------------------------------------------------- in, not in

function membershipTest(pair: Pair): Checked | undefined {
  const { left, right } = pair;
  if (!isScalar(left)) return rejectPair(pair, elementExpected(left));
  if (isScalar(right) && right.kind !== 'query') return rejectPair(pair, listExpected(pair));
  const { element, list } = elementAndList(pair, left, right);
  return finish(pair, element, list);
}

function elementExpected({ span }: Side): CheckIssue {
  return { code: 'list_misplaced', message: 'a list cannot be an element of a list; expected a single value', span };
}

function listExpected({ expr, left, right, at }: Pair): CheckIssue {
  const message = `\`${expr.op}\` takes a list: literals between \`[\` and \`]\`, \`@request.auth.roles\` or a query parameter`;
  const given = { code: 'list_expected', message, span: right.span };
  if (right.kind === 'literal') {
    return { ...given, suggestion: '[', fix: { span: right.span, replacement: `[${textAt(at, right.span)}]` } };
  }
  return { ...given, ...contained(expr, textAt(at, right.span), textAt(at, left.span)) };
}

/** `x in y` as `y contains x`. */
function contained({ op, span }: Compare, holder: string, element: string): Pick<CheckIssue, 'suggestion' | 'fix'> {
  const positive = `${holder} ${HOLDS} ${element}`;
  const replacement = OPERATORS[op].negative ? `not (${positive})` : positive;
  return { suggestion: HOLDS, fix: { span, replacement } };
}

/** The two sides of an element test, in either order. */
function elementAndList(
  { at }: Pair,
  one: ScalarSide,
  many: Side,
): { readonly element?: CheckedOperand; readonly list?: CheckedOperand } {
  switch (many.kind) {
    case 'held': {
      if (!isRolesOfCaller(many.operand)) return given(settle(one, many.operand.type, at), many.operand);
      checkRoles(one.kind === 'literal' ? [one.literal] : [], at);
      return given(settleText(one, at), many.operand);
    }
    case 'query': {
      const type = ownType(one) ?? givenType(one) ?? 'string';
      return given(settle(one, type, at), readAs(many.query, type, true));
    }
    case 'list': {
      const type = ownType(one);
      const element = { type, isExact: isExactNumeral(one), isFloat: isFloatSide(one) };
      const { operand, issues } = readList(many.list, element);
      for (const issue of issues) at.report(issue);
      if (operand === undefined) return {};
      // A list of fractions beside an int id has been read against the id.
      const isOwn = many.list.items.length === 0 || (type !== undefined && isTo(type));
      return given(settle(one, isOwn ? (type ?? operand.type) : operand.type, at), operand);
    }
    default:
      return {};
  }
}

const isExactNumeral = (side: ScalarSide): boolean => {
  if (side.kind === 'literal') return isExact(side.literal);
  return side.kind === 'fixed' && side.operand.kind === 'literal' && side.operand.exact !== undefined;
};

const given = (element: CheckedOperand | undefined, list: CheckedOperand | undefined) => ({
  ...(element && { element }),
  ...(list && { list }),
});

function checkRoles(literals: readonly Literal[], at: Comparing): void {
  for (const literal of literals) {
    if (literal.kind !== 'text' || at.catalog.roles.has(literal.value)) continue;
    const near = nearest(literal.value, at.catalog.roles.keys());
    const names = [...at.catalog.roles.keys()].map((name) => `\`${name}\``).join(', ');
    const expected = `expected ${names || 'one of `roles`, which is empty'}`;
    const message = `unknown role \`${literal.value}\`; ${near === undefined ? expected : `did you mean \`${near}\`?`}`;
    const replacement = JSON.stringify(near);
    at.report({
      code: 'role_unknown',
      message,
      span: literal.span,
      ...(near !== undefined && { suggestion: near, fix: { span: literal.span, replacement } }),
    });
  }
}

// ---------------------------------------------------------------- contains

function holding(pair: Pair): Checked | undefined {
  const { left, right } = pair;
  if (!isScalar(right)) return rejectPair(pair, elementExpected(right));
  if (left.kind === 'fixed' || left.kind === 'literal' || isString(left)) {
    const type = isString(left) ? 'string' : ownType(left);
    if (type === undefined || !isText(type)) return rejectPair(pair, holderExpected(left, type));
    return texts(pair, left, right);
  }
  const { element, list } = elementAndList(pair, right, left);
  return finish(pair, list, element);
}

/** A param that is a string has parts, not elements. */
const isString = (side: Side): side is ScalarSide => side.kind === 'query' && typeof side.query.given === 'string';

function holderExpected({ span }: ScalarSide, type: ValueType | undefined): CheckIssue {
  const found = type === undefined ? 'a value' : describeType(type);
  const message = `\`contains\` takes a list, a to-many relation or a string on its left, found ${found}`;
  return { code: 'type_mismatch', message, span };
}

// ---------------------------------------------------------------- json and list fields

type OpaqueSide = Extract<Side, { kind: 'fixed' }>;
const isJson = (side: Side): side is OpaqueSide =>
  side.kind === 'fixed' && isOpaque(side.operand.type) && elementOf(side.operand.type) === undefined;

function comparedJson({ at }: Pair, { span, operand: { type } }: OpaqueSide): CheckIssue {
  const text = textAt(at, span);
  const advice = `expected \`${text} is null\`, or a field for the part that rules ask about`;
  const message = `\`${text}\` is ${describeType(type)}, which is not compared as a whole; ${advice}`;
  return { code: 'json_compared', message, span };
}

type ListFieldSide = Extract<Side, { kind: 'fixed' }> & { readonly operand: ColumnOperand };
const isListField = (side: Side): side is ListFieldSide =>
  side.kind === 'fixed' && side.operand.kind === 'column' && elementOf(side.operand.type) !== undefined;

/** A list field holds an element. */
function containsTest(pair: Pair, list: ListFieldSide): Checked | undefined {
  const { expr, right, at } = pair;
  if (OPERATORS[expr.op].sides !== 'holder') return rejectPair(pair, comparedList(pair, list));
  if (!isScalar(right) || isListField(right)) return rejectPair(pair, elementExpected(right));
  const type = elementOf(list.operand.type)!;
  // An array holds numbers of one type.
  if (
    right.kind === 'fixed' &&
    right.operand.kind === 'column' &&
    isNumeric(right.operand.type) &&
    right.operand.type !== type
  )
    return rejectPair(pair, mismatch(right.span, right.operand.type, type));
  const settled = settle(right, type, at);
  if (settled?.kind !== 'literal') return finish(pair, list.operand, settled);
  const element = isWhole(type) ? settled : nearestDouble(settled);
  const number = { value: Number(element.value), exact: element.exact as string | undefined };
  if (isNumeric(type) && !canEqual(type, number)) return rejectPair(pair, mismatch(right.span, element.type, type));
  return finish(pair, list.operand, element);
}

/** `@record.labels = "a"`, `"a" in @record.labels`. */
function comparedList({ expr, left, right, at }: Pair, list: ListFieldSide): CheckIssue {
  const other = list === left ? right : left;
  const text = textAt(at, list.span);
  const message = `\`${text}\` is a list, which takes \`${HOLDS}\`, \`count\`, or a quantifier such as \`any(${text} as x, …)\``;
  const given = { code: 'list_compared', message, span: list.span };
  const { family } = OPERATORS[expr.op];
  const asksForOne = family === 'equality' || (family === 'list' && list === right);
  if (!asksForOne || !isScalar(other) || isListField(other)) return given;
  return { ...given, ...contained(expr, text, textAt(at, other.span)) };
}

// ---------------------------------------------------------------- within

/** The parser has read the circle. */
function placed(pair: Pair): Checked | undefined {
  const { left, right, at } = pair;
  if (left.kind !== 'fixed' || left.operand.type !== 'point')
    return rejectPair(pair, mismatch(left.span, (isScalar(left) && ownType(left)) || 'string', 'point'));
  return finish(pair, left.operand, isScalar(right) ? settle(right, 'string', at) : undefined);
}

// ---------------------------------------------------------------- matches

function searching(pair: Pair): Checked | undefined {
  const { left, right, at } = pair;
  if (!isScalar(right)) return rejectPair(pair, elementExpected(right));
  const field = left.kind === 'fixed' && left.operand.kind === 'column' ? left.operand.column : undefined;
  if (field?.kind !== 'field' || field.field.search !== true) return rejectPair(pair, searchExpected(pair, field));
  if (right.kind === 'fixed' && right.operand.kind === 'column') return rejectPair(pair, needleExpected(pair));
  const needle = settleText(right, at);
  if (needle?.kind === 'literal' && isBlankNeedle(String(needle.value))) return rejectPair(pair, blankNeedle(pair));
  return finish(pair, left.kind === 'fixed' ? left.operand : undefined, needle);
}

function blankNeedle({ expr, right }: Pair): CheckIssue {
  const message = `\`${expr.op}\` ignores accents and other marks, and this string has nothing else; expected a letter, a digit or another character`;
  return { code: 'needle_blank', message, span: right.span };
}

function searchExpected({ expr, left }: Pair, column: ColumnOperand['column'] | undefined): CheckIssue {
  const given = { code: 'search_expected', span: left.span };
  if (column?.kind !== 'field' || !isText(column.field.type)) {
    const message = `\`${expr.op}\` looks in a string field of a record, one with \`search: true\``;
    return { ...given, message };
  }
  const { name } = column.field;
  const message = `\`${name}\` keeps nothing to search in; give the field \`search: true\`, or use \`contains\``;
  return { ...given, message, ...replacing(expr.opSpan, HOLDS) };
}

function needleExpected({ expr, right }: Pair): CheckIssue {
  const message = `\`${expr.op}\` looks for a literal or a value of the request, not for another field`;
  return { code: 'needle_expected', message, span: right.span };
}

function containsElement(pair: Pair, path: ToManyPath): Checked | undefined {
  const { expr, right, at } = pair;
  if (!isScalar(right)) return rejectPair(pair, elementExpected(right));
  const collection = path.relation.collection;
  const type = idOf(at.catalog, collection);
  const named = right.kind === 'literal' ? elementByName(pair, right.literal) : undefined;
  if (named !== undefined) return rejectPair(pair, named);
  const element = settle(right, type, at);
  if (element === undefined) return undefined;
  const variable = at.freshName('element');
  const scope = { kind: 'variable', name: variable } as const;
  const left: ColumnOperand = {
    kind: 'column',
    scope,
    collection,
    steps: [],
    column: { kind: 'id' },
    type,
    nullable: false,
    span: path.span,
  };
  const condition: Checked = { ...equal(left, element, expr.span), synthetic: true };
  return { kind: 'quantified', quantifier: 'any', path, variable, condition, span: expr.span };
}

// ---------------------------------------------------------------- null and to-many

function comparedWithNull({ expr, left, right, at }: Pair): CheckIssue {
  const other = left.kind === 'null' ? right : left;
  const span = left.kind === 'null' ? left.span : right.span;
  const test = OPERATORS[expr.op].negative ? 'is not null' : 'is null';
  const message = `a comparison with \`null\` is never true; expected \`${test}\``;
  const given = { code: 'null_compared', message, span, suggestion: test };
  if (other.kind === 'null' || OPERATORS[expr.op].family !== 'equality') return given;
  return { ...given, fix: { span: expr.span, replacement: `${textAt(at, other.span)} ${test}` } };
}

/** `ancestors(…) contains x`, `x in ancestors(…)`, `ancestors(…) = x`. */
function comparedAncestors({ expr, left, right, at }: Pair, bare: Side): CheckIssue {
  const chain = textAt(at, bare.span);
  const wanted = OPERATORS[expr.op].negative ? 'none' : 'any';
  const message = `ancestors are many records; expected \`${wanted}(${chain} as x, …)\``;
  const given = { code: 'to_many_compared', message, span: bare.span, suggestion: wanted };
  const other = bare === left ? right : left;
  const name = ['x', 'y', 'z', 'x1', 'x2', 'x3'].find((each) => !at.variables.has(each));
  const { family, sides } = OPERATORS[expr.op];
  const asksForOne = sides === 'holder' || family === 'list' || family === 'equality';
  if (!asksForOne || name === undefined || !isScalar(other)) return given;
  const replacement = `${wanted}(${chain} as ${name}, ${name} ${equalityOf(true)} ${textAt(at, other.span)})`;
  return { ...given, fix: { span: expr.span, replacement } };
}

/** `@record.tags = x`, `@record.team.memberships.user = x`, `x in @record.tags`. */
function bareToMany(pair: Pair, bare: Extract<Side, { kind: 'to many' }>): CheckIssue {
  const { expr, left, right, at } = pair;
  const { path, relation } = bare;
  if (path.kind === 'ancestors') return comparedAncestors(pair, bare);
  const relationText = textAt(at, { start: path.span.start, end: relation.path.span.end });
  const rest = at.text.slice(relation.path.span.end, path.span.end);
  const wanted = OPERATORS[expr.op].negative ? 'all' : 'any';
  const message = `\`${relationText}\` is many records; expected \`any(${relationText} as x, …)\`, or \`all\` or \`none\``;
  const given = { code: 'to_many_compared', message, span: { start: path.span.start, end: relation.path.span.end } };
  if (bare === right && OPERATORS[expr.op].family === 'list' && rest === '') {
    return { ...given, ...contained(expr, relationText, textAt(at, left.span)) };
  }
  const name = ['x', 'y', 'z', 'x1', 'x2', 'x3'].find((each) => !at.variables.has(each));
  if (name === undefined || left.kind === right.kind) return { ...given, suggestion: wanted };
  const replaced =
    at.text.slice(expr.span.start, path.span.start) + name + rest + at.text.slice(path.span.end, expr.span.end);
  return {
    ...given,
    suggestion: wanted,
    fix: { span: expr.span, replacement: `${wanted}(${relationText} as ${name}, ${replaced})` },
  };
}
