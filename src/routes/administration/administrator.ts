/** The administrator of a request. Not a route. */
import type { Context } from 'koa';
import type { Administrator } from '../../auth/auth.ts';
import { callerOf } from '../../http/gate.ts';
import { clientOf } from '../../http/request.ts';

export const administratorOf = (ctx: Context): Administrator => ({ caller: callerOf(ctx), client: clientOf(ctx) });
