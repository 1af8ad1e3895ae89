/**
 * The one gate. Every request enters through it: it finds the caller, the route, and whether the
 * rules can allow the action at all. The records room does nothing without an `AccessContext`, and
 * only an admission, which only this gate makes, gives one to a handler. The order: 401 ·
 * unknown collection 404 · 405 · the caller's side 403; all of it before a byte of the body is
 * read.
 */
import type { Context } from 'koa';
import type { Caller } from '../auth/caller.ts';
import { decide, type Permit } from '../policy/access.ts';
import { optimistic } from '../policy/analyse/optimistic.ts';
import { updateBoundsOf } from '../policy/analyse/update-bounds.ts';
import type { Action, Policy, PolicyRequest } from '../policy/types.ts';
import { datetimeOf, parseUuid } from '../policy/values.ts';
import { type ErrorDetail, Problem } from '../problem.ts';
import type { AccessContext, Prospect } from '../records/access-context.ts';
import { asksForRoles, asksForRolesAlone, mayAssignSome } from '../records/write/role-changes.ts';
import type { Collection, MemberAction, Schema } from '../schema/model/model.ts';
import type { App } from './app.ts';
import { clientOf, credentialsOf, policyQueryOf, type QueryPair, queryOf } from './request.ts';
import type { Door, Route } from './route.ts';
import { allowOf, type Match } from './route-table.ts';
import { allowEmbedding, checkOrigin } from './server/browser-security.ts';

/** State that the stages of a request pass on. */
declare module 'koa' {
  interface DefaultState {
    requestId: string;
    /** The client's address. */
    address: string;
    caller: Caller | undefined;
    admission: Admission | undefined;
    collection: Collection | undefined;
    route: Route | undefined;
    query: readonly QueryPair[] | undefined;
    bodyBytes: Uint8Array;
  }
}

export interface Exchange {
  readonly ctx: Context;
  readonly app: App;
  readonly match: Match;
}

/** Returns the route whose handler may run now, or throws the problem. */
export async function authorize(exchange: Exchange): Promise<Route> {
  const { ctx, app, match } = exchange;
  const door = doorOf(match);
  const known = callerAt(door, exchange);
  const caller = known instanceof Promise ? await known : known;
  if (caller?.by === 'cookie' || match.route?.ownSite) checkOrigin(ctx, app);
  ctx.state.caller = caller;
  if (caller !== undefined) {
    app.inFlight.enter(caller.id, ctx.res);
    // A response is private to its caller, unless the handler sets another header.
    ctx.res.setHeader('Cache-Control', 'private, no-cache');
  }
  const collection = collectionAt(door, exchange);
  ctx.state.collection = collection;
  const route = routeFor(collection, match);
  if (typeof route.door === 'object') {
    if (caller === undefined || collection === undefined) throw notFoundProblem();
    ctx.state.admission = new Admission(ctx, app.schema, { caller, collection, action: route.door.action });
  }
  return route;
}

/** Admits one request to an action of a collection, or throws `forbidden`. */
export type Admit = (collection: Collection, action: Action) => Admission;

/**
 * Serves routes whose body names collections and actions: each is admitted like a request of its own,
 * all at one instant.
 */
export function admitOf(ctx: Context, { schema }: App): Admit {
  const caller = callerOf(ctx);
  const request = policyRequestOf(ctx, caller);
  return (collection, action) => new Admission(ctx, schema, { caller, collection, action }, request);
}

/** Requires a route whose door is an action. */
export function admissionOf(ctx: Context): Admission {
  const admission = ctx.state.admission;
  if (admission === undefined) throw new Error('the door of this route names no action');
  return admission;
}

/** Requires a route whose path names a collection. */
export function requestedCollection(ctx: Context): Collection {
  const collection = ctx.state.collection;
  if (collection === undefined) throw new Error('the path of this route names no collection');
  return collection;
}

