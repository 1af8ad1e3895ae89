/** The text of the rules, painted by the values that tests gave each comparison. */
import type { JSX } from 'preact';
import { wording } from '../../en.ts';
import type { CoveredLeaf, CoveredPolicy } from './test-answer.ts';

type Cover = 'seen' | 'partly' | 'unseen';
interface PaintedLeaf {
  readonly start: number;
  readonly end: number;
  readonly cover: Cover;
  readonly counts: string;
}
const COVERS: readonly Cover[] = ['seen', 'partly', 'unseen'];
const TRUTH_WORDS = ['true', 'false', 'unknown'] as const;
/** Lines around a painted one. */
const CONTEXT = 1;

interface CoveredTextProps {
  readonly text: string;
  readonly policies: readonly CoveredPolicy[];
}

export function CoveredText({ text, policies }: CoveredTextProps): JSX.Element {
  const lines = paintedLines(text, policies);
  return (
    <>
      <p class="legend">
        {COVERS.map((cover) => (
          <mark key={cover} class={`cover ${cover}`}>
            {wording.covers[cover]}
          </mark>
        ))}
      </p>
      <pre class="covered-text" role="region" tabIndex={0} aria-label={wording.paintedRules}>
        {lines.map(({ number, parts, isAfterGap }) => (
          <span key={number} class={isAfterGap ? 'line after-gap' : 'line'}>
            <span class="line-number">{number}</span>
            {parts.map((part, i) =>
              typeof part === 'string' ? (
                part
              ) : (
                <mark key={i} class={`cover ${part.cover}`} title={part.counts}>
                  {text.slice(part.start, part.end)}
                </mark>
              ),
            )}
          </span>
        ))}
      </pre>
    </>
  );
}

interface PaintedLine {
  readonly number: number;
  readonly parts: readonly (string | PaintedLeaf)[];
  /** Lines before it are left out. */
  readonly isAfterGap: boolean;
}

/** Lines with comparisons, and the lines around them. */
function paintedLines(text: string, policies: readonly CoveredPolicy[]): readonly PaintedLine[] {
  const starts = [0, ...text.matchAll(/\n/g).map(({ index }) => index + 1)];
  const leaves = policies.flatMap((policy) => policy.leaves.flatMap((leaf) => paintedLeaf(text, starts, leaf) ?? []));
  const apart = withoutOverlaps(leaves);
  const inLine = (line: number): readonly PaintedLeaf[] =>
    apart.filter(({ start }) => start >= starts[line]! && start < (starts[line + 1] ?? text.length + 1));
  const near = (line: number): boolean =>
    [...Array(2 * CONTEXT + 1).keys()].some(
      (i) => starts[line + i - CONTEXT] !== undefined && inLine(line + i - CONTEXT).length > 0,
    );
  const shown = [...starts.keys()].filter(near);
  return shown.map((line, i) => ({
    number: line + 1,
    parts: coveredParts(text, { start: starts[line]!, end: (starts[line + 1] ?? text.length + 1) - 1 }, inLine(line)),
    isAfterGap: i > 0 && shown[i - 1] !== line - 1,
  }));
}

function coveredParts(
  text: string,
  line: { readonly start: number; readonly end: number },
  leaves: readonly PaintedLeaf[],
): PaintedLine['parts'] {
  let at = line.start;
  const parts = leaves.flatMap((leaf) => {
    const before = text.slice(at, leaf.start);
    at = leaf.end;
    return [before, leaf];
  });
  return [...parts, text.slice(at, Math.max(at, line.end))];
}

/** Undefined: the file has the leaf in another spelling, such as escaped quotes, or over several lines. */
function paintedLeaf(text: string, starts: readonly number[], leaf: CoveredLeaf): PaintedLeaf | undefined {
  const start = (starts[leaf.line - 1] ?? text.length) + leaf.column - 1;
  if (!text.startsWith(leaf.text, start) || leaf.text.includes('\n')) return undefined;
  const possible = TRUTH_WORDS.filter((value) => leaf[value] !== null);
  const seen = possible.filter((value) => leaf[value]! > 0);
  const cover = seen.length === possible.length ? 'seen' : seen.length > 0 ? 'partly' : 'unseen';
  const counts = possible.map((value) => `${value}: ${leaf[value]}`).join(', ');
  return { start, end: start + leaf.text.length, cover, counts };
}

/** The first of leaves that overlap: a leaf holds others, and rules share a text. */
function withoutOverlaps(leaves: readonly PaintedLeaf[]): readonly PaintedLeaf[] {
  let end = 0;
  return leaves
    .toSorted((a, b) => a.start - b.start || b.end - a.end)
    .filter((leaf) => {
      if (leaf.start < end) return false;
      end = leaf.end;
      return true;
    });
}
