/**
 * A place in a text that is being written: the token that begins or continues there, the clause
 * around it, and the tokens that the grammar takes next. Only the text before the offset counts, so
 * the rest may be incomplete or wrong.
 */
import type { IToken, TokenType } from 'chevrotain';
import { fitsAfter } from './parser.ts';
import type { Span } from './syntax.ts';
import * as t from './tokens.ts';

/**
 * The innermost brackets. `condition`: a policy, a group, or the condition of a quantifier; `range`:
 * the relation of a quantifier or `count`; the others: between their own brackets.
 */
type FrameKind = 'condition' | 'range' | 'ancestors' | 'call' | 'list';

/** Tokens that are a name or a value, by the names of their types. */
type OpenToken = 'AtPath' | 'Word' | 'CallName' | 'Param' | 'Text' | 'Numeral' | 'Duration';

export interface Cursor {
  /** The span that a completion replaces. */
  readonly span: Span;
  /** The names of the path before the one at the cursor, with their dots. */
  readonly walked: string;
  /** The tokens that bind the variables of the clause, and those that close it. */
  readonly outer: string;
  readonly closing: string;
  /** The clause up to the cursor, `walked` included. */
  readonly clause: string;
  readonly frame: FrameKind;
  /** The range of `count`, which a quantifier's otherwise is. */
  readonly isCount: boolean;
  /** A call has a name, and a number of complete arguments. */
  readonly call?: { readonly name: string; readonly args: number };
  /** A list has the clause before its bracket. */
  readonly holder?: string;
  /** The meaning of a name: a path begins with it, a quantifier binds it, or it follows `by`. */
  readonly naming: 'path' | 'variable' | 'relation';
  /** Words and signs that the grammar takes. */
  readonly words: readonly string[];
  readonly takes: ReadonlySet<OpenToken>;
}

/** Empty within a comment. */
export function cursorsAt(text: string, offset: number): readonly Cursor[] {
  const before = text.slice(0, offset);
  const { tokens, groups } = t.lexer.tokenize(before);
  const [wrong] = groups.wrong ?? [];
  if (wrong !== undefined && wrong.tokenType !== t.OpenText) return [];
  const word = wrong === undefined ? lastWord(tokens, before) : undefined;
  const start = (wrong ?? word)?.startOffset ?? before.length - (/[@$]$/.test(before) ? 1 : 0);
  const walked = word === undefined ? '' : word.image.slice(0, word.image.lastIndexOf('.') + 1);
  const end = wrong === undefined ? endOfName(text, offset) : endOfString(text, wrong);
  const whole = word === undefined ? tokens : tokens.slice(0, -1);
  const at = { before, walked, span: { start: start + walked.length, end } };
  const cursor = cursorAfter(whole, at);
  if (wrong !== undefined) return cursor.takes.has('Text') ? [{ ...cursor, words: [], takes: new Set(['Text']) }] : [];
  return [cursor, ...(word === undefined ? [] : [signsAfter(tokens, before)]), ...phrases(tokens, at)];
}

/** A word that ends at the cursor may continue. */
function lastWord(tokens: readonly IToken[], before: string): IToken | undefined {
  const last = tokens.at(-1);
  if (last === undefined || t.spanOf(last).end !== before.length || last.tokenType === t.Text) return undefined;
  return /[A-Za-z0-9_.]$/.test(last.image) ? last : undefined;
}

function endOfName(text: string, offset: number): number {
  let end = offset;
  while (/[A-Za-z0-9_]/.test(text[end] ?? '')) end++;
  return end;
}

/** Returns the offset after the closing quote, or the place where the string is still open. */
function endOfString(text: string, { startOffset, image }: IToken): number {
  const [first] = t.lexer.tokenize(text.slice(startOffset)).tokens;
  const closed = first?.tokenType === t.Text && first.startOffset === 0 ? first.image : image;
  return startOffset + closed.length;
}

interface At {
  readonly before: string;
  readonly walked: string;
  readonly span: Span;
}

/** `is not nu`, `starts `: words that begin an operator and are other tokens by themselves. */
function phrases(tokens: readonly IToken[], at: At): readonly Cursor[] {
  return [1, 2, 3].flatMap((count) => {
    const first = tokens[tokens.length - count];
    if (first === undefined) return [];
    const begun = at.before.slice(first.startOffset).split(/[ \t\r\n]+/);
    const isBegun = (phrase: string): boolean => isBeginning(begun, phrase.split(' '));
    if (!t.PHRASES.some(isBegun)) return [];
    const span = { start: first.startOffset, end: at.span.end };
    const cursor = cursorAfter(tokens.slice(0, -count), { before: at.before, walked: '', span });
    return [{ ...cursor, words: cursor.words.filter(isBegun), takes: new Set<OpenToken>() }];
  });
}

const isBeginning = (begun: readonly string[], words: readonly string[]): boolean =>
  begun.length > 1 &&
  begun.length <= words.length &&
  begun.every((word, i) => (i < begun.length - 1 ? word === words[i] : words[i]?.startsWith(word)));

