/** What the routes for one record read of a request. Not a route. */
import type { Context } from 'koa';

import type { App } from '../../http/app.ts';
import { callerOf, notFound } from '../../http/gate.ts';
import { queryOf } from '../../http/query.ts';
import { parseUuid } from '../../policy/values.ts';
import type { Fault } from '../../problem.ts';
import type { Collection } from '../../schema/model.ts';
import { clientOf } from '../auth/answer.ts';
import { readExpand } from './expand.ts';
import { throwFaults } from './list-query.ts';

/** Text that is not a UUID identifies no record. */
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

/** Sessions remember their users for under a second; every node forgets now, and the audit trail names who did it. What cannot be told ends by itself as fast. */
export async function announceUserChange(ctx: Context, app: App, id: string): Promise<void> {
  const by = { caller: callerOf(ctx), client: clientOf(ctx, app) };
  await app.auth
    .userChanged(id, by)
    .catch((error: unknown) => app.log.error({ err: error }, 'a change of a user was not told'));
}
