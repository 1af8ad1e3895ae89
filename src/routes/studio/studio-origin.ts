/** The origins at which the studio answers. Not a route. */
import type { Context } from 'koa';
import type { Schema } from '../../schema/model/model.ts';

/** The Host header decides, as elsewhere. A proxy may speak https for the service, so the scheme is taken as listed. */
export function hasStudio(ctx: Context, { studio }: Pick<Schema, 'studio'>): boolean {
  const host = ctx.get('Host');
  return studio.origins?.some((origin) => isOfHost(origin, host)) ?? true;
}

function isOfHost(origin: string, host: string): boolean {
  const url = `${new URL(origin).protocol}//${host}`;
  return URL.canParse(url) && new URL(url).origin === origin;
}