/** A sign may follow a word without a space. */
function signsAfter(tokens: readonly IToken[], before: string): Cursor {
  const span = { start: before.length, end: before.length };
  const cursor = cursorAfter(tokens, { before, walked: '', span });
  return { ...cursor, words: cursor.words.filter((word) => /^[^A-Za-z@]/.test(word)), takes: new Set() };
}

// ---------------------------------------------------------------- brackets

interface Frame {
  readonly kind: FrameKind;
  /** The word before the bracket, or else the bracket. */
  readonly head: number;
  /** The last token before the condition inside. */
  readonly opened: number;
  /** The first token of the clause. */
  readonly from: number;
}

const HEADS: ReadonlyMap<TokenType | undefined, FrameKind> = new Map([
  [t.Quantifier, 'range'],
  [t.Count, 'range'],
  [t.Ancestors, 'ancestors'],
  [t.CallName, 'call'],
]);

/** The brackets that are open after the tokens, the outermost first. */
function framesOf(tokens: readonly IToken[]): readonly Frame[] {
  const frames: Frame[] = [{ kind: 'condition', head: -1, opened: -1, from: 0 }];
  for (const [i, { tokenType }] of tokens.entries()) {
    const inner = frames.at(-1)!;
    if (tokenType === t.Open) frames.push(frameAt(tokens, i, inner));
    else if (tokenType === t.OpenList) frames.push({ kind: 'list', head: i, opened: i, from: inner.from });
    else if (tokenType === t.Close || tokenType === t.CloseList) {
      if (frames.length > 1) frames.pop();
    } else if (beginsClause(tokens, i, inner)) {
      const opened = tokenType === t.Comma ? i : inner.opened;
      frames.splice(-1, 1, { ...inner, kind: 'condition', opened, from: i + 1 });
    }
  }
  return frames;
}

function frameAt(tokens: readonly IToken[], i: number, inner: Frame): Frame {
  const kind = HEADS.get(tokens[i - 1]?.tokenType);
  if (kind === undefined) return { kind: 'condition', head: i, opened: i, from: i + 1 };
  return { kind, head: i - 1, opened: i, from: kind === 'ancestors' ? inner.from : i - 1 };
}

function beginsClause(tokens: readonly IToken[], i: number, { kind, from }: Frame): boolean {
  const type = tokens[i]?.tokenType;
  if (kind === 'range') return type === t.Comma && tokens[i - 2]?.tokenType === t.As;
  return kind === 'condition' && (type === t.And || type === t.Or || (type === t.Not && i === from));
}

function cursorAfter(tokens: readonly IToken[], { before, walked, span }: At): Cursor {
  const frames = framesOf(tokens);
  const inner = frames.at(-1)!;
  const startOf = (i: number): number => tokens[i]?.startOffset ?? span.start - walked.length;
  const slice = (from: number, to: number): string => before.slice(startOf(from), startOf(to));
  const around = frames.filter(({ kind, head }) => kind === 'condition' && head >= 0);
  const isCountAt = (frame: Frame | undefined): boolean => tokens[frame?.head ?? -1]?.tokenType === t.Count;
  const kept = [...around.flatMap(({ head, opened }) => tokens.slice(head, opened + 1)), ...tokens.slice(inner.from)];
  const last = tokens.at(-1)?.tokenType;
  return {
    span,
    walked,
    outer: around.map(({ head, opened }) => slice(head, opened + 1)).join(''),
    // A clause with a count is a condition again once the count is compared.
    closing: around
      .toReversed()
      .map((frame) => (isCountAt(frame) ? ') = 1' : ')'))
      .join(''),
    clause: slice(inner.from, tokens.length) + walked,
    frame: inner.kind,
    isCount: isCountAt(frames.findLast(({ kind }) => kind === 'range')),
    ...(inner.kind === 'call' && { call: callAt(tokens, inner) }),
    ...(inner.kind === 'list' && { holder: slice(inner.from, inner.head) }),
    naming: last === t.As ? 'variable' : last === t.By ? 'relation' : 'path',
    ...nextAfter(kept, walked),
  };
}

function callAt(tokens: readonly IToken[], { head, opened }: Frame) {
  const args = tokens.slice(opened).filter(({ tokenType }) => tokenType === t.Comma).length;
  return { name: tokens[head]!.image, args };
}

const OPEN_TOKENS: readonly (readonly [OpenToken, TokenType])[] = [
  ['AtPath', t.AtPath],
  ['Word', t.Word],
  ['CallName', t.CallName],
  ['Param', t.ParamName],
  ['Text', t.Text],
  ['Numeral', t.Numeral],
  ['Duration', t.Duration],
];

/** After a dot only a name may follow. */
function nextAfter(tokens: readonly IToken[], walked: string): Pick<Cursor, 'words' | 'takes'> {
  const fits = (type: TokenType): boolean => fitsAfter(tokens, type);
  const path = walked.startsWith('@') ? 'AtPath' : 'Word';
  const taken = OPEN_TOKENS.filter(([name, type]) => (walked === '' || name === path) && fits(type));
  const words = walked === '' ? [...t.SPELLINGS].flatMap(([type, texts]) => (fits(type) ? texts : [])) : [];
  return { words, takes: new Set(taken.map(([name]) => name)) };
}
