/** Range requests (RFC 9110, section 14). */
import type { ByteRange } from './storage.ts';

/** No client resumes a download in more parts; a longer header is ignored, as the RFC allows. */
const MAX_RANGES = 32;
const MAX_RANGE_HEADER = 2_000;
const SPEC = /^(?:(\d{1,15})-(\d{1,15})?|-(\d{1,15}))$/;

/** `whole`: the header has no valid range. */
export type RangeAnswer = 'whole' | 'unsatisfiable' | readonly ByteRange[];

/** Merges ranges that overlap or touch. */
export function readRange(header: string | undefined, size: number): RangeAnswer {
  const list = header === undefined || header.length > MAX_RANGE_HEADER ? undefined : /^bytes=(.*)$/i.exec(header)?.[1];
  if (list === undefined) return 'whole';
  const specs = list
    .split(',')
    .map((part) => part.trim())
    .filter((part) => part !== '');
  if (specs.length === 0 || specs.length > MAX_RANGES) return 'whole';
  const ranges: ByteRange[] = [];
  for (const spec of specs) {
    const match = SPEC.exec(spec);
    if (match === null) return 'whole';
    const [, first, last, suffix] = match;
    // A range whose end is before its start makes the whole header invalid.
    if (last !== undefined && Number(last) < Number(first)) return 'whole';
    const start = suffix === undefined ? Number(first) : Math.max(0, size - Number(suffix));
    const end = last === undefined ? size - 1 : Math.min(Number(last), size - 1);
    if (start <= end && suffix !== '0') ranges.push({ start, end });
  }
  return ranges.length === 0 ? 'unsatisfiable' : merged(ranges);
}

function merged(ranges: readonly ByteRange[]): readonly ByteRange[] {
  const joined: ByteRange[] = [];
  for (const range of ranges.toSorted((a, b) => a.start - b.start)) {
    const before = joined.at(-1);
    if (before === undefined || range.start > before.end + 1) joined.push(range);
    else joined[joined.length - 1] = { start: before.start, end: Math.max(before.end, range.end) };
  }
  return joined;
}

export const rangeLength = ({ start, end }: ByteRange): number => end - start + 1;
