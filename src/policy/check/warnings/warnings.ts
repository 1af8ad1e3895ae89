/**
 * Warns of policies that compile but are probably not intended. Each warning states the effect and,
 * if possible, offers a fix.
 */
import { innerExpressions, intendedMarks, isInParentheses } from '../../../../grammar/intended.ts';
import type { PolicyIssue } from '../../../../grammar/policy-error.ts';
import { MOST_ISSUES } from '../../../../grammar/read-tokens.ts';
import type { Expr, Span } from '../../../../grammar/syntax.ts';
import { isMember, OPERATORS } from '../../operators.ts';
import type {
  CheckContext,
  Checked,
  CheckedCompare,
  CheckedOperand,
  CheckedQuantified,
  CountOperand,
  RequestOperand,
} from '../../types.ts';
import { isList, partsOf, scopesOf } from '../../visit.ts';
import { boundedByField } from '../field-bounds.ts';
import { CAN_BE_FALSE, CAN_BE_TRUE, CAN_BE_UNKNOWN, canBe, identity, isAlwaysKnown, outcomes } from '../outcomes.ts';
import { mayBeAbsent } from '../resolve.ts';
import { textAt } from '../sides.ts';
import { callerWarnings } from './caller-warnings.ts';
import { unknownEnumValues } from './enum-values.ts';
import { guestWarnings } from './guest-warnings.ts';
import { type CheckedJunction, JunctionReview, variableName } from './junction-warnings.ts';
import { beyondNow, emailDomain, emailUnverified, enumOrder, isEmptyText, isVerifiedTest } from './value-warnings.ts';
import { UNNEEDED_MARK, type Warning } from './warning-list.ts';

type CheckedIsNull = Extract<Checked, { kind: 'is null' }>;
type Warn = (warning: Warning) => void;

/** The facts that the surrounding clauses settle. */
interface Surroundings {
  /** True under an odd number of `not` and `none`. */
  readonly negated: boolean;
  /** Operands that a sibling clause tests for null. */
  readonly nullTested: ReadonlySet<string>;
  /** Relations for which a sibling clause requires an element (`any`). */
  readonly inhabited: ReadonlySet<string>;
  /** Needles that a sibling clause compares with the empty string. */
  readonly filled: ReadonlySet<string>;
  /** A sibling clause requires a verified address of the caller. */
  readonly verified: boolean;
  /** Within a count, of which more can allow more, or less. */
  readonly counted: boolean;
  /** The `not` directly around the clause. */
  readonly not?: Span;
}
const ALONE: Surroundings = {
  negated: false,
  nullTested: new Set(),
  inhabited: new Set(),
  filled: new Set(),
  verified: false,
  counted: false,
};

/** The bounds and the enum of a field constrain new writes only. */
const byOldRecords = (rules: string): string => `only a record that was stored under other ${rules} can make this`;

/** The warnings of a checked text, but for those that its author marks as intended. `expr` is its syntax tree. */
export function warnings(expr: Expr, checked: Checked, context: CheckContext): readonly PolicyIssue[] {
  const found: Warning[] = [];
  // `true` and `false` as a whole policy are written on purpose.
  if (checked.kind !== 'const') {
    const add = (warning: Warning): void => {
      // The body of a named condition is reviewed by itself.
      if (warning.span.source === undefined) found.push(warning);
    };
    new Review(context, add).clause(checked, ALONE);
    for (const warning of [...callerWarnings(checked, context), ...mixedLogic(expr, context.text)]) add(warning);
    const never = neverAllows(checked, found);
    if (never !== undefined) add(never);
  }
  found.push(...guestWarnings(checked, context));
  return unmarked(found, expr, context)
    .slice(0, MOST_ISSUES)
    .map((warning): PolicyIssue => ({ severity: 'warning', ...warning }))
    .sort((a, b) => a.span.start - b.span.start);
}

