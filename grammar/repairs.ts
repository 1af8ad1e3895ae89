/**
 * Recovers from a syntax error. The clause that cannot be parsed, from `and`, `or` or a parenthesis
 * to the next, is replaced by a placeholder that is not checked, so that the rest of the policy is
 * still parsed and checked.
 */
import type { IToken, TokenType } from 'chevrotain';
import { And, As, Close, Comma, Open, Or, Quantifier, Truth, Word } from './tokens.ts';

const STAND_IN = Symbol('clause that cannot be read');

export const isStandIn = (token: IToken): boolean => token.payload === STAND_IN;

/** Its image is the text that it replaces, so that spans around it stay within the text. */
function tokenMade(tokenType: TokenType, image: string, startOffset: number): IToken {
  return { tokenType, image, startOffset, tokenTypeIdx: tokenType.tokenTypeIdx!, payload: STAND_IN } as IToken;
}

/** Possible repairs of `tokens`, whose token at `at` does not fit; the likeliest first. */
export function repairs(tokens: readonly IToken[], at: number, text: string): readonly IToken[][] {
  const closes = Array.from({ length: openBefore(tokens, at) }, () => tokenMade(Close, '', text.length));
  if (at === tokens.length)
    return [
      [...tokens, ...closes],
      [...withoutClause(tokens, at, text), ...closes],
    ];
  if (tokens[at]?.tokenType === Close && closes.length === 0) return [tokens.toSpliced(at, 1)];
  return [withoutClause(tokens, at, text)];
}

function openBefore(tokens: readonly IToken[], at: number): number {
  let open = 0;
  for (const { tokenType } of tokens.slice(0, at)) {
    if (tokenType === Open) open++;
    else if (tokenType === Close && open > 0) open--;
  }
  return open;
}

function withoutClause(tokens: readonly IToken[], at: number, text: string): IToken[] {
  let from = startOfClause(tokens, at);
  let to = endOfClause(tokens, at);
  // In other languages' syntax, this `and` does not join conditions.
  if (/^between$/i.test(tokens[at]?.image ?? '') && tokens[to]?.tokenType === And) to = endOfClause(tokens, to + 1);
  // The whole head of a quantifier is the clause.
  if (tokens[from - 1]?.tokenType === Open && tokens[from - 2]?.tokenType === Quantifier) {
    from -= 2;
    while (to < tokens.length && tokens[to]?.tokenType !== Close) to = endOfClause(tokens, to + 1);
    to = Math.min(to + 1, tokens.length);
  }
  const start = tokens[from]?.startOffset ?? text.length;
  const last = tokens[to - 1];
  const end = last !== undefined && to > from ? last.startOffset + last.image.length : start;
  return tokens.toSpliced(from, to - from, tokenMade(Truth, text.slice(start, end), start));
}

const isJoint = ({ tokenType }: IToken): boolean => tokenType === And || tokenType === Or;

function startOfClause(tokens: readonly IToken[], at: number): number {
  let closed = 0;
  for (let i = at; i > 0; i--) {
    const before = tokens[i - 1];
    if (before === undefined) continue;
    if (before.tokenType === Close) closed++;
    else if (before.tokenType === Open && closed-- === 0) return i;
    else if (closed === 0 && (isJoint(before) || endsHead(tokens, i - 1))) return i;
  }
  return 0;
}

/** The comma of `any(path as name, `. */
const endsHead = (tokens: readonly IToken[], i: number): boolean =>
  tokens[i]?.tokenType === Comma && tokens[i - 1]?.tokenType === Word && tokens[i - 2]?.tokenType === As;

function endOfClause(tokens: readonly IToken[], at: number): number {
  let open = 0;
  for (const [i, token] of tokens.entries()) {
    if (i < at) continue;
    if (token.tokenType === Open) open++;
    else if (token.tokenType === Close && open-- === 0) return i;
    else if (open === 0 && isJoint(token)) return i;
  }
  return tokens.length;
}
