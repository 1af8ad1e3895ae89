/**
 * Exchanges with a provider by grant: authorization code with PKCE, state and nonce (RFC 9700,
 * OpenID Connect Core 1.0). The only file with grant, which is loaded with the first sign-in.
 */
import { invariant } from '../../invariant.ts';
import { Problem } from '../../problem.ts';
import type { OAuthProvider } from '../../schema/model/model.ts';
import { DEFAULT_CLIENT_AUTH, DEFAULT_SCOPES } from '../../schema/model/settings/defaults.ts';
import { withDeadline } from '../../with-deadline.ts';
import { presetOf } from '../providers/presets.ts';
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
  readonly access_token?: string;
  readonly id_token?: string;
  readonly profile?: Readonly<Record<string, unknown>>;
}

export interface ProviderRequest {
  readonly provider: OAuthProvider;
  readonly endpoints: Endpoints;
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
    originalUrl: `/connect/${request.endpoints.grant.name}`,
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
    originalUrl: `/connect/${request.endpoints.grant.name}/callback`,
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

async function grantHandlerOf({ provider, endpoints, baseUrl }: ProviderRequest): Promise<GrantHandler> {
  const { default: grant } = await import('grant');
  const preset = presetOf(provider);
  const { name, ...urls } = endpoints.grant;
  const scopes = provider.scopes ?? preset?.scopes ?? DEFAULT_SCOPES;
  const clientAuth = provider.clientAuth ?? (preset === undefined ? DEFAULT_CLIENT_AUTH : 'post');
  const hasNonce = endpoints.idTokens !== undefined || scopes.includes('openid');
  const hasProfile = endpoints.idTokens === undefined || urls.profile_url !== undefined;
  const handler = grant.default.koa({
    config: {
      [name]: {
        ...urls,
        client_id: provider.clientId,
        client_secret: (await preset?.secret?.(provider, endpoints.issuer)) ?? provider.clientSecret,
        redirect_uri: `${baseUrl}/api/auth/oauth/${provider.name}/callback`,
        scope: [...scopes],
        state: true,
        pkce: true,
        ...(hasNonce ? { nonce: true } : {}),
        ...(clientAuth === 'basic' ? { token_endpoint_auth_method: 'client_secret_basic' } : {}),
        ...(preset?.postsAnswer ? { custom_params: { response_mode: 'form_post' } } : {}),
        transport: 'state',
        response: hasProfile ? ['tokens', 'profile'] : ['tokens'],
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
    // Some providers report an error of OAuth with status 200.
    if (/^[a-z]+(?:_[a-z]+)+$/.test(error)) return providerError(name, error);
    const isRejection = /^Grant:|^4\d\d /.test(error);
    return isRejection ? failed('the provider rejected the sign-in', error) : providerUnavailable(name, error);
  }
  const code = typeof error === 'object' && error !== null && 'error' in error ? error.error : undefined;
  return typeof code === 'string' ? providerError(name, code) : providerUnavailable(name, error);
}