function neverAllows(checked: Checked, found: readonly Warning[]): Warning | undefined {
  const isReported = found.some(
    ({ code, span }) => code === 'enum_unknown' || (code === 'never_true' && span === checked.span),
  );
  if (isReported || canBe(outcomes(checked), CAN_BE_TRUE)) return undefined;
  const isNever = !canBe(outcomes(checked, { isBounded: false }), CAN_BE_TRUE);
  const effect = isNever
    ? 'this is never true for any record and request, so the rule allows nothing'
    : `${byOldRecords('bounds or enums')} true, so the rule allows nothing else`;
  return { code: 'never_allows', message: `${effect}; write \`false\` to deny on purpose`, span: checked.span };
}

/** Leaves out what `/* intended: … *\/` covers, and adds the marks that cover nothing. */
function unmarked(found: readonly Warning[], expr: Expr, { text }: CheckContext): readonly Warning[] {
  const marks = intendedMarks(text, expr);
  const unneeded = marks.filter(({ reason, covers }) => reason === '' || !found.some(({ span }) => covers(span)));
  const used = marks.filter((mark) => !unneeded.includes(mark));
  return [
    ...found.filter(({ span }) => !used.some(({ covers }) => covers(span))),
    ...unneeded.map(({ span, reason }): Warning => {
      const message =
        reason === ''
          ? 'a mark without a reason silences nothing; expected `/* intended: … */`'
          : 'this mark silences nothing: the condition behind it has no warning; remove it';
      return { code: UNNEEDED_MARK, message, span };
    }),
  ];
}

/** `a or b and c` */
function mixedLogic(expr: Expr, text: string): readonly Warning[] {
  const inner = innerExpressions(expr).flatMap((each) => mixedLogic(each, text));
  const bare = expr.kind === 'or' ? expr.items.filter((item) => item.kind === 'and' && !isInParentheses(item)) : [];
  const [first] = bare;
  if (first === undefined) return inner;
  const slice = ({ start, end }: Span): string => text.slice(start, end);
  const message = `\`and\` binds more tightly than \`or\`: this means \`(${slice(first.span)})\`; write the parentheses`;
  const from = expr.span.start;
  const replacement = bare.reduceRight(
    (result, { span }) => `${result.slice(0, span.start - from)}(${slice(span)})${result.slice(span.end - from)}`,
    slice(expr.span),
  );
  return [{ code: 'mixed_logic', message, span: first.span, fix: { span: expr.span, replacement } }, ...inner];
}

class Review {
  readonly #context: CheckContext;
  readonly #warn: Warn;
  readonly #junctions: JunctionReview;
  readonly #slice = (span: Span): string => textAt(this.#context, span);

  constructor(context: CheckContext, warn: Warn) {
    this.#context = context;
    this.#warn = warn;
    this.#junctions = new JunctionReview(context.text);
  }

  clause(checked: Checked, around: Surroundings): void {
    switch (checked.kind) {
      case 'and':
      case 'or': {
        const inner = beside(checked, around);
        for (const warning of this.#junctions.warnings(checked, around.negated)) this.#warn(warning);
        for (const item of checked.items) this.#item(item, inner);
        break;
      }
      case 'not':
        this.#item(checked.item, { ...around, negated: !around.negated, not: checked.span });
        break;
      case 'quantified':
        this.#quantified(checked, around);
        break;
      case 'compare':
        this.#compare(checked, around);
        break;
      case 'is null':
        this.#isNull(checked, around);
        break;
      case 'const':
        break;
    }
  }

  #item(item: Checked, around: Surroundings): void {
    if (item.kind === 'const') this.settled(item);
    this.clause(item, around);
  }

