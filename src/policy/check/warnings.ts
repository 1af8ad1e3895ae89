/**
 * Warns of policies that compile but are probably not intended. Each warning states the effect and,
 * if possible, offers a fix.
 */
import type { PolicyIssue } from '../../../grammar/policy-error.ts';
import { MOST_ISSUES } from '../../../grammar/read-tokens.ts';
import type { Span } from '../../../grammar/syntax.ts';
import { equalityOf, isMember, OPERATORS } from '../operators.ts';
import type {
  CheckContext,
  Checked,
  CheckedCompare,
  CheckedOperand,
  CheckedQuantified,
  LiteralOperand,
} from '../types.ts';
import { isList } from '../visit.ts';
import { excludingBounds } from './bounds.ts';
import { unknownEnumValues } from './enum-values.ts';
import { boundedByField } from './field-bounds.ts';
import { CAN_BE_FALSE, CAN_BE_TRUE, CAN_BE_UNKNOWN, canBe, identity, outcomes } from './outcomes.ts';
import { mayBeAbsent } from './resolve.ts';

type CheckedIsNull = Extract<Checked, { kind: 'is null' }>;
type Warn = (issue: Omit<PolicyIssue, 'severity'>) => void;

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
  /** The `not` directly around the clause. */
  readonly not?: Span;
}
const ALONE: Surroundings = { negated: false, nullTested: new Set(), inhabited: new Set(), filled: new Set() };

/** The bounds and the enum of a field constrain new writes only. */
const byOldRecords = (rules: string): string => `only a record that was stored under other ${rules} can make this`;

export function warnings(checked: Checked, context: CheckContext): readonly PolicyIssue[] {
  // `true` and `false` as a whole policy are written on purpose.
  if (checked.kind === 'const') return [];
  const issues: PolicyIssue[] = [];
  const review = new Review(context.text, (issue) => {
    // The body of a named condition is reviewed by itself.
    if (issue.span.source === undefined && issues.length < MOST_ISSUES) issues.push({ severity: 'warning', ...issue });
  });
  review.clause(checked, ALONE);
  const said = issues.some(
    ({ code, span }) => code === 'enum_unknown' || (code === 'never_true' && span === checked.span),
  );
  if (!said && checked.span.source === undefined && !canBe(outcomes(checked), CAN_BE_TRUE)) {
    const isNever = !canBe(outcomes(checked, { isBounded: false }), CAN_BE_TRUE);
    const effect = isNever
      ? 'this is never true for any record and request, so the rule allows nothing'
      : `${byOldRecords('bounds or enums')} true, so the rule allows nothing else`;
    const message = `${effect}; write \`false\` to deny on purpose`;
    issues.push({ code: 'never_allows', severity: 'warning', message, span: checked.span });
  }
  return issues.sort((a, b) => a.span.start - b.span.start);
}

class Review {
  readonly #text: string;
  readonly #warn: Warn;

  constructor(text: string, warn: Warn) {
    this.#text = text;
    this.#warn = warn;
  }

  clause(checked: Checked, around: Surroundings): void {
    switch (checked.kind) {
      case 'and':
      case 'or': {
        const inner = beside(checked.items, around);
        for (const item of checked.items) this.#item(item, inner);
        if (checked.kind === 'and') this.#contradiction(checked.items);
        else this.#tautology(checked.items);
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
        this.#isNull(checked);
        break;
      case 'const':
        break;
    }
  }

  #item(item: Checked, around: Surroundings): void {
    if (item.kind === 'const') this.settled(item);
    this.clause(item, around);
  }

  #slice({ start, end, source = this.#text }: Span): string {
    return source.slice(start, end);
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
    const unknown = unknownEnumValues(compare, this.#text);
    for (const issue of unknown) this.#warn(issue);
    if (unknown.length === 0 && this.#isBeyondField(compare)) return;
    if (unknown.length === 0 && !compare.synthetic && this.#dependsOnNothing(compare)) return;
    this.#negation(compare, around);
    this.#needle(compare, around);
    this.#dateAsText(compare);
    for (const side of [compare.left, compare.right])
      if (side.kind === 'count' && side.condition.kind !== 'const')
        this.clause(side.condition, { ...ALONE, negated: false });
  }

  /** `score > 100`, where the field's `max` is 100. */
  #isBeyondField(compare: CheckedCompare): boolean {
    const bounded = boundedByField(compare);
    if (bounded === undefined || (bounded.canHold && bounded.canFail)) return false;
    const { canHold, fact } = bounded;
    if (canHold && canBe(outcomes(compare), CAN_BE_UNKNOWN)) return false;
    const [code, word] = canHold ? ['always_true', 'false'] : ['never_true', 'true'];
    this.#warn({ code, message: `${fact}, so ${byOldRecords('bounds')} ${word}`, span: compare.span });
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
      this.#warn({
        code: 'same_operands',
        message: 'both sides are the same, so this means `is not null`',
        span: compare.span,
      });
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

