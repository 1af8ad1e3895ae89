/** Questions about the text of a policy. Shared by both policy exports. */
import { parse } from '../../grammar/parser.ts';
import { lineAndColumn, PolicyError, type PolicyIssue } from '../../grammar/policy-error.ts';
import { print } from '../../grammar/printer.ts';
import { examine } from '../policy/check/checker.ts';
import type { CatalogPlace } from '../policy/compile.ts';

/** An issue at its place: `line` and `column` count from 1, in UTF-16 units. */
export interface PlacedIssue extends PolicyIssue {
  readonly line: number;
  readonly column: number;
}

export const issuesAt = (text: string, place: CatalogPlace): readonly PlacedIssue[] =>
  examine(text, place).issues.map((issue) => ({ ...issue, ...lineAndColumn(text, issue.span.start) }));

/** The canonical form, without comments. Throws PolicyError where the text cannot be parsed. */
export function format(text: string): string {
  const { expr, issues } = parse(text);
  if (expr === undefined) throw new PolicyError(text, issues);
  return print(expr);
}

/** Throws TypeError for a collection that the catalog does not have. */
export function requireKnownCollection({ catalog, collection }: Pick<CatalogPlace, 'catalog' | 'collection'>): void {
  if (catalog.collections.has(collection)) return;
  throw new TypeError(
    `unknown collection ${JSON.stringify(collection)}; there are ${[...catalog.collections.keys()].join(', ')}`,
  );
}
