/** The parts of a request that the routes of one record read. Not a route. */
import type { Context } from 'koa';
import type { OperationParameter } from '../../describe/operation.ts';
import { notFoundProblem } from '../../http/gate.ts';
import { parseUuid } from '../../policy/values.ts';

/** Text that is not a UUID identifies no record. */
export function idOf(ctx: Context): string {
  const id = parseUuid(ctx.params.id as string);
  if (id === undefined) throw notFoundProblem();
  return id;
}

export function headerOf(ctx: Context, name: string): string | undefined {
  const value = ctx.get(name);
  return value === '' ? undefined : value;
}

export const ifMatchParameter: OperationParameter = {
  name: 'If-Match',
  in: 'header',
  description: '`*`, or the ETags that the record may have. Any other version is `changed`.',
  schema: { type: 'string', pattern: '^(\\*|"[^"]+"( *, *"[^"]+")*)$' },
};

export const ifNoneMatchParameter: OperationParameter = {
  name: 'If-None-Match',
  in: 'header',
  description: '`*`, or the ETags that you have. The response is 304 where one of them is current.',
  schema: { type: 'string' },
};
