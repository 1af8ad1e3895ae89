/** Errors and warnings about a schema file, each at its place. */
export type DocumentPath = readonly (string | number)[];

/** 1-based, in UTF-16 units; the end is exclusive. */
export interface Region {
  readonly line: number;
  readonly column: number;
  readonly end_line: number;
  readonly end_column: number;
}

/**
 * `code` is lower snake case and never changes; `message` is lower case, without a full stop, and
 * names what was found, what was expected and the nearest name. `path` is, for example,
 * `collections.posts.access.list[1].when`. `fix` replaces a region of the file.
 */
export interface SchemaIssue extends Region {
  readonly code: string;
  /** Only `bylaw check --growth` gives notes. */
  readonly severity: 'error' | 'warning' | 'note';
  readonly message: string;
  readonly file: string;
  readonly path: string;
  readonly fix?: Region & { readonly replacement: string };
}

/** The result of a check; `SourceText` adds the place. `at` is the side of `key: value` that is meant. */
export interface Finding {
  readonly code: string;
  readonly message: string;
  readonly path: DocumentPath;
  readonly at?: 'key' | 'value';
  readonly severity?: 'error' | 'warning' | 'note';
  /** Text that replaces what is underlined. */
  readonly replacement?: string | undefined;
}
/** Returns undefined, so that a reader can report an error in place of a value. */
export type Report = (finding: Finding) => undefined;

/** YAML took the rest of a policy for a comment: what is left must not be compiled. */
export const cutByComment = (path: DocumentPath): Finding => ({
  code: 'yaml_comment',
  message: 'YAML reads ` #` as the start of a comment, so the policy ends there; put the whole policy in quotes',
  path,
});

const PLAIN_KEY = /^[A-Za-z_][A-Za-z0-9_]*$/;

export function pathText(path: DocumentPath): string {
  let text = '';
  for (const key of path) {
    if (typeof key === 'number') text += `[${key}]`;
    else if (!PLAIN_KEY.test(key)) text += `[${JSON.stringify(key)}]`;
    else text += text === '' ? key : `.${key}`;
  }
  return text;
}

/** The message, the line of the file, and a caret under every character of the region. */
export function underlineIssue(text: string, issue: SchemaIssue): string {
  const source = text.split('\n')[issue.line - 1]?.replace(/\r$/, '') ?? '';
  const end = issue.end_line === issue.line ? issue.end_column : source.length + 1;
  const carets = '^'.repeat(Math.max(1, end - issue.column));
  const margin = String(issue.line);
  const blank = ' '.repeat(margin.length);
  return [
    `${issue.severity}[${issue.code}]: ${issue.message}`,
    `${blank}--> ${issue.file}:${issue.line}:${issue.column}${issue.path === '' ? '' : ` (${issue.path})`}`,
    `${margin} | ${source}`,
    `${blank} | ${source.slice(0, issue.column - 1).replaceAll(/[^\t]/g, ' ')}${carets}`,
    ...(issue.fix === undefined ? [] : [`${blank} = fix: ${issue.fix.replacement}`]),
  ].join('\n');
}
