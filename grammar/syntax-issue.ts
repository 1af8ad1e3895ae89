/** Describes a syntax error: what was found, what was expected, and a fix if one is obvious. */
import { EOF, type IRecognitionException, type IToken, type TokenType } from 'chevrotain';
import { ancestorsHead, callHead, quantifierOfPath, unknownFunction } from './call-issue.ts';
import { inDialect } from './filter-roots.ts';
import type { PolicyIssue } from './policy-error.ts';
import { nearest } from './suggest.ts';
import * as t from './tokens.ts';
import {
  describe,
  foundSpan,
  type Given,
  inList,
  lastOpen,
  opens,
  tokenAt,
  type UnexpectedToken,
  unclosed,
  withFix,
} from './unexpected-token.ts';

const LITERALS = [t.Text, t.Numeral, t.Truth, t.Null];
const ENDS_OPERAND = new Set<TokenType>([...LITERALS, t.AtPath, t.Word, t.ParamName, t.CloseList, t.Now, t.Duration]);
const STARTS_OPERAND = new Set<TokenType>([
  ...LITERALS,
  t.Count,
  t.Ancestors,
  t.AtPath,
  t.Word,
  t.ParamName,
  t.OpenList,
  t.Now,
]);

/** Names of the operators in other languages. */
const FOREIGN_OPERATORS: ReadonlyMap<string, string> = new Map([
  ['eq', '='],
  ['equals', '='],
  ['is', '='],
  ['ne', '!='],
  ['neq', '!='],
  ['lt', '<'],
  ['lte', '<='],
  ['le', '<='],
  ['gt', '>'],
  ['gte', '>='],
  ['ge', '>='],
  ['has', 'contains'],
  ['includes', 'contains'],
  ['include', 'contains'],
  ['contain', 'contains'],
  ['startswith', 'starts with'],
  ['starts_with', 'starts with'],
  ['starts', 'starts with'],
  ['endswith', 'ends with'],
  ['ends_with', 'ends with'],
  ['ends', 'ends with'],
  ['isnull', 'is null'],
  ['is_null', 'is null'],
  ['notnull', 'is not null'],
  ['exists', 'is not null'],
  ['nin', 'not in'],
  ['not_in', 'not in'],
]); // prettier-ignore
const PATTERN_OPERATORS = new Set(['like', 'ilike', 'match', 'regex', 'regexp', 'rlike', 'similar']);

export function syntaxIssue(
  error: IRecognitionException,
  tokens: readonly IToken[],
  { text, dialect }: Pick<UnexpectedToken, 'text' | 'dialect'>,
): PolicyIssue {
  const at = error.token.tokenType === EOF ? tokens.length : tokens.indexOf(error.token);
  if (tokens.length === 0 && dialect === 'filter') return { severity: 'error', ...emptyFilter(text) };
  return { severity: 'error', ...diagnose({ tokens, text, at, dialect }) };
}

function diagnose(found: UnexpectedToken): Given {
  const { tokens, at } = found;
  if (tokens.length === 0) return emptyPolicy(found);
  const before = tokens[at - 1];
  if (before === undefined) return missingOperand(found);
  if (tokens[at]?.tokenType === t.Close && opens(found) === 0) return tooManyCloses(found);
  const inCall = callHead(found) ?? ancestorsHead(found);
  if (inCall !== undefined) return inCall;
  const inHead = quantifierHead(found);
  if (inHead !== undefined) return inHead;
  if (inList(found)) return badList(found);
  if (before.tokenType === t.Now || before.tokenType === t.Plus || before.tokenType === t.Minus)
    return badDuration(found);
  if (ENDS_OPERAND.has(before.tokenType)) return afterOperand(found);
  if (before.tokenType === t.Close || before.tokenType === t.IsNull || before.tokenType === t.IsNotNull)
    return afterCondition(found);
  return missingOperand(found);
}

// ---------------------------------------------------------------- the errors

function emptyFilter(text: string): Given {
  const message = 'an empty filter; expected a condition, such as `status = "open"`';
  return { code: 'filter_empty', message, span: { start: 0, end: text.length } };
}

function emptyPolicy(found: UnexpectedToken): Given {
  const message =
    'an empty policy; expected a condition, such as `@record.owner = @request.auth.id`, or `false`, which denies all';
  return { code: 'policy_empty', message, span: { start: 0, end: found.text.length } };
}

function tooManyCloses(found: UnexpectedToken): Given {
  const span = foundSpan(found);
  return withFix(
    { code: 'parenthesis_unopened', message: '`)` without a `(` before it', span },
    { span, replacement: '' },
  );
}

