/**
 * The one gate. Every request enters through it: it finds the caller, the route, and whether the
 * rules can allow the action at all. The records room does nothing without an `AccessContext`, and
 * only an admission, which only this gate makes, gives one to a handler. The order: 401 ·
 * unknown collection 404 · 405 · the caller's side 403; all of it before a byte of the body is
 * read.
 */
import type { Context } from 'koa';
import type { KeyBounds } from '../auth/api-keys/key-bounds.ts';
import type { Caller } from '../auth/caller.ts';
import { networkOf } from '../auth/limits/network.ts';
import { decide, type Permit } from '../policy/access.ts';
import { updateBoundsOf } from '../policy/analyse/update-bounds.ts';
import type { Action, Policy, PolicyRequest } from '../policy/types.ts';
import { datetimeOf, parseUuid } from '../policy/values.ts';
import { type ErrorDetail, Problem } from '../problem.ts';
import type { AccessContext, Prospect } from '../records/access-context.ts';
import { asksForRoles, asksForRolesAlone, mayAssignSome } from '../records/write/role-changes.ts';
import { DENIED, Refusal } from '../refusal.ts';
import { keyKindOf } from '../schema/fields/index.ts';
import { formerSchemaOf } from '../schema/model/kept/former-schema.ts';
import { type Collection, type MemberAction, offers, type Schema } from '../schema/model/model.ts';
import type { App } from './app.ts';
import { denialMessage } from './denial-message.ts';
import { clientOf, credentialsOf, policyQueryOf, type QueryPair, queryOf } from './request.ts';
import type { ActionDoor, Door, Route } from './route.ts';
import { allowOf, type Match } from './route-table.ts';
import { allowEmbedding, allowReading, checkOrigin } from './server/browser-security.ts';