/** Requires a route whose door is `session` or an action. */
export function callerOf(ctx: Context): Caller {
  const caller: Caller | undefined = ctx.state.caller;
  if (caller === undefined) throw new Error('the door of this route does not require a caller');
  return caller;
}

/** Unknown paths have a door too: without a credential, no response reveals which paths under /api exist. */
function doorOf({ route, path }: Match): Door {
  if (route !== undefined) return route.door;
  return path.startsWith('/api/') && !path.startsWith('/api/auth/') ? 'session' : 'public';
}

/** Synchronous if the caller's session is remembered. */
function callerAt(door: Door, exchange: Exchange): Caller | undefined | Promise<Caller | undefined> {
  const { ctx, app, match } = exchange;
  if (door === 'public') return undefined;
  if (door === 'optional') return optionalCallerAt(exchange);
  const token = typeof door === 'object' && door.link ? tokenOf(ctx) : undefined;
  if (token !== undefined) {
    const session = app.files.links.read(token, parseUuid(match.params.id ?? '') ?? '');
    allowEmbedding(ctx);
    return app.auth.authenticator.callerOfSession(session);
  }
  return app.auth.authenticator.authenticate(credentialsOf(ctx));
}

async function optionalCallerAt({ ctx, app }: Exchange): Promise<Caller | undefined> {
  try {
    return await app.auth.authenticator.authenticate(credentialsOf(ctx));
  } catch (error) {
    if (error instanceof Problem && error.status === 401) return undefined;
    throw error;
  }
}

const tokenOf = (ctx: Context): string | undefined => queryOf(ctx).find(({ key }) => key === 'token')?.value;

function collectionAt(door: Door, { app, match }: Exchange): Collection | undefined {
  const fixed = typeof door === 'object' ? door.collection : undefined;
  const name = fixed ?? match.params.collection;
  if (name === undefined) return undefined;
  const collection = app.schema.collections.get(name);
  if (collection === undefined) throw notFoundProblem();
  return collection;
}

/** Throws `not_found` and `method_not_allowed`. */
function routeFor(collection: Collection | undefined, { route, candidates }: Match): Route {
  if (route !== undefined && isOffered(route, collection)) return route;
  const offered = candidates.filter((candidate) => isOffered(candidate.route, collection));
  if (offered.length === 0) throw notFoundProblem();
  throw new Problem('method_not_allowed', 'this address does not take that method', {
    headers: { Allow: allowOf(offered) },
  });
}

/** Some routes serve collections of one kind only. */
function isOffered({ door }: Route, collection: Collection | undefined): boolean {
  return typeof door !== 'object' || door.kind === undefined || door.kind === (collection?.kind ?? door.kind);
}

const policyRequestOf = (ctx: Context, { auth }: Caller): PolicyRequest => ({
  auth,
  query: policyQueryOf(queryOf(ctx)),
  now: datetimeOf(new Date()),
});

interface AdmissionRequest {
  readonly caller: Caller;
  readonly collection: Collection;
  readonly action: Action;
}

interface MemberOf {
  readonly name: string;
  readonly member: string;
  readonly action: MemberAction;
}

/** An admitted request's access to records. Made only if the caller's side leaves the action possible. */
export class Admission {
  readonly caller: Caller;
  readonly collection: Collection;
  readonly #ctx: Context;
  readonly #schema: Schema;
  readonly #action: Action;
  readonly #request: PolicyRequest;
  readonly #rules: readonly Policy[];
  /** True if rules read `@request.data`, so that the decision has to wait for it. */
  readonly #waitsForBody: boolean;
  /** Permits by the rules that they decide. */
  readonly #permits: Map<readonly Policy[], Permit>;
  /** Permits of members, whose rules may read the body, by action, collection and member. */
  readonly #memberPermits: Map<string, Permit>;

