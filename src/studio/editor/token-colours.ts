/** The colour of each token of an expression, by the lexer of the grammar. */
import { lexer } from '../../../grammar/tokens.ts';

type TokenColour = 'path' | 'operator' | 'call' | 'string' | 'constant' | 'comment';
export interface ColouredSpan {
  readonly start: number;
  readonly end: number;
  readonly colour: TokenColour;
}

/** The key is the name of a token type; other tokens have the colour of the text. */
const COLOURS: ReadonlyMap<string, TokenColour> = new Map([
  ...(['AtPath', 'Now', 'Param'] as const).map((name) => [name, 'path'] as const),
  ...(['Comparison', 'IsNull', 'IsNotNull', 'And', 'Or', 'Not', 'As', 'By'] as const).map(
    (name) => [name, 'operator'] as const,
  ),
  ...(['Quantifier', 'Count', 'Ancestors', 'CallName'] as const).map((name) => [name, 'call'] as const),
  ...(['Text', 'OpenText'] as const).map((name) => [name, 'string'] as const),
  ...(['Numeral', 'Duration', 'Truth', 'Null'] as const).map((name) => [name, 'constant'] as const),
  ...(['Comment', 'OpenComment', 'LineComment'] as const).map((name) => [name, 'comment'] as const),
]);

/** In the order of the text. */
export function colouredSpans(text: string): readonly ColouredSpan[] {
  const { tokens, groups } = lexer.tokenize(text);
  const all = [...tokens, ...(groups.comments ?? []), ...(groups.wrong ?? [])];
  return all
    .toSorted((a, b) => a.startOffset - b.startOffset)
    .flatMap(({ tokenType, startOffset: start, image }) => {
      const colour = COLOURS.get(tokenType.name);
      return colour === undefined ? [] : [{ start, end: start + image.length, colour }];
    });
}