/** `any(<path> as <name>, …)`: the parts before the condition. */
function quantifierHead(found: UnexpectedToken): Given | undefined {
  const { tokens, at } = found;
  const span = foundSpan(found);
  const example = inDialect('any(@record.members as m, m.user = @request.auth.id)', found.dialect);
  const wanted = (what: string): Given => ({
    code: 'quantifier_malformed',
    message: `found ${describe(tokens[at])}, expected ${what}; a quantifier is \`${example}\``,
    span,
  });
  const back = (n: number): TokenType | undefined => tokens[at - n]?.tokenType;
  if (back(1) === t.Quantifier) return wanted('`(`');
  if (back(2) === t.Quantifier) return wanted('the path of a to-many relation');
  if (back(3) === t.Quantifier) return wanted('`as` and a name');
  if (back(4) === t.Quantifier && back(1) === t.As) return reserved(found) ?? wanted('a name');
  if (back(5) === t.Quantifier && back(2) === t.As) return wanted('`,` and a condition');
  return undefined;
}

function reserved({ tokens, at }: UnexpectedToken): Given | undefined {
  const token = tokens[at];
  if (token === undefined || !t.RESERVED.has(token.image.toLowerCase())) return undefined;
  const message = `\`${token.image}\` is a word of the language; expected another name`;
  return { code: 'word_reserved', message, span: t.spanOf(token) };
}

function badList(found: UnexpectedToken): Given {
  const { tokens, at } = found;
  const token = tokens[at];
  const span = foundSpan(found);
  const before = tokenAt(tokens, at - 1);
  if (token === undefined) {
    const fix = { span, replacement: ']' };
    return withFix({ code: 'list_unclosed', message: 'unclosed list; expected `]`', span }, fix);
  }
  if (token.tokenType === t.CloseList && before.tokenType === t.Comma) {
    const fix = { span: { start: before.startOffset, end: token.startOffset }, replacement: '' };
    return withFix({ code: 'list_malformed', message: 'a comma with nothing after it', span: t.spanOf(before) }, fix);
  }
  if (token.tokenType === t.Word && !token.image.includes('.')) {
    const fix = { span, replacement: JSON.stringify(token.image) };
    return withFix(
      { code: 'text_unquoted', message: `\`${token.image}\` without quotes; expected ${fix.replacement}`, span },
      fix,
    );
  }
  const isPath = token.tokenType === t.AtPath || token.tokenType === t.Word || token.tokenType === t.Now;
  if (isPath) return { code: 'list_malformed', message: `a list holds literals only, found ${describe(token)}`, span };
  const message = `found ${describe(token)} in a list, expected a literal, \`,\` or \`]\``;
  return { code: 'list_malformed', message, span };
}

function badDuration(found: UnexpectedToken): Given {
  const { tokens, at } = found;
  const before = tokenAt(tokens, at - 1);
  const [token, next] = [tokens[at], tokens[at + 1]];
  const code = 'duration_malformed';
  if (before.tokenType === t.Now && token?.tokenType !== t.Numeral) return afterOperand(found);
  const message = `found ${describe(token)}, expected a duration with its unit, such as \`24h\` or \`7d\``;
  if (token?.tokenType !== t.Numeral || next?.tokenType !== t.Word || !/^-?[0-9]+$/.test(token.image)) {
    return { code, message, span: foundSpan(found) };
  }
  const span = { start: token.startOffset, end: t.spanOf(next).end };
  return withFix({ code, message, span }, { span, replacement: `${token.image}${next.image}` });
}

function afterCondition(found: UnexpectedToken): Given {
  const { tokens, at } = found;
  const token = tokens[at];
  const before = tokenAt(tokens, at - 1);
  if (token === undefined) return unclosed(found, lastOpen(found) ?? before);
  const span = t.spanOf(token);
  if (token.tokenType === t.Comparison && before.tokenType === t.Close) {
    const group = found.tokens.findIndex(({ startOffset }) => startOffset === groupBefore(found).start);
    if (found.tokens[group - 1]?.tokenType === t.CallName) return unknownFunction(found, group - 1);
    return { code: 'operand_in_parentheses', message: NO_VALUES, span: groupBefore(found) };
  }
  const message = `found ${describe(token)}, expected \`and\`, \`or\` or ${opens(found) > 0 ? '`)`' : 'the end'}`;
  return withFix({ code: 'connective_expected', message, span }, undefined, near(token));
}

function groupBefore(found: UnexpectedToken) {
  const { tokens, at } = found;
  const close = tokenAt(tokens, at - 1);
  const open = lastOpen({ ...found, at: at - 1 }) ?? close;
  return { start: open.startOffset, end: t.spanOf(close).end };
}

