/** How a fragment goes over the wire: a bounded set of names for prepared statements, and parameters as text. */
import { createHash } from 'node:crypto';
import type { QueryArrayConfig } from 'pg';
import type { Param, Sql } from '../sql.ts';

/** Each costs PostgreSQL memory on every connection. What comes after is sent unnamed, which is correct and a little slower. */
const MAX_NAMES = 1_000;
const MAX_SEEN = 10_000;

const names = new Map<string, string>();
let seen = new Set<string>();

/** A text gets a name with its second use, so that odd shapes of a stranger's requests take no place. */
function nameOf(text: string): string | undefined {
  const known = names.get(text);
  if (known !== undefined || names.size >= MAX_NAMES) return known;
  if (!seen.has(text)) {
    if (seen.size >= MAX_SEEN) seen = new Set();
    seen.add(text);
    return undefined;
  }
  seen.delete(text);
  const name = `b${createHash('sha256').update(text).digest('base64url').slice(0, 20)}`;
  names.set(text, name);
  return name;
}

const IDENTITY = (text: string): string => text;
export const TEXT_CELLS = { getTypeParser: () => IDENTITY } as unknown as NonNullable<QueryArrayConfig['types']>;

/** jsonb: text is taken as JSON text, anything else is written as JSON. */
function encode({ type, value }: Param): unknown {
  if (type !== 'jsonb' || value === null || value === undefined || typeof value === 'string') return value;
  return JSON.stringify(value);
}

export function toQuery(statement: Sql): QueryArrayConfig<unknown[]> {
  const { text } = statement;
  const name = nameOf(text);
  const values = statement.params.map(encode);
  return name === undefined ? { text, values, rowMode: 'array' } : { text, name, values, rowMode: 'array' };
}
