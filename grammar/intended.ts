/** Comments that mark a condition as meant, such as `intended: drafts have no owner yet`. Its warnings are silent. */
import type { Expr, Span } from './syntax.ts';
import { lexer } from './tokens.ts';

export interface IntendedMark {
  /** The comment. */
  readonly span: Span;
  /** Empty if the author gave none. */
  readonly reason: string;
  /** A warning about these characters is about the marked condition. */
  covers(span: Span): boolean;
}

const WORD = 'intended';

/** The reason that a comment gives, empty if it gives none; undefined if it is not a mark. */
function reasonIn(comment: string): string | undefined {
  const body = comment.slice(2, -2).trim();
  if (body.slice(0, WORD.length).toLowerCase() !== WORD) return undefined;
  const rest = body.slice(WORD.length).trim();
  return rest === '' || rest.startsWith(':') ? rest.slice(1).trim() : undefined;
}

/**
 * The marks of a text, whose tree is given. A mark covers the conditions that begin behind it, and all
 * parts of them. A mark without such a condition covers the smallest condition around it or in front of
 * it.
 */
export function intendedMarks(text: string, tree: Expr): readonly IntendedMark[] {
  if (!/intended/i.test(text)) return [];
  const { tokens, groups } = lexer.tokenize(text);
  const units = unitsOf(tree);
  return (groups.comments ?? []).flatMap(({ image, startOffset }) => {
    const reason = reasonIn(image);
    if (reason === undefined) return [];
    const span = { start: startOffset, end: startOffset + image.length };
    const next = tokens.find((token) => token.startOffset > startOffset)?.startOffset;
    const behind = units.find(({ start }) => start === next);
    const unit = behind ?? unitAround(span, units);
    const covers = ({ start, end }: Span): boolean =>
      (behind !== undefined && start === behind.start) ||
      (unit !== undefined && start >= unit.start && end <= unit.end);
    return [{ span, reason, covers }];
  });
}

/** The mark that the text begins with, if it has a reason. */
export function markOfWhole(text: string): Span | undefined {
  if (!text.trimStart().startsWith('/*')) return undefined;
  const { tokens, groups } = lexer.tokenize(text);
  const [first] = tokens;
  const mark = groups.comments?.find(({ image }) => (reasonIn(image) ?? '') !== '');
  if (mark === undefined || first === undefined || mark.startOffset > first.startOffset) return undefined;
  return { start: mark.startOffset, end: mark.startOffset + mark.image.length };
}

/** The smallest condition that the comment is in; else the one that ends before it. */
function unitAround({ start, end }: Span, units: readonly Span[]): Span | undefined {
  const size = (unit: Span): number => unit.end - unit.start;
  const around = units.filter((unit) => unit.start < start && unit.end > end).sort((a, b) => size(a) - size(b));
  const before = units.filter((unit) => unit.end <= start).sort((a, b) => b.end - a.end || size(a) - size(b));
  const [inner] = around;
  const [last] = before;
  return inner === undefined || (last !== undefined && last.start > inner.start) ? (last ?? inner) : inner;
}

/** The conditions of the grammar: a chain of `and` or `or` is one only in parentheses. */
function unitsOf(tree: Expr): readonly Span[] {
  const inner = innerExpressions(tree).flatMap(unitsOf);
  const isBareChain = (tree.kind === 'and' || tree.kind === 'or') && !isInParentheses(tree);
  return isBareChain ? inner : [tree.span, ...inner];
}

/** A group's span begins at its parenthesis. */
export const isInParentheses = ({ items, span }: Extract<Expr, { kind: 'and' | 'or' }>): boolean =>
  items[0] !== undefined && span.start < items[0].span.start;

/** The conditions directly inside. */
export function innerExpressions(tree: Expr): readonly Expr[] {
  switch (tree.kind) {
    case 'and':
    case 'or':
      return tree.items;
    case 'not':
      return [tree.item];
    case 'quantified':
      return [tree.condition];
    case 'compare':
      return [tree.left, tree.right].flatMap((side) =>
        side.kind === 'count' && side.condition ? [side.condition] : [],
      );
    case 'is null':
    case 'call':
    case 'truth':
      return [];
  }
}
