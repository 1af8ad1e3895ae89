const CONTEXT_LINES = 3;

/** The change of a file as a unified diff with one hunk, as `git apply` takes it; empty where nothing differs. */
export function filePatch(name: string, before: string, after: string): string {
  if (before === after) return '';
  const [old, changed] = [endedLines(before), endedLines(after)];
  const shorter = Math.min(old.length, changed.length);
  let head = 0;
  while (head < shorter && old[head] === changed[head]) head++;
  let tail = 0;
  while (tail < shorter - head && old.at(-1 - tail) === changed.at(-1 - tail)) tail++;
  const first = Math.max(0, head - CONTEXT_LINES);
  const behind = Math.min(tail, CONTEXT_LINES);
  const parts = [
    ...old.slice(first, head).map((line) => ` ${line}`),
    ...old.slice(head, old.length - tail).map((line) => `-${line}`),
    ...changed.slice(head, changed.length - tail).map((line) => `+${line}`),
    ...old.slice(old.length - tail, old.length - tail + behind).map((line) => ` ${line}`),
  ];
  const rangeOf = (lines: readonly string[]): string => {
    const count = lines.length - tail + behind - first;
    return `${count === 0 ? first : first + 1},${count}`;
  };
  const hunk = `@@ -${rangeOf(old)} +${rangeOf(changed)} @@\n`;
  const marked = parts.map((line) => (line.endsWith('\n') ? line : `${line}\n\\ No newline at end of file\n`));
  return `--- a/${name}\n+++ b/${name}\n${hunk}${marked.join('')}`;
}

/** Each with its end. */
const endedLines = (text: string): readonly string[] => text.match(/[^\n]*\n|[^\n]+$/g) ?? [];
