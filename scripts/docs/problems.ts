/** The table of error codes. */
import { PROBLEMS } from '../../src/problem.ts';
import { markdownTable } from './markdown.ts';

export const problemsTable = (): string =>
  markdownTable(
    ['status', 'code', 'title'],
    Object.entries(PROBLEMS).map(([code, { status, title }]) => [String(status), `\`${code}\``, title]),
  );
