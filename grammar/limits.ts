/** The limits of a policy, checked over its tokens before anything recurses. */
import type { IToken } from 'chevrotain';
import type { PolicyIssue } from './policy-error.ts';
import type { Dialect, Span } from './syntax.ts';
import { And, Close, CloseList, Comma, Not, Open, OpenList, Or, spanOf } from './tokens.ts';

export const LIMITS = { bytes: 4096, levels: 64, comparisons: 256, elements: 1000, names: 6 } as const;

const tooMuch = (code: string, message: string, span: Span): PolicyIssue => ({
  code,
  severity: 'error',
  message,
  span,
});

export function overLength(text: string, dialect: Dialect): PolicyIssue | undefined {
  // A UTF-16 unit is at most three bytes of UTF-8.
  if (text.length * 3 <= LIMITS.bytes) return undefined;
  if (text.length <= LIMITS.bytes && new TextEncoder().encode(text).length <= LIMITS.bytes) return undefined;
  const instead = dialect === 'policy' ? 'a shorter one, or several rules' : 'a shorter one';
  const message = `the ${dialect} is longer than ${LIMITS.bytes} bytes; expected ${instead}`;
  return tooMuch('policy_too_long', message, { start: 0, end: text.length });
}

/** Levels are parentheses (a quantifier's too) and the `not`s that apply at a token. */
class Levels {
  #open: number[] = [];
  #nots = 0;
  #depth = 0;

  /** The levels at the token, itself included. */
  enter(token: IToken): number {
    switch (token.tokenType) {
      case Open:
        this.#open.push(this.#nots);
        this.#nots = 0;
        return ++this.#depth;
      case Close:
        this.#endNots();
        return this.#leave();
      case Not:
        this.#nots++;
        return ++this.#depth;
      case And:
      case Or:
      case Comma:
        this.#endNots();
        return this.#depth;
      default:
        return this.#depth;
    }
  }

  /** A `)` without its `(` leaves nothing. */
  #leave(): number {
    const nots = this.#open.pop();
    if (nots === undefined) return this.#depth;
    this.#nots = nots;
    return --this.#depth;
  }

  #endNots(): void {
    this.#depth -= this.#nots;
    this.#nots = 0;
  }
}

/** Reports the first excess only: further errors would not help. */
export function overLimit(tokens: readonly IToken[]): PolicyIssue | undefined {
  const levels = new Levels();
  let comparisons = 1;
  let elements = 0;
  let inList = false;
  for (const token of tokens) {
    const type = token.tokenType;
    if (levels.enter(token) > LIMITS.levels) {
      return tooMuch(
        'too_deep',
        `more than ${LIMITS.levels} levels of parentheses, \`not\` and quantifiers`,
        spanOf(token),
      );
    }
    if (type === And || type === Or) comparisons++;
    else if (type === OpenList) inList = true;
    else if (type === CloseList) inList = false;
    else if (inList && type !== Comma) elements++;
    if (comparisons > LIMITS.comparisons) {
      return tooMuch(
        'too_many_comparisons',
        `more than ${LIMITS.comparisons} comparisons in one policy`,
        spanOf(token),
      );
    }
    if (elements > LIMITS.elements) {
      return tooMuch('too_many_elements', `more than ${LIMITS.elements} list elements in one policy`, spanOf(token));
    }
  }
  return undefined;
}

/** Counts the names of a walked path: the names after `@record`, `@next` or a variable. */
export function overNames(names: number, span: Span): PolicyIssue | undefined {
  if (names <= LIMITS.names) return undefined;
  return tooMuch('path_too_long', `a path of ${names} names; expected at most ${LIMITS.names}`, span);
}
