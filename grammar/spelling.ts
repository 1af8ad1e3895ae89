/**
 * Operators as other languages spell them: `AND`, `==`, `<>`, a single `&`. Each has its own
 * error and fix; parsing continues.
 */
import type { IToken } from 'chevrotain';
import { reportIssue, respell, type TokenReport } from './read-tokens.ts';
import type { Span } from './syntax.ts';
import {
  And,
  As,
  By,
  Comparison,
  comparisonOf,
  IsNotNull,
  IsNull,
  LineComment,
  Not,
  Null,
  OpenComment,
  Or,
  Quantifier,
  spanOf,
  Truth,
} from './tokens.ts';

const RIGHT_WORDS: ReadonlySet<string> = new Set('and or not && || ! any all none as by true false null'.split(' '));
const FIXED: ReadonlySet<string> = new Set(['is null', 'is not null']);
const WORD_TOKENS = new Set([And, Or, Not, Quantifier, As, By, Truth, Null, IsNull, IsNotNull]);

const spaced = (image: string): string => image.replaceAll(/(?:[ \t\r\n]|\/\*(?:[^*]|\*(?!\/))*\*\/)+/g, ' ');

/** Our spelling of the token, if it differs. */
function rightSpelling(token: IToken): string | undefined {
  const { image, tokenType } = token;
  if (tokenType === Comparison) {
    const op = comparisonOf(image);
    return image === op || spaced(image) === op ? undefined : op;
  }
  if (!WORD_TOKENS.has(tokenType) || RIGHT_WORDS.has(image)) return undefined;
  if (image === '&') return 'and';
  if (image === '|') return 'or';
  const words = spaced(image);
  return FIXED.has(words) ? undefined : words.toLowerCase();
}

export function checkSpelling(tokens: readonly IToken[], report: TokenReport): void {
  for (const token of tokens) {
    const right = rightSpelling(token);
    if (right === undefined) continue;
    if (/[a-z]/i.test(token.image)) {
      respell(report, token, { right, code: 'word_case', message: `words are lower case here; expected \`${right}\`` });
    } else {
      const message = `\`${token.image}\` is written \`${right}\` here`;
      respell(report, token, { right, code: 'operator_foreign', message });
    }
  }
}

/** Reports the tokens that the lexer set aside: unterminated comments and strings, `//`. */
export function checkWrong(tokens: readonly IToken[], report: TokenReport): void {
  for (const token of tokens) {
    const span = spanOf(token);
    if (token.tokenType === LineComment) {
      const inner = token.image.slice(2).replaceAll('*/', '* /').trim();
      const message = 'a comment does not begin with `//`, because YAML may fold lines into one; expected `/* … */`';
      reportIssue(report, { code: 'line_comment', message, span, fix: { span, replacement: `/* ${inner} */` } });
    } else if (token.tokenType === OpenComment) {
      reportIssue(report, { code: 'comment_unclosed', message: 'a comment without an end; expected `*/`', span });
    } else {
      const quote = token.image.charAt(0);
      const message = `a string without an end; expected another \`${quote}\``;
      reportIssue(report, { code: 'text_unclosed', message, span });
    }
  }
}

const ARITHMETIC = '*/%^';

export function checkStray(places: readonly Span[], text: string, report: TokenReport): void {
  for (const span of places) {
    const found = text.slice(span.start, Math.min(span.end, span.start + 20));
    if (found === '~') {
      const message = '`~` is not an operator; expected `contains`, which looks for a part of a string';
      reportIssue(report, { code: 'no_arithmetic', message, span, fix: { span, replacement: 'contains' } });
    } else if (ARITHMETIC.includes(found)) {
      const message = `\`${found}\` is not an operator: the language has no arithmetic`;
      reportIssue(report, { code: 'no_arithmetic', message, span });
    } else if (found === ';') {
      const message = 'the text is a single expression, without `;`';
      reportIssue(report, { code: 'character_unknown', message, span, fix: { span, replacement: '' } });
    } else {
      const message = `\`${found}\` is not part of the language; expected a path, a literal, an operator or a parenthesis`;
      reportIssue(report, { code: 'character_unknown', message, span });
    }
  }
}
