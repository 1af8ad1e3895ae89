/**
 * The tokens of the language. A pattern also matches the spellings of other languages (`==`, `AND`,
 * `<>`, curly quotes), so that the parser can continue and suggest ours; `SPELLING` has the correct
 * ones.
 */
import { createToken, type IToken, Lexer, type TokenType } from 'chevrotain';

const COMMENT = String.raw`/\*(?:[^*]|\*(?!/))*\*/`;
const GAP = `(?:[ \\t\\r\\n]|${COMMENT})+`;
// After a dot every word is a name: `all.user` is the path of a variable.
const END = '(?![A-Za-z0-9_.])';
const keywords = (...parts: readonly string[]): string => parts.join(GAP) + END;
const pattern = (source: string): RegExp => new RegExp(source, 'i');

/** The pattern of each comparison. The first match wins, so the longer ones come first. */
const COMPARISONS = {
  '!=': '!==?|<>|≠',
  '<=': '<=|=<|≤',
  '>=': '>=|=>|≥',
  '<': '<',
  '>': '>',
  '=': '={1,3}',
  'not in': keywords('not', 'in'),
  in: keywords('in'),
  contains: keywords('contains'),
  'starts with': keywords('starts', 'with'),
  'ends with': keywords('ends', 'with'),
  matches: keywords('matches'),
} as const;
/** A comparison that is written as a call: `within(@record.at, 52.1, 4.3, 5km)`. */
export const WITHIN = 'within';
type Infix = keyof typeof COMPARISONS;
export type CompareOp = Infix | typeof WITHIN;
/** The comparisons between two operands. */
export const COMPARE_OPS = Object.keys(COMPARISONS) as readonly Infix[];

export const QUANTIFIERS = ['any', 'all', 'none'] as const;
/** Calls with the members of a record as arguments. No other call is of the language: it names a condition. */
export const CHANGE_CALLS = ['changed', 'changed_only'] as const;
export const isChangeCall = (name: string): boolean => CHANGE_CALLS.some((each) => each === name);

/** The functions of a policy; those of a filter compare no two records. */
export const FUNCTION_NAMES: Readonly<Record<'policy' | 'filter', readonly string[]>> = {
  policy: [...QUANTIFIERS, 'count', 'ancestors', WITHIN, ...CHANGE_CALLS],
  filter: [...QUANTIFIERS, 'count', 'ancestors', WITHIN],
};

export const WhiteSpace = createToken({ name: 'WhiteSpace', pattern: /[ \t\r\n]+/, group: Lexer.SKIPPED });
export const Comment = createToken({ name: 'Comment', pattern: new RegExp(COMMENT), group: 'comments' });
/** Tokens that are never valid: kept out of the parser's input, and reported one by one. */
const wrong = (name: string, source: RegExp): TokenType => createToken({ name, pattern: source, group: 'wrong' });
export const LineComment = wrong('LineComment', /\/\/[^\n]*/);
export const OpenComment = wrong('OpenComment', /\/\*[\s\S]*/);
export const OpenText = wrong('OpenText', /["'][\s\S]*/);

export const Comparison = createToken({
  name: 'Comparison',
  pattern: pattern(Object.values(COMPARISONS).join('|')),
  label: 'a comparison',
});
export const IsNotNull = createToken({
  name: 'IsNotNull',
  pattern: pattern(keywords('is', 'not', 'null')),
  label: 'is not null',
});
export const IsNull = createToken({ name: 'IsNull', pattern: pattern(keywords('is', 'null')), label: 'is null' });
export const And = createToken({ name: 'And', pattern: pattern(`${keywords('and')}|&&?`), label: 'and' });
export const Or = createToken({ name: 'Or', pattern: pattern(`${keywords('or')}|\\|\\|?`), label: 'or' });
export const Not = createToken({ name: 'Not', pattern: pattern(`${keywords('not')}|!`), label: 'not' });
export const Quantifier = createToken({
  name: 'Quantifier',
  pattern: pattern(keywords(`(?:${QUANTIFIERS.join('|')})`)),
  label: 'a quantifier',
});
export const As = createToken({ name: 'As', pattern: pattern(keywords('as')), label: 'as' });
export const By = createToken({ name: 'By', pattern: pattern(keywords('by')), label: 'by' });
export const Truth = createToken({
  name: 'Truth',
  pattern: pattern(keywords('(?:true|false)')),
  label: '`true` or `false`',
});
export const Null = createToken({ name: 'Null', pattern: pattern(keywords('null')), label: 'null' });
/** The instant of the request, and the day of that instant. */
export const NOW_WORDS = ['@now', '@today'] as const;
export const Now = createToken({ name: 'Now', pattern: /@(?:now|today)(?![A-Za-z0-9_.])/, label: '@now' });
export const AtPath = createToken({
  name: 'AtPath',
  pattern: /@[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z0-9_]*)*/,
  label: 'a path',
});
/** `count` before `(`; elsewhere it is a name like any other. */
export const Count = createToken({ name: 'Count', pattern: new RegExp(`count(?=(?:${GAP})?\\()`), label: 'count' });
/** `ancestors` before `(`; elsewhere it is a name like any other. */
export const Ancestors = createToken({
  name: 'Ancestors',
  pattern: new RegExp(`ancestors(?=(?:${GAP})?\\()`),
  label: 'ancestors',
});
/** The name of a condition, or of an unknown function: a name before `(`. */
export const CallName = createToken({
  name: 'CallName',
  pattern: new RegExp(`[A-Za-z_][A-Za-z0-9_]*(?=(?:${GAP})?\\()`),
  label: 'a name before `(`',
});
export const Word = createToken({
  name: 'Word',
  pattern: /[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z0-9_]*)*/,
  label: 'a name',
});
/** `$name`, a value that a query's filter is given. */
export const ParamName = createToken({ name: 'Param', pattern: /\$[A-Za-z_][A-Za-z0-9_]*/, label: 'a parameter' });
export const Text = createToken({
  name: 'Text',
  pattern: /"(?:[^"\\]|\\[\s\S])*"|'(?:[^'\\]|\\[\s\S])*'|[“”„][^“”„"]*[“”„]|[‘’‚][^‘’‚']*[‘’‚]|`[^`]*`/,
  label: 'a string',
});
export const Duration = createToken({
  name: 'Duration',
  pattern: /[0-9]+(?![eE][+-]?[0-9])[A-Za-z]+(?![A-Za-z0-9_.])/,
  label: 'a duration',
});
export const JSON_NUMBER = /^-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?$/;
/**
 * Also takes what other languages write: `01`, `.5`, `5.`, `0x1F`, `1_000`. But `-24h` is a minus
 * and a duration.
 */
