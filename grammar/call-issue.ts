/** Describes a syntax error in `name(…)`, where the language has no such function or the arguments do not fit. */
import { inDialect } from './filter-roots.ts';
import { nearest } from './suggest.ts';
import type { Dialect } from './syntax.ts';
import * as t from './tokens.ts';
import {
  describe,
  foundSpan,
  type Given,
  lastOpen,
  tokenAt,
  type UnexpectedToken,
  unclosed,
  withFix,
} from './unexpected-token.ts';

/** Our names for functions of other languages. Others are suggested under their own name. */
const FOREIGN_QUANTIFIERS: ReadonlyMap<string, string> = new Map([
  ['exists', 'any'],
  ['some', 'any'],
  ['every', 'all'],
  ['each', 'all'],
  ['no', 'none'],
]);
/** Functions without arguments, as a whole. */
const VALUE_OF_CALL: ReadonlyMap<string, string> = new Map([
  ['now', '@now'],
  ['current_timestamp', '@now'],
  ['today', '@today'],
  ['current_date', '@today'],
  ['auth.uid', '@request.auth.id'],
  ['current_user', '@request.auth.id'],
  ['auth.email', '@request.auth.email'],
]);

/** Functions that a condition over paths replaces. */
const CALL_ADVICE: ReadonlyMap<string, string> = new Map([
  ['auth.jwt', 'the roles of the caller are `@request.auth.roles`, and what else a claim holds is a field of `users`'],
  ['auth.role', 'the roles of the caller are `@request.auth.roles`'],
  ...['lower', 'upper'].map((name) => [name, 'a field with `lower: true` is stored in lower case'] as const),
]);

/** A filter knows only the caller's id. */
function valueNamed(written: string, dialect: Dialect): string | undefined {
  const value = inDialect(VALUE_OF_CALL.get(written) ?? '', dialect);
  return value === '' || (dialect === 'filter' && value.startsWith('@request')) ? undefined : value;
}

/** The name of a function, at `at`, that the language does not have. */
export function unknownFunction({ tokens, dialect }: UnexpectedToken, at: number): Given {
  const name = tokenAt(tokens, at);
  const written = name.image.toLowerCase();
  const code = 'function_unknown';
  const value = valueNamed(written, dialect);
  const close = tokens[at + 2];
  if (value !== undefined && close?.tokenType === t.Close) {
    const span = { start: name.startOffset, end: t.spanOf(close).end };
    const message = `\`${name.image}()\` is not a function of the language; expected \`${value}\``;
    return withFix({ code, message, span }, { span, replacement: value });
  }
  const span = t.spanOf(name);
  const right = FOREIGN_QUANTIFIERS.get(written) ?? nearest(name.image, t.QUANTIFIERS);
  const names = t.FUNCTION_NAMES[dialect].map((each) => `\`${each}\``);
  const expected =
    dialect === 'policy'
      ? `${names.join(', ')} or a named condition`
      : `${names.slice(0, -1).join(', ')} or ${names.at(-1)}`;
  const advice = dialect === 'policy' ? CALL_ADVICE.get(written) : undefined;
  const message = `\`${name.image}(…)\` is not a function of the language; ${advice ?? `expected ${expected}`}`;
  return withFix({ code, message, span }, right === undefined ? undefined : { span, replacement: right });
}

/** `@record.tags.any(t, t.label = "x")`: a quantifier as a function of its path, whose last name is at `at`. */
export function quantifierOfPath({ tokens }: UnexpectedToken, at: number): Given | undefined {
  const name = tokenAt(tokens, at);
  const dot = name.image.lastIndexOf('.');
  const written = name.image.slice(dot + 1).toLowerCase();
  const quantifier = FOREIGN_QUANTIFIERS.get(written) ?? t.QUANTIFIERS.find((each) => each === written);
  if (dot < 1 || quantifier === undefined) return undefined;
  const path = name.image.slice(0, dot);
  const message = `a path has no functions; a quantifier is \`${quantifier}(${path.slice(0, 40)} as x, …)\``;
  const { start, end } = t.spanOf(name);
  const given = { code: 'function_unknown', message, span: { start: start + dot + 1, end } };
  const [variable, after] = [tokens[at + 2], tokens[at + 3]];
  const isHead = variable?.tokenType === t.Word && after?.tokenType === t.Comma;
  if (!isHead || variable.image.includes('.')) return given;
  const replacement = `${quantifier}(${path} as ${variable.image},`;
  return withFix(given, { span: { start, end: t.spanOf(after).end }, replacement }, `${quantifier}(${path} as …)`);
}

/** Reports an error between the parentheses of `name(…)`. */
export function callHead(found: UnexpectedToken): Given | undefined {
  const { tokens, at } = found;
  const open = lastOpen(found);
  if (open === undefined) return undefined;
  const name = tokens.indexOf(open) - 1;
  if (tokens[name]?.tokenType !== t.CallName) return undefined;
  const token = tokens[at];
  // `exists(path as x, …)`: a quantifier by another name.
  if (token?.tokenType === t.As || FOREIGN_QUANTIFIERS.has(tokens[name].image.toLowerCase()))
    return unknownFunction(found, name);
  if (token === undefined) return unclosed(found, open);
  const message = `found ${describe(token)} in \`${tokens[name].image}(…)\`; expected a path or a literal for each parameter, then \`,\` or \`)\``;
  return { code: 'arguments_malformed', message, span: t.spanOf(token) };
}

/** Reports an error between the parentheses of `ancestors(<path> by <belongs_to>)`. */
export function ancestorsHead(found: UnexpectedToken): Given | undefined {
  const { tokens, at } = found;
  const open = lastOpen(found);
  const head = open === undefined ? -1 : tokens.indexOf(open) - 1;
  if (tokens[head]?.tokenType !== t.Ancestors) return undefined;
  const what = ['a path', '`by` and a belongs_to', 'the name of a belongs_to'][at - head - 2] ?? '`)`';
  const example = inDialect('ancestors(@record.folder by parent)', found.dialect);
  const message = `found ${describe(tokens[at])}, expected ${what}; write \`${example}\``;
  return { code: 'ancestors_malformed', message, span: foundSpan(found) };
}