  /** Throws `forbidden` if no body could make a rule true. */
  constructor(
    ctx: Context,
    schema: Schema,
    { caller, collection, action }: AdmissionRequest,
    request: PolicyRequest = policyRequestOf(ctx, caller),
  ) {
    this.caller = caller;
    this.collection = collection;
    this.#ctx = ctx;
    this.#schema = schema;
    this.#action = action;
    this.#request = request;
    this.#rules = collection.access[action];
    this.#permits = new Map();
    this.#memberPermits = new Map();
    const best: Policy[] = [];
    let waitsForBody = false;
    for (const rule of this.#rules) {
      const possible = optimistic(rule, schema);
      if (possible !== rule) waitsForBody = true;
      best.push(possible);
    }
    this.#waitsForBody = waitsForBody;
    // Assigning roles needs no update rule, and only the body shows whether a request is about roles alone.
    if (this.#mayAssignRoles) return;
    const permit = waitsForBody ? decide({ rules: best, request }) : this.#permit(collection.name, action);
    if (permit.verdict === 'deny') throw forbiddenProblem();
  }

  /** `data`: of the body, if the action has one. Throws `forbidden` if it decides against the caller. */
  access(data: Readonly<Record<string, unknown>> = {}): AccessContext {
    const own = this.#waitsForBody
      ? decide({ rules: this.#rules, request: { ...this.#request, data } })
      : this.#permit(this.collection.name, this.#action);
    const isUserUpdate = this.collection.kind === 'users' && this.#action === 'update';
    if (isUserUpdate && asksForRoles(data) && !this.#mayAssignRoles) throw forbiddenProblem();
    if (own.verdict === 'deny' && !(isUserUpdate && asksForRolesAlone(data))) throw forbiddenProblem();
    return {
      collection: this.collection,
      auth: this.caller.auth,
      now: this.#request.now,
      origin: () => clientOf(this.#ctx),
      permit: (name, action) =>
        name === this.collection.name && action === this.#action ? own : this.#permit(name, action),
      member: (name, member, action) => this.#member({ name, member, action }, data),
      prospect: (rules) => this.#prospect(rules),
    };
  }

  /** `data`: the body of a write to the admitted collection. */
  #member({ name, member, action }: MemberOf, data: Readonly<Record<string, unknown>>): Permit | undefined {
    const rules = this.#schema.collections.get(name)?.memberAccess.get(member)?.[action];
    if (rules === undefined) return undefined;
    const key = `${action} ${name}.${member}`;
    const known = this.#memberPermits.get(key);
    if (known !== undefined) return known;
    const isOwnWrite = name === this.collection.name && action === this.#action;
    const request = isOwnWrite ? { ...this.#request, data } : this.#request;
    const permit = decide({ rules, request });
    this.#memberPermits.set(key, permit);
    return permit;
  }

  #prospect(rules: readonly Policy[]): Prospect {
    const updateBounds = rules.map((rule) => updateBoundsOf(rule, this.#schema));
    const request = this.#request;
    return {
      certain: decide({ rules: updateBounds.map(({ certain }) => certain), request }),
      possible: decide({ rules: updateBounds.map(({ possible }) => possible), request }),
    };
  }

  get #mayAssignRoles(): boolean {
    const { kind } = this.collection;
    return kind === 'users' && this.#action === 'update' && mayAssignSome(this.#schema, this.caller.auth);
  }

  #permit(name: string, action: Action): Permit {
    const rules = this.#schema.collections.get(name)?.access[action] ?? NO_RULES;
    let permit = this.#permits.get(rules);
    if (permit === undefined) {
      permit = decide({ rules, request: this.#request });
      this.#permits.set(rules, permit);
    }
    return permit;
  }
}

const NO_RULES: readonly Policy[] = [];

export const forbiddenProblem = (errors: readonly ErrorDetail[] = []): Problem =>
  new Problem('forbidden', 'the access rules do not allow this', { errors });
export const notFoundProblem = (): Problem =>
  new Problem('not_found', 'there is nothing here, or nothing that you may see');