  #warnIf(warning: Warning | undefined): boolean {
    if (warning !== undefined) this.#warn(warning);
    return warning !== undefined;
  }

  /** Warns of a clause that does not depend on anything, and returns whether it did. */
  settled(checked: Checked): boolean {
    if (checked.kind === 'and' || checked.kind === 'or' || checked.kind === 'not' || checked.kind === 'quantified')
      return false;
    const set = outcomes(checked);
    if (!canBe(set, CAN_BE_FALSE | CAN_BE_UNKNOWN)) {
      this.#warn({ code: 'always_true', message: 'this is always true', span: checked.span });
      return true;
    }
    if (canBe(set, CAN_BE_TRUE)) return false;
    const what = canBe(set, CAN_BE_UNKNOWN) ? (canBe(set, CAN_BE_FALSE) ? 'false or unknown' : 'unknown') : 'false';
    this.#warn({ code: 'never_true', message: `this is always ${what}`, span: checked.span });
    return true;
  }

  // -------------------------------------------------------------- comparisons

  #compare(compare: CheckedCompare, around: Surroundings): void {
    // `tags contains x` means `element.id = x`, whose left side is not in the source.
    const unknown = unknownEnumValues(compare, this.#context.text);
    for (const issue of unknown) this.#warn(issue);
    if (unknown.length === 0 && this.#isBeyondField(compare)) return;
    if (unknown.length === 0 && !compare.synthetic && this.#dependsOnNothing(compare)) return;
    if (this.#warnIf(beyondNow(compare, this.#slice))) return;
    this.#negation(compare, around);
    this.#needle(compare, around);
    this.#dateAsText(compare);
    this.#address(compare, around);
    this.#warnIf(enumOrder(compare, this.#slice));
    for (const side of [compare.left, compare.right]) {
      if (side.kind !== 'count' || side.condition.kind === 'const') continue;
      this.#unusedVariable(side);
      this.clause(side.condition, { ...ALONE, verified: around.verified, counted: true });
    }
  }

  #address(compare: CheckedCompare, around: Surroundings): void {
    const isPositive = (OPERATORS[compare.op].negative === true) === around.negated;
    if (!isPositive || around.counted) return;
    this.#warnIf(emailDomain(compare, this.#slice));
    if (!around.verified) this.#warnIf(emailUnverified(compare, this.#slice));
  }

  /** `score > 100`, where the field's `max` is 100. */
  #isBeyondField(compare: CheckedCompare): boolean {
    const bounded = boundedByField(compare);
    if (bounded === undefined || (bounded.canHold && bounded.canFail)) return false;
    const { canHold, fact, by } = bounded;
    if (canHold && canBe(outcomes(compare), CAN_BE_UNKNOWN)) return false;
    const effect =
      by === undefined
        ? `this is ${canHold ? 'always' : 'never'} true`
        : `${byOldRecords(by)} ${canHold ? 'false' : 'true'}`;
    const code = canHold ? 'always_true' : 'never_true';
    this.#warn({ code, message: `${fact}, so ${effect}`, span: compare.span });
    return true;
  }

  #dependsOnNothing(compare: CheckedCompare): boolean {
    const set = outcomes(compare);
    const constant =
      !canBe(set, CAN_BE_FALSE | CAN_BE_UNKNOWN) ||
      !canBe(set, CAN_BE_TRUE) ||
      (!canBe(set, CAN_BE_FALSE) && identical(compare));
    if (!constant) return false;
    if (canBe(set, CAN_BE_TRUE) && canBe(set, CAN_BE_UNKNOWN)) {
      const message = 'both sides are the same, so this means `is not null`';
      this.#warn({ code: 'same_operands', message, span: compare.span });
      return true;
    }
    return this.settled(compare);
  }

  /** `!=`, `not in`, or a comparison under `not`, over something that can be absent. */
  #negation(compare: CheckedCompare, around: Surroundings): void {
    const ownNegation = OPERATORS[compare.op].negative === true;
    if (ownNegation === around.negated || asksForText(compare)) return;
    const absent = [compare.left, compare.right].find(
      (side) => canSurprise(side) && !around.nullTested.has(identity(side)),
    );
    if (absent === undefined) return;
    const path = this.#slice(absent.span);
    const what = absent.kind === 'request' ? 'be left out' : 'be null';
    const word = ownNegation ? compare.op : 'not';
    const clause = ownNegation ? compare.span : around.not;
    const written = clause === undefined ? undefined : `(${path} is null or ${this.#slice(clause)})`;
    const message = `\`${path}\` can ${what}, and then this is unknown, which denies despite \`${word}\``;
    const hint =
      written === undefined
        ? ''
        : `; \`${written}\` also allows what is absent, \`${path} is not null and …\` makes the denial explicit`;
    // The fix keeps what the rule allows; the other reading would allow more.
    const narrow = clause === undefined ? undefined : `(${path} is not null and ${this.#slice(clause)})`;
    const fix = narrow !== undefined && absent.kind === 'column' ? { span: clause!, replacement: narrow } : undefined;
    this.#warn({ code: 'negation_of_nullable', message: message + hint, span: absent.span, ...(fix && { fix }) });
  }

  #needle({ op, left, right, span }: CheckedCompare, around: Surroundings): void {
    const { family, sides } = OPERATORS[op];
    const isNeedle = family === 'text' && (sides === 'text' || (left.kind !== 'literal' && !isList(left)));
    if (!isNeedle || right.kind !== 'request' || right.source === 'auth' || around.filled.has(identity(right))) return;
    // An empty needle allows nothing by itself where more matches allow less.
    if (around.negated || around.counted) return;
    const path = this.#slice(right.span);
    const replacement = `(${path} != "" and ${this.#slice(span)})`;
    const message = `every string ${op} the empty string, so an empty \`${path}\` makes this true; write \`${replacement}\` to prevent that`;
    this.#warn({ code: 'needle_from_request', message, span: right.span, fix: { span, replacement } });
  }

  #dateAsText({ left, right }: CheckedCompare): void {
    const [request, literal] = left.kind === 'literal' ? [right, left] : [left, right];
    if (request.kind !== 'request' || request.source !== 'query' || literal.kind !== 'literal') return;
    if (typeof literal.value !== 'string' || !/^\d{4}-\d\d-\d\d/.test(literal.value)) return;
    const message =
      'this compares strings, not datetimes: a query parameter is read as a datetime only beside a datetime field or `@now`';
    this.#warn({ code: 'date_as_text', message, span: literal.span });
  }

  #isNull(test: CheckedIsNull, around: Surroundings): void {
    const { operand, negated, span } = test;
    if (operand.kind === 'request' && isAlwaysKnown(operand)) {
      if (negated || this.#context.catalog.guests === true) return;
      const message = `only a caller who is not logged in has no \`${operand.name}\`, and rules are not evaluated for such callers`;
      this.#warn({ code: 'anonymous_only', message, span });
    } else if (operand.kind === 'request' && operand.source === 'data') this.#nullInBody(test, operand, around);
    else this.settled(test);
  }

  /** `@request.data.owner is null`, which is also true of a body that clears the owner. */
  #nullInBody({ negated, span }: CheckedIsNull, { name }: RequestOperand, around: Surroundings): void {
    if (negated !== around.negated || this.#context.action !== 'update') return;
    const replacement = `not changed(@record.${name})`;
    const message = `an explicit null passes this as well, and clears \`${name}\`; write \`${replacement}\` to keep it`;
    this.#warn({ code: 'null_in_body', message, span, ...(!negated && { fix: { span, replacement } }) });
  }

  // -------------------------------------------------------------- quantifiers and chains

  #quantified(quantified: CheckedQuantified, around: Surroundings): void {
    const { quantifier, path, condition, span } = quantified;
    const relation = this.#slice(path.span);
    const canBeEmpty = path.relation.kind !== 'ancestors';
    if (
      quantifier === 'all' &&
      canBeEmpty &&
      !around.negated &&
      !around.counted &&
      !around.inhabited.has(relationKey(quantified))
    ) {
      const replacement = `(any(${relation} as ${freeName(this.#context.text)}, true) and ${this.#slice(span)})`;
      const message = `\`all\` is true for an empty \`${relation}\`; write \`${replacement}\` to require at least one`;
      this.#warn({
        code: 'all_of_none',
        message,
        span: { start: span.start, end: span.start + 3 },
        fix: { span, replacement },
      });
    }
    const negating = (quantifier === 'none') !== around.negated;
    // The caller's own id is always there.
    const isCallers = path.scope.kind === 'request' && !canSurprise(path.scope.operand) && path.steps.length === 0;
    if (negating && mayBeAbsent(path) && !isCallers) {
      const message = `a step of \`${relation}\` can be null, and then this is unknown, which denies despite \`${quantifier === 'none' ? 'none' : 'not'}\``;
      this.#warn({ code: 'negation_of_nullable', message, span: path.span });
    }
    if (quantifier === 'any' && !around.negated) this.#anyDiffers(quantified);
    this.#unusedVariable(quantified);
    const { not: _, ...inner } = around;
    this.clause(condition, { ...inner, negated: negating });
  }

  /** `any(X as m, m.user != x)`: one other element is enough. */
  #anyDiffers({ path, condition, span }: CheckedQuantified): void {
    if (condition.kind !== 'compare' || condition.synthetic || asksForText(condition)) return;
    const { complement, negative } = OPERATORS[condition.op];
    if (negative !== true || complement === undefined) return;
    const head = this.#slice({ ...span, start: path.span.start, end: condition.span.start });
    const { left, right } = condition;
    const replacement = `none(${head}${this.#slice(left.span)} ${complement} ${this.#slice(right.span)})`;
    const message = `any other element of \`${this.#slice(path.span)}\` is enough for this; did you mean \`${replacement}\`?`;
    this.#warn({ code: 'any_differs', message, span });
  }

  #unusedVariable({ path, variable, condition, span }: CheckedQuantified | CountOperand): void {
    if (condition.kind === 'const' || variablesIn(condition).includes(variable)) return;
    const name = variableName({ path }, this.#context.text) ?? variable;
    const message =
      `this condition does not name \`${name}\`, so every element of \`${this.#slice(path.span)}\` meets it alike; ` +
      `test \`${name}\`, or write \`true\` here and the condition beside it`;
    const at = condition.span.source === span.source ? condition.span : span;
    this.#warn({ code: 'variable_unused', message, span: at });
  }
}

