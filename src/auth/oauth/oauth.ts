/**
 * Signs users in through a provider. A started flow is a row that the browser's cookie names and the
 * callback deletes: it works once, in that browser only.
 */
import { namedCells } from '../../database/cells.ts';
import { Problem } from '../../problem.ts';
import type { OAuthProvider } from '../../schema/model/model.ts';
import { seconds, sql, text } from '../../sql.ts';
import type { AccountParts, Accounts, SignedIn } from '../accounts/accounts.ts';
import { type RequestClient, recordAudit } from '../audit-trail.ts';
import { hashSecret, isSecret, newSecret } from '../sessions/secrets.ts';
import { IdTokenError, type IdTokenVerifier } from './id-tokens.ts';
import { exchangeError, failed, finishGrant, type GrantSession, providerError, startGrant } from './oauth-grant.ts';
import { type Identities, type Identity, openIdIdentity, profileIdentity } from './oauth-identity.ts';
import { checkPreset, type Endpoints, endpointsOf, providerUnavailable } from './oauth-provider.ts';
import { checkRedirectTo, withChallenge, withError } from './redirect-to.ts';

export interface OAuthStart {
  readonly provider: string;
  readonly redirectTo: string | undefined;
  /**
   * The session cookie of a request that no other site caused; the flow may join an identity with its
   * user.
   */
  readonly sessionCookie: string | undefined;
  readonly client: RequestClient;
}

export interface StartedOAuth {
  /** The address that the browser goes to. */
  readonly location: string;
  /** Binds the flow to the browser. `maxAge` in seconds. */
  readonly cookie: { readonly value: string; readonly maxAge: number };
}

export interface OAuthCallback {
  readonly provider: string;
  /** The parameters of the callback's address, each given once. */
  readonly query: ReadonlyMap<string, string>;
  /** The cookie of the flow. */
  readonly cookie: string | undefined;
  readonly client: RequestClient;
}

export type OAuthEnd =
  | { readonly kind: 'signed_in'; readonly outcome: SignedIn; readonly redirectTo: string | undefined }
  | { readonly kind: 'refused'; readonly redirectTo: string };

export interface OAuthParts extends Pick<AccountParts, 'db' | 'schema' | 'authenticator' | 'limiter'> {
  readonly accounts: Accounts;
  readonly identities: Identities;
  readonly baseUrl: () => string;
}

interface Flow {
  readonly grant: GrantSession;
  /** The user in whose session the flow was started. */
  readonly userId?: string;
  /** The guest's session in which the flow was started, and which it ends. */
  readonly guest?: string;
}

interface KnownProvider {
  readonly provider: OAuthProvider;
  readonly endpoints: () => Promise<Endpoints>;
}

const FLOW_SECONDS = 600;

export class OAuth {
  readonly #parts: OAuthParts;
  readonly #providers: ReadonlyMap<string, KnownProvider>;

