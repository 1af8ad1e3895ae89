/** Places of the protocol: lines and characters from 0, in UTF-16 units. */
import type { Region } from '../../schema/file/issue.ts';

export interface TextPosition {
  readonly line: number;
  readonly character: number;
}
export interface TextRange {
  readonly start: TextPosition;
  readonly end: TextPosition;
}
export interface TextEdit {
  readonly range: TextRange;
  readonly newText: string;
}

export const rangeOfRegion = ({ line, column, end_line, end_column }: Region): TextRange => ({
  start: { line: line - 1, character: column - 1 },
  end: { line: end_line - 1, character: end_column - 1 },
});

export function offsetAt(text: string, { line, character }: TextPosition): number {
  let start = 0;
  for (let i = 0; i < line; i++) {
    const end = text.indexOf('\n', start);
    if (end === -1) return text.length;
    start = end + 1;
  }
  const end = text.indexOf('\n', start);
  return Math.min(start + character, end === -1 ? text.length : end);
}

/** The range of a whole text. */
export function wholeRange(text: string): TextRange {
  const lines = text.split('\n');
  return { start: { line: 0, character: 0 }, end: { line: lines.length - 1, character: lines.at(-1)!.length } };
}
