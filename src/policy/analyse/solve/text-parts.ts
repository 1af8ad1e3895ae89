/** Parts that a text has or does not have, which of them contradict one another, and texts that have them all. */
import { compareText, successorOf } from '../../collation.ts';
import { fold, isBlankNeedle } from '../../fold.ts';
import { ENDS_WITH, HOLDS, OPERATORS } from '../../operators.ts';
import { lengthInCodePoints, type Scalar } from '../../values.ts';
import type { DomainBound } from './domains.ts';
import { BLANK, type LengthLimits, type Term, type TextPart } from './variables.ts';

export function meetsPart(text: string, { op, holds, needle }: TextPart & { readonly needle: string }): boolean {
  const has = op === BLANK ? isBlankNeedle(text) : OPERATORS[op].holds(text, needle);
  return has === holds;
}

/** With any one needle: what begins or ends with it contains it. */
export const implies = (one: TextPart, other: TextPart): boolean => isInside(other) && (isPrefix(one) || isSuffix(one));

type KnownPart = Omit<TextPart, 'needle'> & { readonly needle: string };

interface TextFacts {
  readonly parts: readonly TextPart[];
  readonly limits: LengthLimits;
  readonly low: DomainBound | undefined;
  readonly high: DomainBound | undefined;
}

const isKnown = (part: TextPart): part is KnownPart => typeof part.needle === 'string';
const isPrefix = ({ op }: TextPart): boolean => op !== BLANK && OPERATORS[op].prefix === true;
const isSuffix = ({ op }: TextPart): boolean => op === ENDS_WITH;
const isInside = ({ op }: TextPart): boolean => op === HOLDS;
const isFolded = ({ op }: TextPart): boolean => op !== BLANK && OPERATORS[op].folds === true;

/** True only if no text has these parts. */
export function contradictParts({ parts, limits, low, high }: TextFacts): boolean {
  if (parts.length === 0) return false;
  const known = parts.filter(isKnown);
  const has = known.filter(({ holds }) => holds);
  const prefixes = has.filter(isPrefix).map(({ needle }) => needle);
  const suffixes = has.filter(isSuffix).map(({ needle }) => needle);
  const longest = has.map(({ needle, op }) =>
    op === BLANK || isFolded({ op, holds: true, needle }) ? 0 : lengthInCodePoints(needle),
  );
  if (Math.max(0, ...longest) > (limits.max ?? Number.POSITIVE_INFINITY)) return true;
  if (!areNested(prefixes, (a, b) => a.startsWith(b)) || !areNested(suffixes, (a, b) => a.endsWith(b))) return true;
  if (known.some((part) => !part.holds && has.some((other) => impliesPart(other, part)))) return true;
  if (known.some((part) => !part.holds && part.op !== BLANK && part.needle === '')) return true;
  return prefixes.some((prefix) => isOutOfOrder(prefix, { low, high }));
}

/** In every pair, one text has the other. */
const areNested = (texts: readonly string[], has: (a: string, b: string) => boolean): boolean =>
  texts.every((a, i) => texts.slice(i + 1).every((b) => has(a, b) || has(b, a)));

/** A text with the one has the other. */
function impliesPart(one: KnownPart, other: KnownPart): boolean {
  if (isPrefix(other)) return isPrefix(one) && one.needle.startsWith(other.needle);
  if (isSuffix(other)) return isSuffix(one) && one.needle.endsWith(other.needle);
  if (isInside(other)) return one.op !== BLANK && !isFolded(one) && one.needle.includes(other.needle);
  return isFolded(other) && isFolded(one) && fold(one.needle).includes(fold(other.needle));
}

/** Every text with the prefix is outside of the bounds. */
function isOutOfOrder(prefix: string, { low, high }: Pick<TextFacts, 'low' | 'high'>): boolean {
  if (high !== undefined) {
    const order = compareText(prefix, String(high.value));
    if (order > 0 || (order === 0 && high.strict)) return true;
  }
  const end = successorOf(prefix);
  return low !== undefined && end !== undefined && compareText(String(low.value), end) >= 0;
}

// ---------------------------------------------------------------- texts

interface WantedText extends TextFacts {
  readonly excluded: readonly Scalar[];
}

const FILLERS = ['', 'a', 'b', 'x1', 'y', 'z', '0', '~', 'q2', 'w3', '!', '\u{10ffff}'];

/** Texts that may have all parts. Each must be tried. `needleOf` gives the text of a needle that is a term. */
export function* textsWith(wanted: WantedText, needleOf: (term: Term) => string | undefined): Generator<string> {
  const { parts, low, high, limits } = wanted;
  const needles = (test: (part: TextPart) => boolean): string[] =>
    parts.flatMap((part) => {
      const needle = typeof part.needle === 'string' ? part.needle : needleOf(part.needle);
      return part.holds && test(part) && needle !== undefined ? [needle] : [];
    });
  const longest = (texts: readonly string[]): string => texts.toSorted((a, b) => b.length - a.length)[0] ?? '';
  const prefix = longest(needles(isPrefix));
  const suffix = longest(needles(isSuffix));
  const inner = needles((part) => isInside(part) || isFolded(part));
  if (parts.some(({ op, holds }) => op === BLANK && holds)) yield '\u0301';
  const middle = inner.filter((each) => !prefix.includes(each) && !suffix.includes(each)).join('');
  for (const start of startsOf(low, high)) {
    const from = prefix.startsWith(start) || start === '' ? prefix : start.startsWith(prefix) ? start : `${prefix}`;
    if (middle === '' && from.endsWith(suffix)) yield from;
    for (let overlap = Math.min(from.length, suffix.length); overlap > 0 && middle === ''; overlap--)
      if (from.endsWith(suffix.slice(0, overlap))) yield from + suffix.slice(overlap);
    for (const filler of FILLERS) {
      const padding = 'a'.repeat(Math.max(0, (limits.min ?? 0) - lengthInCodePoints(from + middle + filler + suffix)));
      yield from + middle + filler + padding + suffix;
      if (filler !== '' && middle !== '') yield from + filler + middle + padding + suffix;
    }
  }
}

function startsOf(low: DomainBound | undefined, high: DomainBound | undefined): readonly string[] {
  const starts = [''];
  if (low !== undefined) starts.unshift(String(low.value), `${low.value}\u0001`);
  if (high !== undefined) starts.unshift(String(high.value));
  return starts;
}
