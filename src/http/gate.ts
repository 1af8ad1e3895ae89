/**
 * The one gate. Every request enters through it: who is asking, whether the address exists, and what the rules of the door leave.
 * A handler gets an `Ask`, without which the store does nothing, from `admissionOf(ctx)` only, and that only stands where this gate put it.
 * The order: 401 · unknown collection 404 · 405 · the caller's side 403; all of it before a byte of the body is read.
 */
import type { Context } from 'koa';
import type { Caller } from '../auth/contract.ts';
import { decide, type Permit } from '../policy/access.ts';
import { optimistic } from '../policy/analyse/optimistic.ts';
import type { Action, PolicyRequest } from '../policy/types.ts';
import { parseUuid } from '../policy/values.ts';
import { Problem } from '../problem.ts';
import type { Collection } from '../schema/model.ts';
import type { AccessContext } from '../store/records/access-context.ts';
import { mayAssignSome } from '../store/records/roles.ts';
import type { App } from './app.ts';
import { credentialsOf } from './credentials.ts';
import { checkOrigin } from './origins.ts';
import { allowEmbedding } from './protective-headers.ts';
import { policyQueryOf, queryOf } from './query.ts';
import type { Door, Route } from './route.ts';
import { allowOf, type Match } from './route-table.ts';

export interface Exchange {
  readonly ctx: Context;
  readonly app: App;
  readonly match: Match;
}

/** What a door that names an action lets a handler ask. */
export interface Admission {
  readonly caller: Caller;
  readonly collection: Collection;
  /** `data`: of the body, where the action has one. Throws `forbidden` where the body decides against the caller. */
  ask(data?: Readonly<Record<string, unknown>>): AccessContext;
}

/** Returns the route that may be handled now. Throws every refusal. */
export async function authorize(arrival: Exchange): Promise<Route> {
  const { ctx, app, match } = arrival;
  const door = doorOf(match);
  const caller = await callerAt(door, arrival);
  if (caller?.by === 'cookie') checkOrigin(ctx, { origins: app.schema.origins, baseUrl: app.config.baseUrl });
  ctx.state.caller = caller;
  // What a caller sees is for that caller; a handler that knows better says so.
  if (caller !== undefined) ctx.set('Cache-Control', 'private, no-cache');
  const collection = collectionAt(door, arrival);
  const route = routeFor(collection, match);
  if (typeof route.door === 'object') {
    if (caller === undefined || collection === undefined) throw notFound();
    ctx.state.admission = admit(arrival, { caller, collection, action: route.door.action });
  }
  return route;
}

export function admissionOf(ctx: Context): Admission {
  const admission = ctx.state.admission as Admission | undefined;
  if (admission === undefined) throw new Error('the door of this route names no action');
  return admission;
}

/** Of a route whose door is `session` or an action. */
export function callerOf(ctx: Context): Caller {
  const caller = optionalCallerOf(ctx);
  if (caller === undefined) throw new Error('the door of this route asks for no caller');
  return caller;
}

export const optionalCallerOf = (ctx: Context): Caller | undefined => ctx.state.caller as Caller | undefined;

/** Of an address without a route: nobody learns what exists under /api without a credential. */
function doorOf({ route, path }: Match): Door {
  if (route !== undefined) return route.door;
  return path.startsWith('/api/') && !path.startsWith('/api/auth/') ? 'session' : 'public';
}

async function callerAt(door: Door, { ctx, app, match }: Exchange): Promise<Caller | undefined> {
  if (door === 'public') return undefined;
  const token =
    typeof door === 'object' && door.link === true ? queryOf(ctx).find(({ key }) => key === 'token')?.value : undefined;
  if (token !== undefined) {
    const session = app.files.links.read(token, parseUuid(match.params.id ?? '') ?? '');
    allowEmbedding(ctx);
    return app.auth.callerOfSession(session);
  }
  try {
    return await app.auth.authenticate(credentialsOf(ctx));
  } catch (error) {
    if (door === 'optional' && error instanceof Problem && error.status === 401) return undefined;
    throw error;
  }
}

function collectionAt(door: Door, { app, match }: Exchange): Collection | undefined {
  const fixed = typeof door === 'object' ? door.collection : undefined;
  const name = fixed ?? match.params.collection;
  if (name === undefined) return undefined;
  const collection = app.schema.collections.get(name);
  if (collection === undefined) throw notFound();
  return collection;
}

/** Users are made by registering and files by uploading: the general route for creating is not theirs. */
function routeFor(collection: Collection | undefined, { route, candidates }: Match): Route {
  const isOpen = (candidate: Route): boolean =>
    collection === undefined || collection.kind === 'plain' || !isGeneralCreate(candidate);
  if (route !== undefined && isOpen(route)) return route;
  const open = candidates.filter(isOpen);
  if (open.length === 0) throw notFound();
  throw new Problem('method_not_allowed', 'this address does not take that method', {
    headers: { Allow: allowOf(open) },
  });
}

const isGeneralCreate = ({ door }: Route): boolean =>
  typeof door === 'object' && door.action === 'create' && door.collection === undefined;

interface Who {
  readonly caller: Caller;
  readonly collection: Collection;
  readonly action: Action;
}

function admit({ ctx, app }: Exchange, { caller, collection, action }: Who): Admission {
  const request: PolicyRequest = { auth: caller.auth, query: policyQueryOf(queryOf(ctx)), now: nowMicros() };
  const rules = collection.access[action];
  const known = new Map<string, Permit>();
  const permitOf = (name: string, which: Action): Permit => {
    const key = `${which} ${name}`;
    const permit = known.get(key) ?? decide({ rules: rulesOf(app, name, which), request });
    known.set(key, permit);
    return permit;
  };
  // Rules that read the body are decided with it; before it comes, only those are refused whom no body would help.
  const best = rules.map((rule) => optimistic(rule, app.schema));
  const waitsForBody = best.some((rule, i) => rule !== rules[i]);
  const plain: AccessContext = { collection, permit: permitOf, auth: caller.auth, now: request.now };
  // Giving and taking roles needs no update rule, and whether roles are all that is asked for is in the body.
  const mayHoldRoles = collection.kind === 'users' && action === 'update' && mayAssignSome(app.schema, plain);
  if (!mayHoldRoles) checkVerdict(waitsForBody ? decide({ rules: best, request }) : permitOf(collection.name, action));
  return {
    caller,
    collection,
    ask(data) {
      const own = waitsForBody
        ? decide({ rules, request: { ...request, data: data ?? {} } })
        : permitOf(collection.name, action);
      if (!mayHoldRoles) checkVerdict(own);
      return {
        ...plain,
        permit: (name, which) => (name === collection.name && which === action ? own : permitOf(name, which)),
      };
    },
  };
}

function rulesOf(app: App, name: string, action: Action) {
  return app.schema.collections.get(name)?.access[action] ?? [];
}

function checkVerdict(permit: Permit): void {
  if (permit.verdict === 'deny') throw forbidden();
}

export const forbidden = (): Problem => new Problem('forbidden', 'the access rules do not allow this');
export const notFound = (): Problem => new Problem('not_found', 'there is nothing here, or nothing that you may see');

function nowMicros(): string {
  return new Date().toISOString().replace('Z', '000Z');
}