// ---------------------------------------------------------------- questions about the tree

/**
 * The name, email and roles of a caller are never null; nor is a list on the list side of a test.
 */
function canSurprise(side: CheckedOperand): boolean {
  if (side.kind === 'request') return !isAlwaysKnown(side);
  return side.kind === 'column' && side.nullable;
}

/** `q != ""` is meant to reject an empty parameter; it also rejects a missing one. */
const isNotEqual = ({ op }: CheckedCompare): boolean => OPERATORS[op].family === 'equality' && !isMember(OPERATORS[op]);
const asksForText = (compare: CheckedCompare): boolean => isNotEqual(compare) && isEmptyText(compare.right);

const identical = ({ left, right }: CheckedCompare): boolean => identity(left) === identity(right);

const variablesIn = (checked: Checked): readonly string[] => [
  ...scopesOf(checked).flatMap((scope) => (scope.kind === 'variable' ? [scope.name] : [])),
  ...partsOf(checked).flatMap(variablesIn),
];

const relationKey = ({ path }: CheckedQuantified): string =>
  JSON.stringify([path.scope, path.steps.map(({ relation }) => relation.name), path.relation.kind, path.relation.name]);

function beside({ kind, items }: CheckedJunction, around: Surroundings): Surroundings {
  const nullTests = items.filter((item): item is CheckedIsNull => item.kind === 'is null');
  const anys = items.filter(
    (item): item is CheckedQuantified => item.kind === 'quantified' && item.quantifier === 'any',
  );
  const { not: _, ...rest } = around;
  return {
    ...rest,
    nullTested: union(
      around.nullTested,
      nullTests.map(({ operand }) => identity(operand)),
    ),
    inhabited: union(around.inhabited, anys.map(relationKey)),
    filled: union(around.filled, items.flatMap(filledBy)),
    verified:
      around.verified || (kind === 'and' && items.some((item) => item.kind === 'compare' && isVerifiedTest(item))),
  };
}

const union = (set: ReadonlySet<string>, more: readonly string[]): ReadonlySet<string> =>
  more.length === 0 ? set : new Set([...set, ...more]);

function filledBy(item: Checked): readonly string[] {
  if (item.kind !== 'compare' || !isNotEqual(item)) return [];
  return isEmptyText(item.right) ? [identity(item.left)] : [];
}

function freeName(text: string): string {
  return ['x', 'y', 'z'].find((name) => !new RegExp(`\\b${name}\\b`).test(text)) ?? 'some';
}