function afterOperand(found: UnexpectedToken): Given {
  const { tokens, at } = found;
  const token = tokens[at];
  if (token === undefined) {
    const open = lastOpen(found);
    return open === undefined ? missingOperand(found) : unclosed(found, open);
  }
  if (token.tokenType === t.Comparison || token.tokenType === t.IsNull || token.tokenType === t.IsNotNull)
    return chained(found);
  if (token.tokenType === t.Not) return notInside(found);
  if (token.tokenType === t.Word || token.tokenType === t.CallName) return wordAsOperator(found);
  const before = tokenAt(tokens, at - 1);
  if (token.tokenType === t.Open && (before.tokenType === t.Word || before.tokenType === t.AtPath)) {
    const ofPath = quantifierOfPath(found, at - 1);
    if (ofPath !== undefined) return ofPath;
    if (before.tokenType === t.Word) return unknownFunction(found, at - 1);
  }
  if (
    token.tokenType === t.Plus ||
    token.tokenType === t.Minus ||
    (token.tokenType === t.Numeral && token.image.startsWith('-'))
  ) {
    const message = `${describe(token)}; the language has no arithmetic except a duration after \`@now\` or \`@today\``;
    return { code: 'no_arithmetic', message, span: t.spanOf(token) };
  }
  const doubled = doubledQuote(before, token);
  if (doubled !== undefined) return doubled;
  const what = isCompared(found) ? '`and`, `or` or the end' : 'an operator';
  const code = isCompared(found) ? 'connective_expected' : 'operator_expected';
  return { code, message: `found ${describe(token)}, expected ${what}`, span: t.spanOf(token) };
}

/** `'it''s'`: two strings without anything between them. */
function doubledQuote(before: IToken, token: IToken): Given | undefined {
  const areStrings = before.tokenType === t.Text && token.tokenType === t.Text;
  const quote = token.image.charAt(0);
  if (!areStrings || before.image[0] !== quote || t.spanOf(before).end !== token.startOffset) return undefined;
  const span = { start: before.startOffset, end: t.spanOf(token).end };
  const replacement = `${before.image.slice(0, -1)}\\${token.image}`;
  const message = `a quote within a string is written \`\\${quote}\`, not twice`;
  return withFix({ code: 'quote_doubled', message, span }, { span, replacement });
}

/** True if the operand before the place is the right side of a comparison. */
function isCompared({ tokens, at }: UnexpectedToken): boolean {
  let start = at - 1;
  if (tokens[start]?.tokenType === t.CloseList) while (start > 0 && tokens[start]?.tokenType !== t.OpenList) start--;
  if (tokens[start]?.tokenType === t.Duration) start -= 2;
  return tokens[start - 1]?.tokenType === t.Comparison;
}

function chained(found: UnexpectedToken): Given {
  const { tokens, at } = found;
  const span = t.spanOf(tokenAt(tokens, at));
  const before = tokenAt(tokens, at - 1);
  const message = 'comparisons do not chain; expected `and` and the operand again';
  const again = before.tokenType === t.AtPath || before.tokenType === t.Word;
  const fix = again ? { span: { start: span.start, end: span.start }, replacement: `and ${before.image} ` } : undefined;
  return withFix({ code: 'comparison_chained', message, span }, fix);
}

function notInside(found: UnexpectedToken): Given {
  const { tokens, text, at } = found;
  const [before, not] = [tokenAt(tokens, at - 1), tokenAt(tokens, at)];
  const [op, right] = [tokens[at + 1], tokens[at + 2]];
  const message = '`not` goes before a comparison, not inside it; `not in` and `is not null` are the exceptions';
  const given = { code: 'not_within', message, span: t.spanOf(not) };
  const single = op?.tokenType === t.Comparison && right !== undefined && STARTS_OPERAND.has(right.tokenType);
  if (!single || before.tokenType === t.CloseList || right.tokenType === t.OpenList || right.tokenType === t.Now)
    return given;
  const span = { start: before.startOffset, end: t.spanOf(right).end };
  const rest = text.slice(op.startOffset, span.end);
  return withFix(given, { span, replacement: `not (${before.image} ${rest})` });
}

