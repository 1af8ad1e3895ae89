/**
 * Exchanges with a provider by grant: authorization code with PKCE, state and nonce (RFC 9700,
 * OpenID Connect Core 1.0). The only file with grant, which is loaded with the first sign-in.
 */
import { invariant } from '../../invariant.ts';
import { Problem } from '../../problem.ts';
import type { OAuthProvider } from '../../schema/model/model.ts';
import { withDeadline } from '../../with-deadline.ts';
import { type Endpoints, providerUnavailable } from './oauth-provider.ts';

/** The limit of the whole exchange; grant's own time-out is for silence only. */
const EXCHANGE_MS = 15_000;
/** The parameters of the callback that grant may see. */
const PARAMETERS = ['code', 'state', 'error', 'error_description', 'iss'];

/** The state that grant needs again at the callback. */
export interface GrantSession {
  readonly state?: string;
  readonly nonce?: string;
}

export interface GrantResponse {
  readonly error?: unknown;
  readonly id_token?: string;
  readonly profile?: Readonly<Record<string, unknown>>;
}

export interface ProviderRequest {
  readonly provider: OAuthProvider;
  readonly settings: Endpoints['grant'];
  readonly baseUrl: string;
}

export interface StartedGrant {
  /** The address that the browser goes to. */
  readonly location: string;
  readonly session: GrantSession;
}

/** The part of a Koa context that grant's handler reads and writes. */
interface GrantContext {
  readonly method: string;
  readonly originalUrl: string;
  readonly request: { readonly query: Readonly<Record<string, string>> };
  readonly response: { redirect(location: string): void };
  session: { grant?: GrantSession };
  state: { grant?: { readonly response?: GrantResponse } };
}

type GrantHandler = (ctx: GrantContext, next: () => Promise<void>) => Promise<void>;

export async function startGrant(request: ProviderRequest): Promise<StartedGrant> {
  let location: string | undefined;
  const ctx: GrantContext = {
    method: 'GET',
    originalUrl: `/connect/${request.settings.name}`,
    request: { query: {} },
    response: {
      redirect(to) {
        location = to;
      },
    },
    session: {},
    state: {},
  };
  const handler = await grantHandlerOf(request);
  await handler(ctx, async () => {});
  invariant(location !== undefined && ctx.session.grant !== undefined, 'grant starts a flow');
  return { location, session: ctx.session.grant };
}

/** Throws `unavailable` when the provider takes too long. */
export async function finishGrant(
  request: ProviderRequest,
  session: GrantSession,
  query: ReadonlyMap<string, string>,
): Promise<GrantResponse> {
  const ctx: GrantContext = {
    method: 'GET',
    originalUrl: `/connect/${request.settings.name}/callback`,
    request: { query: Object.fromEntries([...query].filter(([key]) => PARAMETERS.includes(key))) },
    response: { redirect: () => {} },
    session: { grant: session },
    state: {},
  };
  const exchange = grantHandlerOf(request).then((handler) => handler(ctx, async () => {}));
  await withDeadline(exchange, EXCHANGE_MS, () => {
    throw providerUnavailable(request.provider.name, new Error('the exchange took too long'));
  });
  return ctx.state.grant?.response ?? {};
}

async function grantHandlerOf({ provider, settings, baseUrl }: ProviderRequest): Promise<GrantHandler> {
  const { default: grant } = await import('grant');
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

export const failed = (detail: string, cause?: unknown): Problem => new Problem('oauth_failed', detail, { cause });

/** `code`: an `error` of OAuth 2.0. */
export function providerError(name: string, code: string): Problem {
  if (code === 'server_error' || code === 'temporarily_unavailable') return providerUnavailable(name, code);
  return failed('the provider rejected the sign-in', code);
}

/**
 * Maps errors of grant: its own findings are strings that begin with its name, a provider's error is
 * the body of its answer, and a network's is a message.
 */
export function exchangeError(name: string, error: unknown): Problem {
  if (typeof error === 'string') {
    const isRejection = /^Grant:|^4\d\d /.test(error);
    return isRejection ? failed('the provider rejected the sign-in', error) : providerUnavailable(name, error);
  }
  const code = typeof error === 'object' && error !== null && 'error' in error ? error.error : undefined;
  return typeof code === 'string' ? providerError(name, code) : providerUnavailable(name, error);
}
