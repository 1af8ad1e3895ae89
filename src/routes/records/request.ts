/** What the routes for one record read of a request. Not a route. */
import type { Context } from 'koa';

import type { Auth } from '../../auth/auth.ts';
import { queryOf } from '../../http/query.ts';
import { parseUuid } from '../../policy/values.ts';
import type { Fault } from '../../problem.ts';
import type { Collection } from '../../schema/model.ts';
import { notFound } from '../../store/ask.ts';
import { readExpand } from './expand.ts';
import { throwFaults } from './list-query.ts';

/** What is no UUID is the identifier of nothing. */
export function idOf(ctx: Context): string {
  const id = parseUuid(ctx.params.id as string);
  if (id === undefined) throw notFound();
  return id;
}

export function expandOf(ctx: Context, collection: Collection): readonly string[] {
  const faults: Fault[] = [];
  const names = readExpand(queryOf(ctx), { collection, faults });
  throwFaults(faults);
  return names;
}

export function headerOf(ctx: Context, name: string): string | undefined {
  const value = ctx.get(name);
  return value === '' ? undefined : value;
}

/** Sessions remember their users for under a second; every node forgets now. What cannot be told ends by itself as fast. */
export async function tellUserChanged(auth: Auth, id: string): Promise<void> {
  await auth.userChanged(id).catch(() => undefined);
}
