/** The files of a checkout, parsed. */
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Program, parseSync } from 'oxc-parser';

export interface SourceFile {
  readonly path: string;
  readonly text: string;
  readonly lines: readonly string[];
  readonly program: Program;
  readonly comments: readonly Comment[];
}

export interface Comment {
  readonly start: number;
  readonly end: number;
}

export function readSource(root: string, ...patterns: readonly string[]): readonly SourceFile[] {
  return globSync([...patterns], { cwd: root })
    .sort()
    .map((path) => {
      const text = readFileSync(join(root, path), 'utf8');
      const { program, comments } = parseSync(path, text);
      return { path, text, lines: text.replace(/\n$/, '').split('\n'), program, comments };
    });
}
