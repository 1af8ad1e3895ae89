/**
 * Signing in through a provider: authorization code with PKCE, state and nonce (RFC 9700, OpenID Connect Core 1.0), by grant. The only file with grant.
 * A started flow is a row that the browser's cookie names and the callback deletes: another browser has no part in it, and nothing works twice.
 */
import grant from 'grant';
import { Problem } from '../problem.ts';
import type { OAuthProvider, Schema } from '../schema/model.ts';
import { param, sql } from '../sql.ts';
import type { Database } from '../store/database/contract.ts';
import type { Accounts, Issued } from './accounts.ts';
import { type Client, record } from './audit.ts';
import type { Limiter } from './limits.ts';
import { type Identity, signIn } from './oauth-identity.ts';
import { checkPreset, type Endpoints, endpointsOf, unavailable } from './oauth-provider.ts';
import { checkRedirectTo, withError } from './redirect-to.ts';
import { hashSecret, isSecret, newSecret } from './secrets.ts';
import { IdTokenError } from './tokens.ts';
import type { Users } from './users.ts';

export interface OAuth {
  /** → where the browser goes, and the cookie that binds the flow to it. Throws `not_found`, `invalid_parameter`, `unavailable`, `rate_limited`. */
  startOAuth(request: {
    readonly provider: string;
    readonly redirectTo: string | undefined;
    readonly client: Client;
  }): Promise<{ readonly location: string; readonly cookie: { readonly value: string; readonly maxAge: number } }>;
  /** Throws problems; once the flow is known to be the browser's own and has a `redirect_to`, they are told there. */
  finishOAuth(callback: Callback): Promise<OAuthEnd>;
}
export interface Callback {
  readonly provider: string;
  /** Of the callback's address, each given once. */
  readonly query: ReadonlyMap<string, string>;
  readonly cookie: string | undefined;
  readonly client: Client;
}
export type OAuthEnd =
  | { readonly kind: 'signed_in'; readonly issued: Issued; readonly redirectTo: string | undefined }
  | { readonly kind: 'refused'; readonly redirectTo: string };

export interface OAuthParts {
  readonly db: Database;
  readonly schema: Schema;
  readonly users: Users;
  readonly accounts: Accounts;
  readonly limiter: Limiter;
  readonly baseUrl: () => string;
}

const FLOW_SECONDS = 600;
/** For the whole exchange, whatever the provider does; grant's own time-out is for silence only. */
const EXCHANGE_MS = 15_000;
const PARAMETERS = ['code', 'state', 'error', 'error_description', 'iss'];

interface GrantSession {
  readonly state?: string;
  readonly nonce?: string;
}
interface Answer {
  readonly error?: unknown;
  readonly id_token?: string;
  readonly profile?: Readonly<Record<string, unknown>>;
}

const failed = (detail: string, cause?: unknown): Problem => new Problem('oauth_failed', detail, { cause });

export function createOAuth(parts: OAuthParts): OAuth {
  const { db, schema, accounts, limiter, baseUrl } = parts;
  const providers = new Map(
    [...schema.oauth].map(([name, provider]) => {
      checkPreset(provider);
      return [name, { provider, endpoints: endpointsOf(provider) }] as const;
    }),
  );
  const known = (name: string) => {
    const entry = providers.get(name);
    if (entry === undefined) throw new Problem('not_found', 'there is no such provider');
    return entry;
  };

  const takeFlow = async ({ provider, query, cookie }: Callback) => {
    const lost = 'this sign-in was not started in this browser, has expired, or was finished before; start again';
    if (cookie === undefined || !isSecret(cookie)) throw failed(lost);
    const [cells] = await db.rows(
      sql`DELETE FROM "_auth_flows" WHERE hash = ${param('text', hashSecret(cookie))} AND provider = ${param('text', provider)} AND expires_at > now() RETURNING grant_session, redirect_to`,
    );
    if (cells === undefined) throw failed(lost);
    const session = JSON.parse(cells[0]!) as GrantSession;
    if (session.state === undefined || query.get('state') !== session.state) throw failed(lost);
    return { session, redirectTo: cells[1] ?? undefined };
  };

  const identify = async ({ provider: name, query }: Callback, session: GrantSession): Promise<Identity> => {
    const { provider, endpoints } = known(name);
    const told = query.get('error');
    if (told === 'access_denied') throw new Problem('oauth_denied', 'the sign-in was declined at the provider');
    if (told !== undefined) throw providerError(name, told);
    const { issuer, grant: settings, verifyIdToken } = await endpoints();
    // Another issuer's answer at this one's address (RFC 9207).
    if (verifyIdToken !== undefined && query.has('iss') && query.get('iss') !== issuer)
      throw failed('the answer is of another issuer');
    const answer = await exchange({ provider, settings, query, session, baseUrl: baseUrl() });
    if (answer.error !== undefined) throw exchangeError(name, answer.error);
    const profile = answer.profile ?? {};
    if (verifyIdToken === undefined) return profileIdentity(issuer, profile);
    if (answer.id_token === undefined || session.nonce === undefined)
      throw failed('the provider sent no identity token');
    const claims = await verifyIdToken({ token: answer.id_token, nonce: session.nonce }).catch((error: unknown) => {
      if (error instanceof IdTokenError && error.reason === 'unavailable') throw unavailable(name, error);
      throw failed('the identity token of the provider is not valid', error);
    });
    if (profile.error !== undefined) throw exchangeError(name, profile.error);
    // OpenID Connect Core 1.0 §5.3.2: the profile could be another user's.
    if (profile.sub !== claims.sub) throw failed('the profile is of another user than the identity token');
    return profileIdentity(issuer, { ...claims, ...profile });
  };

  return {
    async startOAuth({ provider: name, redirectTo, client }) {
      const { provider, endpoints } = known(name);
      const target = redirectTo === undefined ? undefined : checkRedirectTo(redirectTo, schema.origins);
      await limiter.refresh(client);
      const { grant: settings } = await endpoints();
      const { location, session } = await begin({ provider, settings, baseUrl: baseUrl() });
      const cookie = newSecret();
      await db.run(
        sql`INSERT INTO "_auth_flows" (hash, provider, grant_session, redirect_to, expires_at) VALUES (${param('text', hashSecret(cookie))}, ${param('text', name)}, ${param('text', JSON.stringify(session))}, ${param('text', target ?? null)}, now() + ${param('float8', FLOW_SECONDS)} * interval '1 second')`,
      );
      return { location, cookie: { value: cookie, maxAge: FLOW_SECONDS } };
    },

    async finishOAuth(callback) {
      const { provider, client } = callback;
      known(provider);
      const { session, redirectTo } = await takeFlow(callback);
      try {
        const identity = await identify(callback, session);
        const userId = await signIn(parts, { identity, client });
        const secrets = await db.transaction((tx) => accounts.startSession(tx, { userId, method: 'oauth', client }));
        return { kind: 'signed_in', issued: await accounts.issue(secrets), redirectTo };
      } catch (error) {
        if (!(error instanceof Problem)) throw error;
        await record(db, { event: 'oauth_failed', client, detail: { provider, code: error.code } });
        if (redirectTo === undefined) throw error;
        return { kind: 'refused', redirectTo: withError(redirectTo, error.code) };
      }
    },
  };
}