/** State that the stages of a request pass on. */
declare module 'koa' {
  interface DefaultState {
    requestId: string;
    address: string;
    caller: Caller | undefined;
    /** The caller's name in limits and queues. */
    share: string | undefined;
    admission: Admission | undefined;
    collection: Collection | undefined;
    route: Route | undefined;
    query: readonly QueryPair[] | undefined;
    /** The hash of the body, of a request with an idempotency key. */
    bodyHash: string;
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
  const door = match.route?.door ?? unknownPathDoor(match.path);
  const known = callerAt(door, exchange);
  const caller = known instanceof Promise ? await known : known;
  const isByCookie = caller?.by === 'cookie';
  if (isByCookie || match.route?.ownSite) checkOrigin(ctx, app, isByCookie);
  ctx.state.caller = caller;
  if (caller !== undefined) {
    if (caller.bounds !== undefined) checkBounds(ctx, caller.bounds);
    if (caller.isShared) allowReading(ctx);
    const share = caller.isShared ? `${caller.principal} ${networkOf(ctx.state.address)}` : caller.principal;
    ctx.state.share = share;
    if (match.route?.isStream !== true) app.inFlight.enter(share, ctx.res);
    // A response is private to its caller, unless the handler sets another header.
    ctx.res.setHeader('Cache-Control', 'private, no-cache');
  }
  const collection = collectionAt(door, exchange);
  ctx.state.collection = collection;
  const { route } = match;
  if (route === undefined || !isOffered(route, collection)) throw noRouteProblem(collection, match);
  if (caller !== undefined && typeof route.door === 'string') checkKind(route, caller);
  if (typeof route.door === 'object') {
    if (caller === undefined || collection === undefined) throw notFoundProblem();
    const { action, deleted } = route.door;
    const place = admittingRulesOf(route.door, app, collection);
    if (place === undefined) throw notFoundProblem();
    const asked = { caller, collection: place.collection, action };
    const request = new ReceivedRequest(ctx, caller);
    const admit = (of: Action) => new Admission(() => clientOf(ctx), place.schema, { ...asked, action: of }, request);
    try {
      ctx.state.admission = admit(action);
    } catch (error) {
      const isReadable = async () => deleted !== true && isReadableHere(exchange, collection, admit);
      throw (await toldProblem(asked, request, isReadable)) ?? error;
    }
  }
  return route;
}

/** The rules by which a door admits, and the collection that has them. Undefined: the collection has no deleted records. */
function admittingRulesOf(
  { deleted, former }: ActionDoor,
  app: App,
  collection: Collection,
): AdmittingRules | undefined {
  const { name } = collection;
  if (deleted === true) return app.deleted(name);
  if (former !== true) return { schema: app.schema, collection };
  const schema = formerSchemaOf(app.schema)(name);
  return { schema, collection: schema.collections.get(name)! };
}

interface AdmittingRules {
  readonly schema: Schema;
  readonly collection: Collection;
}

interface Denied {
  readonly caller: Caller;
  readonly collection: Collection;
  readonly action: Action;
}

/** The denial with the message of its rule, for a write of a record that the caller may read; undefined: untold. */
async function toldProblem(
  { caller: { bounds }, collection: { name, access }, action }: Denied,
  request: PolicyRequest,
  isReadable: () => Promise<boolean>,
): Promise<Problem | undefined> {
  if ((action !== 'update' && action !== 'delete') || bounds?.allows(name, action) === false) return undefined;
  const message = denialMessage(access[action], request);
  return message !== undefined && (await isReadable()) ? forbiddenProblem([], message) : undefined;
}

async function isReadableHere(
  { app, match }: Exchange,
  collection: Collection,
  admit: (action: Action) => Admission,
): Promise<boolean> {
  const id = keyKindOf(collection).fromQuery(match.params.id ?? '');
  if (id === undefined) return false;
  try {
    await app.records.read(admit('read').access(), { id: String(id), relations: [] });
    return true;
  } catch (error) {
    if (error instanceof Problem || error instanceof Refusal) return false;
    throw error;
  }
}

/** Admits one request to an action of a collection, or throws `forbidden`. */
export type Admit = (collection: Collection, action: Action) => Admission;

/**
 * Serves routes whose body names collections and actions: each is admitted like a request of its own,
 * all at one instant.
 *
 * @param method of the request that is asked about
 */
export function admitOf(ctx: Context, { schema }: App, method = ctx.req.method): Admit {
  const caller = callerOf(ctx);
  const request = new ReceivedRequest(ctx, caller, method);
  return (collection, action) => new Admission(() => clientOf(ctx), schema, { caller, collection, action }, request);
}

type ReceivedParts = Pick<PolicyRequest, 'query' | 'facts'>;

/** Returns what rules may read of the request besides its caller and its body. */
export function receivedFrom(ctx: Context): ReceivedParts {
  const { query, facts } = new ReceivedRequest(ctx, callerOf(ctx));
  return { query, facts };
}

/** Admits the caller of a stream again: at a later instant, and as it is then. */
export function renewalOf(
  ctx: Context,
  { schema }: App,
  { query, facts }: ReceivedParts,
): (caller: Caller, collection: Collection) => Admission {
  const client = clientOf(ctx);
  return (caller, collection) => {
    const request = { auth: caller.auth, kind: caller.kind, facts, query, now: datetimeOf(new Date()) };
    return new Admission(() => client, schema, { caller, collection, action: 'list' }, request);
  };
}

/** Admits an API key to a list that no request has asked for. Throws `forbidden`. */
export const admissionOfKey = (schema: Schema, caller: Caller, collection: Collection): Admission =>
  new Admission(
    undefined,
    schema,
    { caller, collection, action: 'list' },
    { auth: caller.auth, kind: caller.kind, query: {}, now: datetimeOf(new Date()) },
  );

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
const unknownPathDoor = (path: string): Door =>
  path.startsWith('/api/') && !path.startsWith('/api/auth/') ? 'caller' : 'public';

/** Throws `forbidden` for a caller of a kind that the door does not admit. */
function checkKind({ door, method }: Route, { kind, by, bounds, auth }: Caller): void {
  if (door === 'user' && kind !== 'user') {
    const who = by === 'key' ? 'an API key' : 'a guest';
    throw new Problem('forbidden', `this address is for signed-in users; ${who} cannot use it`);
  }
  if (door === 'session' && by === 'key') throw new Problem('forbidden', 'an API key has no session');
  if (door !== 'admin') return;
  if (!auth.roles.includes('admin')) throw new Problem('forbidden', 'this address is for the role `admin`');
  const action = method === 'GET' ? 'read' : 'update';
  if (by === 'key' && bounds?.administers(action) !== true) {
    const needed = `a key ${action}s accounts only if its \`limit\` has \`${action}\` for \`users\``;
    throw new Problem('forbidden', needed);
  }
}

/** Throws `forbidden`, `cross_origin` where the key may not be used. */
function checkBounds(ctx: Context, bounds: KeyBounds): void {
  if (!bounds.admitsAddress(ctx.state.address)) {
    throw new Problem('forbidden', 'this key may not be used from your address');
  }
  if (!bounds.admitsOrigin(ctx.req.headers.origin ?? '')) {
    throw new Problem('cross_origin', 'this key may be used by pages of its own origins only');
  }
}

/** Synchronous if the caller's session is remembered. */
function callerAt(door: Door, exchange: Exchange): Caller | undefined | Promise<Caller | undefined> {
  const { ctx, app, match } = exchange;
  if (door === 'public') return undefined;
  if (door === 'optional') return optionalCaller(ctx, app);
  const token = typeof door === 'object' && door.link ? tokenOf(ctx) : undefined;
  if (token !== undefined) {
    const session = app.files.links.read(token, parseUuid(match.params.id ?? '') ?? '');
    allowEmbedding(ctx);
    return app.auth.authenticator.callerOfLink(session);
  }
  return app.auth.authenticator.authenticate(credentialsOf(ctx));
}

/** The session of a guest who asks at a public address, such as that of a login. */
export async function guestAt(ctx: Context, app: App): Promise<string | undefined> {
  if (!app.schema.guests) return undefined;
  const caller = await optionalCaller(ctx, app);
  return caller?.kind === 'guest' && caller.by !== 'key' ? caller.principal : undefined;
}

async function optionalCaller(ctx: Context, app: App): Promise<Caller | undefined> {
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

/** The problem of a path that has no route of the method: `not_found` or `method_not_allowed`. */
function noRouteProblem(collection: Collection | undefined, { candidates }: Match): Problem {
  const offered = candidates.filter((route) => isOffered(route, collection));
  if (offered.length === 0) return notFoundProblem();
  return new Problem('method_not_allowed', 'the method is not allowed at this address', {
    headers: { Allow: allowOf(offered) },
  });
}

/** Some routes serve collections of one kind or feature only, and some views take no writes. */
const isOffered = ({ door }: Route, collection: Collection | undefined): boolean =>
  typeof door !== 'object' || (collection === undefined ? door.needs === undefined : offers(collection, door));

/** The request as its rules see it. Few of them name its query, whose values cost as much to collect as a small rule to decide. */
class ReceivedRequest implements PolicyRequest {
  readonly auth: PolicyRequest['auth'];
  readonly kind: PolicyRequest['kind'];
  readonly facts: PolicyRequest['facts'];
  readonly now: PolicyRequest['now'];
  readonly #pairs: readonly QueryPair[];
  #query: PolicyRequest['query'] | undefined;

  constructor(ctx: Context, { auth, kind }: Caller, method = ctx.req.method) {
    this.auth = auth;
    this.kind = kind;
    this.facts = { ip: ctx.state.address, method, origin: ctx.req.headers.origin };
    this.now = datetimeOf(new Date());
    this.#pairs = queryOf(ctx);
  }

  get query(): PolicyRequest['query'] {
    this.#query ??= policyQueryOf(this.#pairs);
    return this.#query;
  }
}

/** Describes the sender of the request to the hooks. */
type OriginReader = AccessContext['origin'];

interface AdmissionRequest {
  readonly caller: Caller;
  readonly collection: Collection;
  readonly action: Action;
}

/** An admitted request's access to records. Made only if the caller's side leaves the action possible. */
export class Admission {
  readonly caller: Caller;
  readonly collection: Collection;
  readonly #origin: OriginReader;
  readonly #schema: Schema;
  readonly #action: Action;
  readonly #request: PolicyRequest;
  readonly #rules: readonly Policy[];
  /** True if rules read `@request.data`, so that the decision has to wait for it. */
  readonly #waitsForBody: boolean;
  /** Assigning roles needs no update rule, and only the body shows whether a request is about roles alone. */
  readonly #mayAssignRoles: boolean;
  /** Permits by the rules that they decide, of records or of a member. */
  readonly #permits: Map<readonly Policy[], Permit>;

  /** Throws `forbidden` if no body could make a rule true. */
  constructor(
    origin: OriginReader,
    schema: Schema,
    { caller, collection, action }: AdmissionRequest,
    request: PolicyRequest,
  ) {
    const { bounds } = caller;
    const rules = bounds?.allows(collection.name, action) === false ? NO_RULES : collection.access[action];
    this.caller = caller;
    this.collection = collection;
    this.#origin = origin;
    this.#schema = schema;
    this.#action = action;
    this.#request = request;
    this.#rules = rules;
    this.#permits = new Map();
    this.#waitsForBody = rules.some(({ beforeBody }) => beforeBody !== undefined);
    // A key administers accounts only if its limit names them.
    const isAdministrator = caller.by !== 'key' || bounds?.administers(action) === true;
    this.#mayAssignRoles =
      action === 'update' && collection.kind === 'users' && isAdministrator && mayAssignSome(schema, caller.auth);
    if (this.#mayAssignRoles) return;
    const permit = this.#waitsForBody
      ? decide({ rules: rules.map((rule) => rule.beforeBody ?? rule), request })
      : this.#decided(rules, request);
    if (permit.verdict === 'deny') throw forbiddenProblem([], this.#messageWithoutRecord(request));
  }

  /** True if every body is allowed. */
  certainty(): true | 'depends' {
    const isCertain = !this.#waitsForBody && this.#decided(this.#rules, this.#request).verdict === 'allow';
    return isCertain || 'depends';
  }

  /** `data`: of the body, if the action has one. Throws `forbidden` if it decides against the caller. */
  access(data: Readonly<Record<string, unknown>> = {}): AccessContext {
    const { collections } = this.#schema;
    const { name: ownName, kind } = this.collection;
    const { bounds } = this.caller;
    const request = this.#request;
    // A spread leaves out what a class computes.
    const withData = (): PolicyRequest => ({ ...request, query: request.query, data });
    const own = this.#decided(this.#rules, this.#waitsForBody ? withData() : request);
    const isUserUpdate = kind === 'users' && this.#action === 'update';
    if (isUserUpdate && asksForRoles(data) && !this.#mayAssignRoles) throw forbiddenProblem();
    if (own.verdict === 'deny' && !(isUserUpdate && asksForRolesAlone(data)))
      throw forbiddenProblem([], this.#messageWithoutRecord(withData()));
    return {
      collection: this.collection,
      auth: this.caller.auth,
      kind: this.caller.kind,
      limit: bounds?.limitText,
      principal: this.caller.principal,
      now: request.now,
      origin: this.#origin,
      permit: (name, action) => {
        const isBeyond = bounds?.allows(name, action) === false;
        return this.#decided((isBeyond ? undefined : collections.get(name)?.access[action]) ?? NO_RULES, request);
      },
      member: (name, member, action) => {
        const rules = collections.get(name)?.memberAccess.get(member)?.[action];
        const isOwnWrite = name === ownName && action === this.#action;
        return rules && this.#decided(rules, isOwnWrite ? withData() : request);
      },
      denialMessage: (name, action, member) => {
        const isOwn = name === ownName && action === this.#action;
        if (member === undefined) return this.#denialMessage(name, action, isOwn ? withData() : request);
        const rules = collections.get(name)?.memberAccess.get(member)?.[action as MemberAction];
        return rules && denialMessage(rules, isOwn ? withData() : request);
      },
      violation: (name, { violated }, action) => {
        const isOwnWrite = name === ownName && action === this.#action;
        return this.#decided(violated[action], isOwnWrite ? withData() : request);
      },
      prospect: (rules) => this.#prospect(rules),
    };
  }

  /** An action on a record reports a message only once the caller is known to read it. */
  #messageWithoutRecord(request: PolicyRequest): string | undefined {
    const { name } = this.collection;
    const isOfRecord = this.#action !== 'create' && this.#action !== 'list';
    return isOfRecord ? undefined : this.#denialMessage(name, this.#action, request);
  }

  #denialMessage(collection: string, action: Action, request: PolicyRequest): string | undefined {
    const isBeyond = this.caller.bounds?.allows(collection, action) === false;
    return isBeyond
      ? undefined
      : denialMessage(this.#schema.collections.get(collection)?.access[action] ?? [], request);
  }

  #prospect(given: readonly Policy[]): Prospect {
    const rules = this.caller.bounds?.allows(this.collection.name, 'update') === false ? NO_RULES : given;
    const updateBounds = rules.map((rule) => updateBoundsOf(rule, this.#schema));
    const request = this.#request;
    return {
      certain: decide({ rules: updateBounds.map(({ certain }) => certain), request }),
      possible: decide({ rules: updateBounds.map(({ possible }) => possible), request }),
    };
  }

  /** Decides rules once: at the instant of the request, and with one body. */
  #decided(rules: readonly Policy[], request: PolicyRequest): Permit {
    let permit = this.#permits.get(rules);
    if (permit === undefined) {
      permit = decide({ rules, request });
      this.#permits.set(rules, permit);
    }
    return permit;
  }
}

const NO_RULES: readonly Policy[] = [];

export const forbiddenProblem = (errors: readonly ErrorDetail[] = [], message = DENIED): Problem =>
  new Problem('forbidden', message, { errors });
export const notFoundProblem = (): Problem => new Problem('not_found', 'not found, or not visible to you');
