/**
 * The words with `@` in the filter of a query: `@me`, `@now` and `@today`. Other words get an error that proposes a
 * spelling.
 */
import { type PolicyIssue, replacing } from './policy-error.ts';
import type { Dialect, Name, Span } from './syntax.ts';

/** The caller's id. */
export const ME = '@me';

/** An example of a policy, as it is written in the dialect. */
export const inDialect = (example: string, dialect: Dialect): string =>
  dialect === 'policy' ? example : example.replaceAll('@request.auth.id', ME).replaceAll('@record.', '');

/** Reports the root of a path that is not `@me`. `names`: the names between its dots. */
export function filterIssue(names: readonly Name[], span: Span): Omit<PolicyIssue, 'severity'> {
  const [root, ...rest] = names.map(({ name }) => name);
  const instead = (message: string, replacement: string) => ({
    code: 'path_unknown',
    message: `${message}; expected \`${replacement}\``,
    span,
    ...replacing(span, replacement),
  });
  if (root === ME) return instead("`@me` is the caller's id and has no parts", ME);
  if (root === '@record' && rest.length > 0)
    return instead('`@record` in a filter, where a name alone is a member of the record', rest.join('.'));
  if (root === '@request' && rest[0] === 'auth')
    return rest[1] === 'id' && rest.length === 2
      ? instead("`@request` in a filter, where `@me` is the caller's id", ME)
      : unknown('`@request.auth` in a filter, which knows the caller by `@me`, the id', span);
  if (root === '@request' && rest.length === 2)
    return instead('`@request` in a filter, whose values come as params', `$${rest[1]}`);
  return unknown(`unknown path \`${[root, ...rest].join('.').slice(0, 64)}\``, span);
}

const unknown = (message: string, span: Span): Omit<PolicyIssue, 'severity'> => ({
  code: 'path_unknown',
  message: `${message}; expected a member of the record, a \`$name\` of the params, \`@me\`, \`@now\` or \`@today\``,
  span,
});
