/** The nearest name that exists, for error messages. */

/** How many edits a suggestion may need: a third of the name's letters, and at least one. */
const reach = (length: number): number => Math.max(1, Math.round(length / 3));

/**
 * Edits between two texts where a swap of neighbours is one edit (optimal string alignment).
 * Source: Boytsov, "Indexing methods for approximate dictionary searching", 2011, 2.2.
 */
function edits(from: string, to: string, limit: number): number {
  let before: number[] = [];
  let above = Array.from({ length: to.length + 1 }, (_, j) => j);
  for (let i = 1; i <= from.length; i++) {
    const row = [i];
    let least = i;
    for (let j = 1; j <= to.length; j++) {
      const same = from[i - 1] === to[j - 1];
      let cost = Math.min(above[j]! + 1, row[j - 1]! + 1, above[j - 1]! + (same ? 0 : 1));
      if (i > 1 && j > 1 && from[i - 1] === to[j - 2] && from[i - 2] === to[j - 1])
        cost = Math.min(cost, before[j - 2]! + 1);
      row.push(cost);
      least = Math.min(least, cost);
    }
    if (least > limit) return limit + 1;
    before = above;
    above = row;
  }
  return above[to.length]!;
}

const folded = (name: string): string => name.toLowerCase().replaceAll(/[_-]/g, '');

function commonPrefix(a: string, b: string): number {
  let length = 0;
  while (length < a.length && length < b.length && a[length] === b[length]) length++;
  return length;
}

/**
 * Less is nearer; `undefined` is too far. Letter case and underscores count little: they are a
 * matter of convention.
 */
function distance(name: string, candidate: string): number | undefined {
  const [a, b] = [folded(name), folded(candidate)];
  const limit = reach(Math.min(a.length, b.length));
  if (Math.abs(a.length - b.length) <= limit) {
    const cost = edits(a, b, limit);
    // Typing errors are rarer in the first letters than in the rest.
    if (cost <= limit && (cost === 0 || Math.max(a.length, b.length) - cost > 1))
      return cost - commonPrefix(a, b) / (a.length + b.length + 1) / 2;
  }
  const [short, long] = a.length < b.length ? [a, b] : [b, a];
  return short.length >= 3 && (long.startsWith(short) || long.endsWith(short)) ? limit + 1 : undefined;
}

/** The first names of a message that lists what is known. */
export const firstNames = (known: readonly unknown[]): string =>
  known
    .slice(0, 8)
    .map((each) => `\`${each}\``)
    .join(', ');

/** The end of a message about an unknown name. */
export const hintOf = (near: string | undefined): string => (near === undefined ? '' : `; did you mean \`${near}\`?`);

/** `undefined` if nothing is near. Ties go to the candidate that comes first. */
export function nearest(name: string, candidates: Iterable<string>): string | undefined {
  if (name.length > 64) return undefined;
  let best: string | undefined;
  let least = Number.POSITIVE_INFINITY;
  for (const candidate of candidates) {
    const cost = distance(name, candidate);
    if (cost !== undefined && cost < least) [best, least] = [candidate, cost];
  }
  return best;
}
