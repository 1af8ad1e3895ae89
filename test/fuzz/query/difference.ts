/** A long text from shortly before its first difference from another one. */
export function aroundDifference(text: string, other: string): string {
  let at = 0;
  while (at < text.length && text[at] === other[at]) at++;
  const from = Math.max(0, at - 300);
  return `${from > 0 ? '… ' : ''}${text.slice(from, at + 500)}`;
}
