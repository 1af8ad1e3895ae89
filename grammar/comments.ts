/** Keeps comments in canonical text. The tree does not hold them: they stay between the same tokens. */
import type { IToken } from 'chevrotain';
import { lexer, Text } from './tokens.ts';

/**
 * `canonical` with the comments of `written`, the text that it reformats. Undefined if a comment
 * has several lines or is inside an operator of several words, or if parentheses were added or
 * removed, so that the comment's subject is unclear.
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
  a.length === b.length && a.every(({ tokenType }, i) => tokenType === b[i]?.tokenType);

function inserted(text: string, comment: string, at: number): string {
  const [before, after] = [text.slice(0, at), text.slice(at)];
  return `${before}${/[^\s([]$/.test(before) ? ' ' : ''}${comment}${/^[^\s),\]]/.test(after) ? ' ' : ''}${after}`;
}