// ---------------------------------------------------------------- grant

interface ProviderRequest {
  readonly provider: OAuthProvider;
  readonly settings: Endpoints['grant'];
  readonly baseUrl: string;
}

/** What grant's Koa handler reads and writes of a context, and no more. */
interface GrantContext {
  readonly method: string;
  readonly originalUrl: string;
  readonly request: { readonly query: Readonly<Record<string, string>> };
  readonly response: { redirect(location: string): void };
  session: { grant?: GrantSession };
  state: { grant?: { readonly response?: Answer } };
}

function handlerOf({
  provider,
  settings,
  baseUrl,
}: ProviderRequest): (ctx: GrantContext, next: () => Promise<void>) => Promise<void> {
  const { name, ...endpoints } = settings;
  const handler = grant.default.koa({
    config: {
      [name]: {
        ...endpoints,
        client_id: provider.clientId,
        client_secret: provider.clientSecret,
        redirect_uri: `${baseUrl}/api/auth/oauth/${provider.name}/callback`,
        scope: [...provider.scopes],
        state: true,
        pkce: true,
        ...(provider.scopes.includes('openid') ? { nonce: true } : {}),
        ...(provider.clientAuth === 'basic' ? { token_endpoint_auth_method: 'client_secret_basic' } : {}),
        transport: 'state',
        response: ['tokens', 'profile'],
      },
    },
  });
  return handler as never;
}

async function begin(ask: ProviderRequest): Promise<{ readonly location: string; readonly session: GrantSession }> {
  let location: string | undefined;
  const ctx: GrantContext = {
    method: 'GET',
    originalUrl: `/connect/${ask.settings.name}`,
    request: { query: {} },
    response: {
      redirect(to) {
        location = to;
      },
    },
    session: {},
    state: {},
  };
  await handlerOf(ask)(ctx, async () => {});
  if (location === undefined || ctx.session.grant === undefined) throw new Error('grant did not start the flow');
  return { location, session: ctx.session.grant };
}

async function exchange(
  ask: ProviderRequest & { readonly query: ReadonlyMap<string, string>; readonly session: GrantSession },
): Promise<Answer> {
  const ctx: GrantContext = {
    method: 'GET',
    originalUrl: `/connect/${ask.settings.name}/callback`,
    request: { query: Object.fromEntries([...ask.query].filter(([key]) => PARAMETERS.includes(key))) },
    response: { redirect: () => {} },
    session: { grant: ask.session },
    state: {},
  };
  const { promise: late, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(
    () => reject(unavailable(ask.provider.name, new Error('the exchange took too long'))),
    EXCHANGE_MS,
  );
  try {
    await Promise.race([handlerOf(ask)(ctx, async () => {}), late]);
  } finally {
    clearTimeout(timer);
  }
  return ctx.state.grant?.response ?? {};
}

// ---------------------------------------------------------------- what providers say

function providerError(name: string, code: string): Problem {
  if (code === 'server_error' || code === 'temporarily_unavailable') return unavailable(name, code);
  return failed('the provider refused the sign-in', code);
}

/** grant reports its own findings as text that begins with its name, a provider's as the body that came, and what the network said as its message. */
function exchangeError(name: string, error: unknown): Problem {
  if (typeof error === 'string') {
    return /^Grant:|^4\d\d /.test(error) ? failed('the provider refused the sign-in', error) : unavailable(name, error);
  }
  const code = typeof error === 'object' && error !== null ? (error as { error?: unknown }).error : undefined;
  return typeof code === 'string' ? providerError(name, code) : unavailable(name, error);
}

function profileIdentity(issuer: string, profile: Readonly<Record<string, unknown>>): Identity {
  const subject = profile.sub ?? profile.id;
  if ((typeof subject !== 'string' || subject === '') && typeof subject !== 'number') {
    throw profile.error === undefined
      ? failed('the provider did not say who signed in')
      : exchangeError(issuer, profile.error);
  }
  const { email } = profile;
  return {
    issuer,
    subject: String(subject),
    email: typeof email === 'string' ? email : undefined,
    emailVerified: profile.email_verified === true,
  };
}