function wordAsOperator(found: UnexpectedToken): Given {
  const { tokens, at } = found;
  const token = tokenAt(tokens, at);
  const word = token.image.toLowerCase();
  const span = t.spanOf(token);
  if (PATTERN_OPERATORS.has(word)) return patternOperator(found);
  if (word === 'between') {
    const message = '`between` is written `x >= a and x <= b` here';
    return { code: 'operator_foreign', message, span };
  }
  const next = tokens[at + 1];
  if (word === 'is' && next?.tokenType === t.Not) {
    const both = { start: span.start, end: t.spanOf(next).end };
    const given = { code: 'operator_foreign', message: '`is not` takes `null` only; expected `!=`', span: both };
    return withFix(given, { span: both, replacement: '!=' });
  }
  const right = isCompared(found) ? nearest(word, ['and', 'or']) : (FOREIGN_OPERATORS.get(word) ?? near(token));
  const expected = isCompared(found) ? '`and`, `or` or the end' : 'an operator';
  if (right === undefined) {
    const message = `\`${token.image.slice(0, 40)}\` is not an operator; expected ${expected}`;
    return { code: 'operator_unknown', message, span };
  }
  const message = `\`${token.image}\` is not an operator; did you mean \`${right}\`?`;
  return withFix({ code: 'operator_unknown', message, span }, { span, replacement: right });
}

/** The operator for the wildcards before and after the infix of a pattern. */
const LIKE_OPERATORS: Readonly<Record<string, string>> = { '%_%': 'contains', '%_': 'ends with', '_%': 'starts with' };

const near = (token: IToken): string | undefined =>
  token.tokenType === t.Word ? nearest(token.image, t.OPERATOR_WORDS) : undefined;

/** `like "draft%"` is `starts with "draft"`, and so on, if the pattern has no other wildcard. */
function patternOperator({ tokens, at }: UnexpectedToken): Given {
  const token = tokenAt(tokens, at);
  const right = tokens[at + 1];
  const span = t.spanOf(token);
  const message = `patterns as in \`${token.image}\` are not supported; expected \`contains\`, \`starts with\` or \`ends with\``;
  const given = { code: 'operator_pattern', message, span };
  if (right?.tokenType !== t.Text || !/^like$/i.test(token.image)) return withFix(given, undefined, 'contains');
  const parts = /^(["'])(%?)([^%_\\]+)(%?)\1$/.exec(right.image);
  if (parts === null) return withFix(given, undefined, 'contains');
  const [, quote, before, infix, after] = parts;
  const op = LIKE_OPERATORS[`${before}_${after}`] ?? '=';
  const whole = { start: span.start, end: t.spanOf(right).end };
  return withFix(given, { span: whole, replacement: `${op} ${quote}${infix}${quote}` }, op);
}

const isListed = (token: IToken | undefined): boolean =>
  token !== undefined && [...LITERALS, t.Comma].includes(token.tokenType);

/** `status in ("draft", "open")` */
function listInParentheses({ tokens, text, at }: UnexpectedToken): Given | undefined {
  const op = t.comparisonOf(tokenAt(tokens, at - 1).image);
  if (op !== 'in' && op !== 'not in') return undefined;
  let close = at + 1;
  while (isListed(tokens[close])) close++;
  const last = tokens[close];
  if (last?.tokenType !== t.Close) return undefined;
  const span = { start: tokenAt(tokens, at).startOffset, end: t.spanOf(last).end };
  const replacement = `[${text.slice(span.start + 1, span.end - 1)}]`;
  const message = `a list stands between \`[\` and \`]\`; ${NO_VALUES}`;
  return withFix({ code: 'operand_in_parentheses', message, span }, { span, replacement });
}

const NO_VALUES = 'parentheses hold conditions, not values';
const NO_SUBQUERIES =
  'a policy has no subqueries; it follows relations, as in `any(@record.members as m, m.user = @request.auth.id)`';

function missingOperand(found: UnexpectedToken): Given {
  const { tokens, at } = found;
  const before = tokens[at - 1];
  const token = tokens[at];
  const span = token === undefined && before !== undefined ? t.spanOf(before) : foundSpan(found);
  const after = before === undefined ? '' : ` after ${describe(before)}`;
  const what = before?.tokenType === t.Comparison ? 'a value' : 'a condition';
  if (token?.tokenType === t.CallName) return unknownFunction(found, at);
  if (token?.tokenType === t.Duration) {
    return {
      code: 'duration_misplaced',
      message: `a duration may only follow \`+\` or \`-\` after \`@now\` or \`@today\``,
      span,
    };
  }
  if (token?.tokenType === t.Open && before?.tokenType === t.Comparison) {
    const inside = tokens[at + 1];
    const isName = inside?.tokenType === t.Word || inside?.tokenType === t.CallName;
    if (isName && tokens[at + 2]?.tokenType === t.Open) return unknownFunction(found, at + 1);
    const message = inside?.image.toLowerCase() === 'select' ? NO_SUBQUERIES : NO_VALUES;
    return listInParentheses(found) ?? { code: 'operand_in_parentheses', message, span };
  }
  return { code: 'operand_expected', message: `found ${describe(token)}${after}, expected ${what}`, span };
}
