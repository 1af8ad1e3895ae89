/** The first token that does not fit: where it is, and how an issue describes it. */
import type { IToken } from 'chevrotain';
import type { Fix, PolicyIssue } from './policy-error.ts';
import type { Dialect } from './syntax.ts';
import * as t from './tokens.ts';

export interface UnexpectedToken {
  readonly tokens: readonly IToken[];
  readonly text: string;
  readonly dialect: Dialect;
  /** The place of the first token that does not fit; `tokens.length` at the end. */
  readonly at: number;
}

export const describe = (token: IToken | undefined): string =>
  token === undefined ? 'the end' : `\`${token.image.slice(0, 40)}\``;

export type Given = Omit<PolicyIssue, 'severity'>;
export const withFix = (given: Given, fix: Fix | undefined, suggestion = fix?.replacement): Given => ({
  ...given,
  ...(fix && { fix }),
  ...(suggestion !== undefined && { suggestion }),
});

const endOfText = ({ text }: UnexpectedToken) => ({ start: text.length, end: text.length });

export function foundSpan(found: UnexpectedToken) {
  const token = found.tokens[found.at];
  return token === undefined ? endOfText(found) : t.spanOf(token);
}

/** How many parentheses are open before the place. */
export function opens({ tokens, at }: UnexpectedToken): number {
  let open = 0;
  for (const { tokenType } of tokens.slice(0, at)) {
    if (tokenType === t.Open) open++;
    else if (tokenType === t.Close) open--;
  }
  return open;
}

export function lastOpen({ tokens, at }: UnexpectedToken): IToken | undefined {
  let closed = 0;
  for (const token of tokens.slice(0, at).reverse()) {
    if (token.tokenType === t.Close) closed++;
    else if (token.tokenType === t.Open && closed-- === 0) return token;
  }
  return undefined;
}

export function inList({ tokens, at }: UnexpectedToken): boolean {
  const types = tokens.slice(0, at).map((token) => token.tokenType);
  return types.lastIndexOf(t.OpenList) > types.lastIndexOf(t.CloseList);
}

/** INVARIANT: the caller has seen that there is one. */
export function tokenAt(tokens: readonly IToken[], i: number): IToken {
  const token = tokens[i];
  if (token === undefined) throw new RangeError(`token ${i} is missing among ${tokens.length}`);
  return token;
}

export function unclosed(found: UnexpectedToken, open: IToken): Given {
  const fix = { span: endOfText(found), replacement: ')' };
  return withFix({ code: 'parenthesis_unclosed', message: '`(` without a `)`', span: t.spanOf(open) }, fix);
}