  #isNull(test: CheckedIsNull): void {
    const { operand, negated, span } = test;
    if (operand.kind === 'request' && operand.source === 'auth' && ALWAYS_KNOWN.has(operand.name)) {
      if (negated) return;
      const message = `only a caller who is not logged in has no \`${operand.name}\`, and rules are not evaluated for such callers`;
      this.#warn({ code: 'anonymous_only', message, span });
    } else this.settled(test);
  }

  // -------------------------------------------------------------- quantifiers and chains

  #quantified(quantified: CheckedQuantified, around: Surroundings): void {
    const { quantifier, path, condition, span } = quantified;
    const relation = this.#slice(path.span);
    const canBeEmpty = path.relation.kind !== 'ancestors';
    if (quantifier === 'all' && canBeEmpty && !around.negated && !around.inhabited.has(relationKey(quantified))) {
      const replacement = `(any(${relation} as ${freeName(this.#text)}, true) and ${this.#slice(span)})`;
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
    const { not: _, ...inner } = around;
    this.clause(condition, { ...inner, negated: negating });
  }

  /** `a = 1 and a = 2`, `a > 5 and a < 3` */
  #contradiction(items: readonly Checked[]): void {
    const pair = clash(items, true);
    const bounds = pair === undefined ? excludingBounds(items) : undefined;
    if (bounds !== undefined) {
      const [lower, upper] = bounds.map(({ span }) => this.#slice(span));
      const message = `no value meets both \`${lower}\` and \`${upper}\`, so this is never true`;
      this.#warn({ code: 'never_true', message, span: bounds[1].span });
    }
    if (pair)
      this.#warn({
        code: 'never_true',
        message: 'one value cannot equal both, so this is never true',
        span: pair.span,
      });
  }

  /** `a != 1 or a != 2` */
  #tautology(items: readonly Checked[]): void {
    const pair = clash(items, false);
    if (!pair) return;
    const message =
      'every value differs from one of the two, so this is true whenever it is present; did you mean `and`?';
    this.#warn({ code: 'always_true', message, span: pair.span });
  }
}

// ---------------------------------------------------------------- questions about the tree

const ALWAYS_KNOWN = new Set(['id', 'email', 'email_verified', 'roles']);
/**
 * The name, email and roles of a caller are never null; nor is a list on the list side of a test.
 */
function canSurprise(side: CheckedOperand): boolean {
  if (side.kind === 'request') return side.source === 'auth' ? !ALWAYS_KNOWN.has(side.name) : true;
  return side.kind === 'column' && side.nullable;
}

/** `q != ""` is meant to reject an empty parameter; it also rejects a missing one. */
const isNotEqual = ({ op }: CheckedCompare): boolean => OPERATORS[op].family === 'equality' && !isMember(OPERATORS[op]);
const asksForText = (compare: CheckedCompare): boolean => isNotEqual(compare) && isEmptyText(compare);
const isEmptyText = ({ right }: CheckedCompare): boolean => right.kind === 'literal' && right.value === '';

const identical = ({ left, right }: CheckedCompare): boolean => identity(left) === identity(right);

const relationKey = ({ path }: CheckedQuantified): string =>
  JSON.stringify([path.scope, path.steps.map(({ relation }) => relation.name), path.relation.kind, path.relation.name]);

function beside(items: readonly Checked[], around: Surroundings): Surroundings {
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
  };
}

const union = (set: ReadonlySet<string>, more: readonly string[]): ReadonlySet<string> =>
  more.length === 0 ? set : new Set([...set, ...more]);

function filledBy(item: Checked): readonly string[] {
  if (item.kind !== 'compare' || !isNotEqual(item)) return [];
  return isEmptyText(item) ? [identity(item.left)] : [];
}

/** Two comparisons of one operand with different literals. */
function clash(items: readonly Checked[], member: boolean): CheckedCompare | undefined {
  const seen = new Map<string, LiteralOperand['value']>();
  const candidates = items.filter(
    (item): item is CheckedCompare => item.kind === 'compare' && item.op === equalityOf(member),
  );
  if (candidates.length < 2) return undefined;
  for (const item of candidates) {
    if (item.right.kind !== 'literal' || item.right.exact !== undefined) continue;
    const key = identity(item.left);
    const before = seen.get(key);
    if (before !== undefined && before !== item.right.value) return item;
    seen.set(key, item.right.value);
  }
  return undefined;
}

function freeName(text: string): string {
  return ['x', 'y', 'z'].find((name) => !new RegExp(`\\b${name}\\b`).test(text)) ?? 'some';
}