  /** Throws for a preset that this service cannot use. */
  constructor(parts: OAuthParts) {
    this.#parts = parts;
    for (const provider of parts.schema.oauth.values()) checkPreset(provider);
    this.#providers = new Map(
      [...parts.schema.oauth].map(([name, provider]) => [name, { provider, endpoints: endpointsOf(provider) }]),
    );
  }

  /** Throws `not_found`, `invalid_parameter`, `unavailable`, `rate_limited`. */
  async start({ provider: name, redirectTo, sessionCookie, client }: OAuthStart): Promise<StartedOAuth> {
    const { db, schema, limiter, baseUrl } = this.#parts;
    const { provider, endpoints } = this.#provider(name);
    const target = redirectTo === undefined ? undefined : checkRedirectTo(redirectTo, schema.origins);
    await limiter.refresh(client);
    const { grant: settings } = await endpoints();
    const { location, session } = await startGrant({ provider, settings, baseUrl: baseUrl() });
    const flow: Flow = { grant: session, ...(await this.#holderOf(sessionCookie)) };
    const cookie = newSecret();
    await db.run(sql`
      INSERT INTO "_auth_flows" (hash, provider, grant_session, redirect_to, expires_at)
      VALUES (${text(hashSecret(cookie))}, ${text(name)}, ${text(JSON.stringify(flow))}, ${text(target ?? null)},
              now() + ${seconds(FLOW_SECONDS)})`);
    return { location, cookie: { value: cookie, maxAge: FLOW_SECONDS } };
  }

  /**
   * Throws problems, or reports them at the flow's `redirect_to`, if the flow is the browser's own and
   * has one.
   */
  async finish(callback: OAuthCallback): Promise<OAuthEnd> {
    const { db, accounts, identities } = this.#parts;
    const { provider, client } = callback;
    this.#provider(provider);
    const { redirectTo, ...flow } = await this.#takeFlow(callback);
    try {
      const identity = await this.#identify(callback, flow.grant);
      const userId = await identities.signIn({ identity, sessionUserId: flow.userId, client });
      const outcome = await accounts.signIn({ userId, method: 'oauth', client, guest: flow.guest });
      return { kind: 'signed_in', outcome, redirectTo: redirectTo && withChallenge(redirectTo, outcome) };
    } catch (error) {
      if (!(error instanceof Problem)) throw error;
      await recordAudit(db, { event: 'oauth_failed', client, detail: { provider, code: error.code } });
      if (redirectTo === undefined) throw error;
      return { kind: 'refused', redirectTo: withError(redirectTo, error.code) };
    }
  }

  #provider(name: string): KnownProvider {
    const known = this.#providers.get(name);
    if (known === undefined) throw new Problem('not_found', 'the provider is unknown');
    return known;
  }

  /** A session that is over counts as no session. */
  async #holderOf(cookie: string | undefined): Promise<Pick<Flow, 'userId' | 'guest'>> {
    if (cookie === undefined) return {};
    try {
      const { kind, principal } = await this.#parts.authenticator.authenticate({ cookie });
      return kind === 'user' ? { userId: principal } : { guest: principal };
    } catch (error) {
      if (error instanceof Problem) return {};
      throw error;
    }
  }

  async #takeFlow({ provider, query, cookie }: OAuthCallback): Promise<Flow & Pick<OAuthStart, 'redirectTo'>> {
    const lost = 'this sign-in was not started in this browser, has expired, or was finished before; start again';
    if (cookie === undefined || !isSecret(cookie)) throw failed(lost);
    const [cells] = await this.#parts.db.write(sql`
      DELETE FROM "_auth_flows"
       WHERE hash = ${text(hashSecret(cookie))}
         AND provider = ${text(provider)}
         AND expires_at > now()
   RETURNING grant_session, redirect_to`);
    if (cells === undefined) throw failed(lost);
    const { session } = namedCells(cells, 'session');
    const flow = JSON.parse(session) as Flow;
    if (flow.grant?.state === undefined || query.get('state') !== flow.grant.state) throw failed(lost);
    return { ...flow, redirectTo: cells[1] ?? undefined };
  }

  async #identify({ provider: name, query }: OAuthCallback, session: GrantSession): Promise<Identity> {
    const { provider, endpoints } = this.#provider(name);
    const error = query.get('error');
    if (error === 'access_denied') throw new Problem('oauth_denied', 'the sign-in was declined at the provider');
    if (error !== undefined) throw providerError(name, error);
    const { issuer, grant: settings, idTokens } = await endpoints();
    // Another issuer's answer at this issuer's address (RFC 9207).
    if (idTokens !== undefined && query.has('iss') && query.get('iss') !== issuer)
      throw failed('the answer is of another issuer');
    const request = { provider, settings, baseUrl: this.#parts.baseUrl() };
    const response = await finishGrant(request, session, query);
    if (response.error !== undefined) throw exchangeError(name, response.error);
    const profile = response.profile ?? {};
    const claims =
      idTokens && (await idTokenClaims(name, idTokens, { token: response.id_token, nonce: session.nonce }));
    if (profile.error !== undefined) throw exchangeError(name, profile.error);
    if (claims === undefined) return profileIdentity(issuer, profile);
    // OpenID Connect Core 1.0 §5.3.2: the profile could be another user's.
    if (profile.sub !== claims.sub) throw failed('the profile is of another user than the identity token');
    return openIdIdentity(issuer, claims, profile);
  }
}

interface GivenIdToken {
  readonly token: string | undefined;
  readonly nonce: string | undefined;
}

async function idTokenClaims(provider: string, idTokens: IdTokenVerifier, { token, nonce }: GivenIdToken) {
  if (token === undefined || nonce === undefined) throw failed('the provider sent no identity token');
  try {
    return await idTokens.verify(token, nonce);
  } catch (error) {
    if (error instanceof IdTokenError && error.reason === 'unavailable') throw providerUnavailable(provider, error);
    throw failed('the identity token of the provider is not valid', error);
  }
}
