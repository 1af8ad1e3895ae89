/** Reads the query parameters of routes that take a few of their own. Not a route. */
import type { Context } from 'koa';
import type { OperationParameter } from '../describe/operation.ts';
import { queryOf } from '../http/request.ts';
import { parseInt53 } from '../policy/values.ts';
import { echo, problemOfError } from '../problem.ts';

export interface ParameterReader<T = string | number> {
  /** Undefined: the text is not such a value. */
  readonly read: (text: string) => T | undefined;
  /** Such as `the id of a user`. */
  readonly expected: string;
}

export const intParameter = (most: number): ParameterReader<number> => ({
  read: (text) => {
    const value = parseInt53(text);
    return value !== undefined && value >= 1 && value <= most ? value : undefined;
  },
  expected: `an int from 1 to ${most}`,
});

interface LimitBounds {
  readonly most: number;
  /** The default. */
  readonly otherwise: number;
}

export const limitParameter = (description: string, { most, otherwise }: LimitBounds): OperationParameter => ({
  name: 'limit',
  in: 'query',
  description,
  schema: { type: 'integer', minimum: 1, maximum: most, default: otherwise },
});

type ValuesOf<R> = { readonly [Name in keyof R]?: R[Name] extends ParameterReader<infer T> ? T : never };

/** Throws `invalid_parameter` for a parameter that is unknown, repeated or unreadable. */
export function parametersOf<const R extends Readonly<Record<string, ParameterReader>>>(
  ctx: Context,
  readers: R,
): ValuesOf<R> {
  const found: Record<string, string | number> = {};
  for (const { key, value } of queryOf(ctx)) {
    const reader = Object.hasOwn(readers, key) ? readers[key] : undefined;
    const isRepeated = Object.hasOwn(found, key);
    const parsed = value === undefined || isRepeated ? undefined : reader?.read(value);
    if (parsed === undefined) {
      const expected = reader?.expected ?? `one of ${Object.keys(readers).join(', ')}`;
      const detail = isRepeated ? `\`${key}\` is given twice` : `\`${echo(key)}\`: expected ${expected}`;
      throw problemOfError('invalid_parameter', { parameter: echo(key), code: 'invalid_parameter', detail });
    }
    found[key] = parsed;
  }
  return found as ValuesOf<R>;
}
