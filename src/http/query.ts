/** The query string as sent: in order, with repeated keys. */
import type { Context } from 'koa';

export interface QueryPair {
  readonly key: string;
  /** Undefined: the percent-encoding is not valid UTF-8. */
  readonly value: string | undefined;
}

export function queryOf(ctx: Context): readonly QueryPair[] {
  ctx.state.query ??= readQuery(ctx.querystring);
  return ctx.state.query;
}

const NO_PAIRS: readonly QueryPair[] = [];

/** The encoding of HTML forms: `+` is a space. */
function readQuery(text: string): readonly QueryPair[] {
  if (text === '') return NO_PAIRS;
  return text
    .split('&')
    .filter((part) => part !== '')
    .map((part) => {
      const at = part.indexOf('=');
      const [key, value] = at === -1 ? [part, ''] : [part.slice(0, at), part.slice(at + 1)];
      return { key: decodeComponent(key) ?? key, value: decodeComponent(value) };
    });
}

function decodeComponent(text: string): string | undefined {
  try {
    return decodeURIComponent(text.replaceAll('+', ' '));
  } catch {
    return undefined;
  }
}

const NO_QUERY = Object.freeze(Object.create(null));

/** The query as policies see it: one value is a string, several are a list, an undecodable one is null. */
export function policyQueryOf(pairs: readonly QueryPair[]): Readonly<Record<string, string | readonly string[]>> {
  if (pairs.length === 0) return NO_QUERY;
  const query: Record<string, string | string[]> = Object.create(null);
  for (const { key, value } of pairs) {
    if (value === undefined) continue;
    const before = query[key];
    if (before === undefined) query[key] = value;
    else if (typeof before === 'string') query[key] = [before, value];
    else before.push(value);
  }
  return query;
}
