/** Comments in canonical text. The tree does not know them: they stay between the tokens between which they were written. */
import type { IToken } from 'chevrotain';
import { lexer, Text } from './tokens.ts';

/**
 * `canonical` with the comments of `written`, the text that it says anew. Undefined where a comment has several lines or stands within an operator of several
 * words, or where parentheses came or went, so that nobody knows what the comment is about.
 */
export function withComments(written: string, canonical: string): string | undefined {
  const { tokens, groups } = lexer.tokenize(written);
  const comments = groups.comments ?? [];
  const places = lexer.tokenize(canonical).tokens;
  if (tokens.some(holdsComment) || comments.some(({ image }) => /[\r\n]/.test(image))) return undefined;
  if (comments.length > 0 && !areAlike(tokens, places)) return undefined;
  return comments.reduceRight((text, { image, startOffset }) => {
    const next = tokens.findIndex((token) => token.startOffset > startOffset);
    return inserted(text, image, places[next]?.startOffset ?? canonical.length);
  }, canonical);
}

const holdsComment = ({ tokenType, image }: IToken): boolean => tokenType !== Text && image.includes('/*');

const areAlike = (a: readonly IToken[], b: readonly IToken[]): boolean =>
  a.length === b.length && a.every(({ tokenType }, i) => tokenType === b[i]!.tokenType);

function inserted(text: string, comment: string, at: number): string {
  const [before, after] = [text.slice(0, at), text.slice(at)];
  return `${before}${/[^\s([]$/.test(before) ? ' ' : ''}${comment}${/^[^\s),\]]/.test(after) ? ' ' : ''}${after}`;
}