export const Numeral = createToken({
  name: 'Numeral',
  pattern:
    /-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?(?![A-Za-z0-9_.])|(?:-(?![0-9]+[A-Za-z]+(?![A-Za-z0-9_.])))?\.?[0-9][A-Za-z0-9_.]*/,
  label: 'a number',
});
export const Plus = createToken({ name: 'Plus', pattern: '+', label: '+' });
export const Minus = createToken({ name: 'Minus', pattern: '-', label: '-' });
export const Open = createToken({ name: 'Open', pattern: '(', label: '(' });
export const Close = createToken({ name: 'Close', pattern: ')', label: ')' });
export const OpenList = createToken({ name: 'OpenList', pattern: '[', label: '[' });
export const CloseList = createToken({ name: 'CloseList', pattern: ']', label: ']' });
export const Comma = createToken({ name: 'Comma', pattern: ',', label: ',' });

/**
 * A run of characters that begin no other token. The lexer could find it by itself, but would try
 * every token at every character.
 */
export const Stray = createToken({
  name: 'Stray',
  pattern:
    /(?:[$?#^~%;{}:*\\\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u2017\u201b\u201f-\uffff]|\.(?![0-9])|@(?![A-Za-z_])|\/(?![/*]))+/,
  group: 'stray',
});

/** The lexer tries the tokens in this order. */
export const TOKENS: readonly TokenType[] = [
  WhiteSpace,
  Now,
  AtPath,
  Comparison,
  IsNotNull,
  IsNull,
  And,
  Or,
  Not,
  Quantifier,
  As,
  By,
  Truth,
  Null,
  Count,
  Ancestors,
  CallName,
  Word,
  ParamName,
  Text,
  Duration,
  Numeral,
  Comment,
  LineComment,
  Plus,
  Minus,
  Open,
  Close,
  OpenList,
  CloseList,
  Comma,
  OpenComment,
  OpenText,
  Stray,
];

/** The spellings of the tokens that are neither names nor values. `null` is in no valid policy. */
export const SPELLINGS: ReadonlyMap<TokenType, readonly string[]> = new Map<TokenType, readonly string[]>([
  [Comparison, COMPARE_OPS],
  [Quantifier, QUANTIFIERS],
  [Truth, ['true', 'false']],
  [Now, NOW_WORDS],
  ...[IsNull, IsNotNull, And, Or, Not, As, By, Count, Ancestors, Plus, Minus]
    .concat(Open, Close, OpenList, CloseList, Comma)
    .map((type) => [type, [labelOf(type)]] as const),
]);

function labelOf({ LABEL = '' }: TokenType): string {
  return LABEL;
}

const ALL_SPELLINGS: readonly string[] = [...SPELLINGS.values()].flat();

/** Operators of several words. */
export const PHRASES: readonly string[] = ALL_SPELLINGS.filter((text) => text.includes(' '));

/** Operators that are words and follow an operand: the suggestions for a misspelt one. */
export const OPERATOR_WORDS: readonly string[] = [...COMPARE_OPS, ...[IsNull, IsNotNull, And, Or].map(labelOf)].filter(
  (text) => /[a-z]/.test(text),
);

/** Reserved words, which can name neither a variable nor a condition. */
export const RESERVED: ReadonlySet<string> = new Set(
  [...ALL_SPELLINGS, ...CHANGE_CALLS, WITHIN]
    .flatMap((text) => text.split(' '))
    .filter((word) => /^[a-z_]+$/.test(word)),
);

const RIGHT: ReadonlyMap<string, CompareOp> = new Map(COMPARE_OPS.map((op) => [op, op]));
const READERS = COMPARE_OPS.map((op) => [op, new RegExp(`^(?:${COMPARISONS[op]})$`, 'i')] as const);

/** Which comparison a token's text is, however it was spelt. */
export function comparisonOf(image: string): CompareOp {
  return RIGHT.get(image) ?? READERS.find(([, reader]) => reader.test(image))?.[0] ?? '=';
}

/** A `Span` of the syntax tree. */
export const spanOf = (token: IToken): { readonly start: number; readonly end: number } => ({
  start: token.startOffset,
  end: token.startOffset + token.image.length,
});

export const lexer = new Lexer([...TOKENS], {
  positionTracking: 'onlyOffset',
  ensureOptimizations: true,
  skipValidations: true,
});
