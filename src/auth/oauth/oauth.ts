/**
 * Signs users in through a provider. A started flow is a row that the browser's cookie names and the
 * callback deletes: it works once, in that browser only.
 */
import { namedCells } from '../../database/cells.ts';
import { Problem, problemOfError } from '../../problem.ts';
import type { OAuthProvider } from '../../schema/model/model.ts';
import { seconds, sql, text } from '../../sql.ts';
import { type AccountParts, type Accounts, type SignedIn, wrongSignIn } from '../accounts/accounts.ts';
import { lockProved, type Proof } from '../accounts/proofs.ts';
import { type RequestClient, recordAudit } from '../audit-trail.ts';
import type { Caller } from '../caller.ts';
import { requireUsedFactor } from '../factors/used-factor.ts';
import { presetOf } from '../providers/presets.ts';
import type { SessionClaims } from '../sessions/authenticator.ts';
import { hashSecret, isSecret, newSecret } from '../sessions/secrets.ts';
import { findCode, isChallenge, keepCode, spendAppCode } from './app-codes.ts';
import { isAppRedirect, withCode } from './app-redirects.ts';
import { failed, type GrantSession, startGrant } from './oauth-grant.ts';
import type { Identities, Identity } from './oauth-identity.ts';
import { checkPreset, type Endpoints, endpointsOf, issuerOf } from './oauth-provider.ts';
import { identify } from './provider-identity.ts';
import { checkRedirectTo, withChallenge, withError } from './redirect-to.ts';

export interface OAuthStart {
  readonly provider: string;
  readonly redirectTo: string | undefined;
  /** The challenge of a native app, whose address is among `redirects`. */
  readonly codeChallenge: string | undefined;
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
  /** The provider posts its answer from its own site. */
  readonly isPosted: boolean;
}

export interface LinkStart extends Pick<OAuthStart, 'provider' | 'client'> {
  readonly redirectTo: string;
}

export interface OAuthCallback {
  readonly provider: string;
  /** The parameters of the callback's address, each given once. */
  readonly query: ReadonlyMap<string, string>;
  readonly isPosted: boolean;
  /** The cookie of the flow. */
  readonly cookie: string | undefined;
  readonly client: RequestClient;
}

export type OAuthEnd =
  | { readonly kind: 'signed_in'; readonly outcome: SignedIn; readonly redirectTo: string | undefined }
  | { readonly kind: 'linked' | 'coded' | 'refused'; readonly redirectTo: string };

export interface OAuthParts extends Pick<AccountParts, 'db' | 'schema' | 'authenticator' | 'limiter'> {
  readonly accounts: Accounts;
  readonly identities: Identities;
  readonly baseUrl: () => string;
}

interface Flow {
  readonly grant: GrantSession;
  /** The session of a user in which the flow was started. */
  readonly session?: SessionClaims;
  /** The guest's session in which the flow was started, and which it ends. */
  readonly guest?: string;
  /** The session whose user is linked with the identity; no session starts. */
  readonly link?: SessionClaims;
  /** The challenge of a native app, which gets a code. */
  readonly challenge?: string;
}

export interface CodeExchange {
  readonly code: string;
  readonly verifier: string;
  readonly client: RequestClient;
  /** The session of a guest, which the sign-in ends. */
  readonly guest: string | undefined;
}

interface TakenFlow extends Flow {
  readonly redirectTo: string | undefined;
}

export interface ShownProvider {
  readonly name: string;
  readonly title: string;
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

  /** The providers as users are shown them. */
  providers(): readonly ShownProvider[] {
    return [...this.#providers.values()].map(({ provider }) => ({
      name: provider.name,
      title: provider.title ?? presetOf(provider)?.title ?? provider.name,
    }));
  }

  /** Throws `not_found`, `invalid_parameter`, `unavailable`, `rate_limited`. */
  async start(request: OAuthStart): Promise<StartedOAuth> {
    const { limiter, schema } = this.#parts;
    const { redirectTo, codeChallenge, client } = request;
    const known = this.#provider(request.provider);
    if (redirectTo !== undefined && isAppRedirect(redirectTo, schema.redirects)) {
      if (codeChallenge === undefined || !isChallenge(codeChallenge))
        throw badChallenge('expected `code_challenge`: the SHA-256 of the verifier, in base64url');
      await limiter.refresh(client);
      // Any app may send the browser here: the session of the browser has no part in it.
      return this.#begin(known, redirectTo, { challenge: codeChallenge });
    }
    const target = redirectTo === undefined ? undefined : checkRedirectTo(redirectTo, schema.origins);
    if (codeChallenge !== undefined) throw badChallenge('expected `redirect_to` to be an address under `redirects`');
    await limiter.refresh(client);
    return this.#begin(known, target, await this.#holderOf(request.sessionCookie));
  }

  /** Throws `invalid_credentials` for every wrong code and verifier; `email_unverified`, `rate_limited`. */
  async exchange({ code, verifier, client, guest }: CodeExchange): Promise<SignedIn> {
    const { db, accounts, limiter } = this.#parts;
    await limiter.refresh(client);
    const found = await findCode(db, code, verifier);
    if (found === undefined) throw wrongAppCode();
    const { userId, isOwn } = found;
    if (isOwn) {
      // In the transaction that stores the session: who ends the sessions of the user voids codes before.
      return accounts.signIn({ userId, method: 'oauth', client, guest }, async (tx) => {
        if (!(await spendAppCode(tx, code))) throw wrongAppCode();
      });
    }
    await spendAppCode(db, code);
    await recordAudit(db, { event: 'oauth_failed', userId, client, detail: { code: 'invalid_credentials' } });
    throw wrongAppCode();
  }

  /**
   * Starts a flow that links the caller with an identity. Throws `forbidden` in a session that lacks the second
   * factor of its user; `not_found`, `invalid_parameter`, `unavailable`, `rate_limited`.
   */
  async startLink(caller: Caller, { provider: name, redirectTo, client }: LinkStart): Promise<StartedOAuth> {
    const { db, schema, limiter } = this.#parts;
    const known = this.#provider(name);
    const target = checkRedirectTo(redirectTo, schema.origins);
    await requireUsedFactor(db, caller);
    await limiter.refresh(client);
    return this.#begin(known, target, { link: { sessionId: caller.sessionId, userId: caller.principal } });
  }

  /** Throws `not_found`, `last_credential`. */
  async unlink(caller: Caller, name: string, client: RequestClient): Promise<void> {
    const issuer = issuerOf(this.#provider(name).provider);
    await this.#parts.identities.unlink(caller, { provider: name, issuer, client });
  }

  async #begin({ provider, endpoints }: KnownProvider, target: string | undefined, of: Omit<Flow, 'grant'>) {
    const { db, baseUrl } = this.#parts;
    const { location, session } = await startGrant({ provider, endpoints: await endpoints(), baseUrl: baseUrl() });
    const flow: Flow = { grant: session, ...of };
    const cookie = newSecret();
    await db.run(sql`
      INSERT INTO "_auth_flows" (hash, provider, grant_session, redirect_to, expires_at)
      VALUES (${text(hashSecret(cookie))}, ${text(provider.name)}, ${text(JSON.stringify(flow))}, ${text(target ?? null)},
              now() + ${seconds(FLOW_SECONDS)})`);
    const isPosted = presetOf(provider)?.postsAnswer === true;
    return { location, cookie: { value: cookie, maxAge: FLOW_SECONDS }, isPosted };
  }

  /**
   * Throws problems, or reports them at the flow's `redirect_to`, if the flow is the browser's own and
   * has one.
   */
  async finish(callback: OAuthCallback): Promise<OAuthEnd> {
    const { db } = this.#parts;
    const { provider: name, client } = callback;
    const known = this.#provider(name);
    const { redirectTo, ...flow } = await this.#takeFlow(callback);
    try {
      return await this.#conclude(await this.#identityOf(known, callback, flow), { ...flow, redirectTo }, client);
    } catch (error) {
      if (!(error instanceof Problem)) throw error;
      await recordAudit(db, { event: 'oauth_failed', client, detail: { provider: name, code: error.code } });
      if (redirectTo === undefined) throw error;
      return { kind: 'refused', redirectTo: withError(redirectTo, error.code) };
    }
  }

  async #identityOf({ provider, endpoints }: KnownProvider, { query }: OAuthCallback, { grant }: Flow) {
    const baseUrl = this.#parts.baseUrl();
    return identify({ provider, endpoints: await endpoints(), query, session: grant, baseUrl });
  }

  async #conclude(identity: Identity, flow: TakenFlow, client: RequestClient): Promise<OAuthEnd> {
    const { accounts, identities, authenticator } = this.#parts;
    const { redirectTo, link, guest } = flow;
    if (link !== undefined) {
      // A session that ended meanwhile was perhaps ended because of the person who started this.
      await authenticator.callerOfSession(link);
      await identities.link(link.userId, identity, client);
      return { kind: 'linked', redirectTo: redirectTo ?? '/' };
    }
    const sessionUserId = await this.#presentUser(flow.session);
    const { userId, isClaimed } = await identities.signIn({ identity, sessionUserId, client });
    if (isClaimed) await authenticator.userChanged(userId);
    const proof = { userId, identity };
    if (flow.challenge !== undefined) {
      const code = await this.#codeFor(proof, flow.challenge);
      return { kind: 'coded', redirectTo: withCode(redirectTo ?? '/', code) };
    }
    const outcome = await accounts.signIn({ ...proof, method: 'oauth', client, guest });
    return { kind: 'signed_in', outcome, redirectTo: redirectTo && withChallenge(redirectTo, outcome) };
  }

  #codeFor(proof: Proof, challenge: string): Promise<string> {
    return this.#parts.db.transaction(async (tx) => {
      if ((await lockProved(tx, proof)) === undefined) throw wrongSignIn('oauth');
      return keepCode(tx, proof.userId, challenge);
    });
  }

  #provider(name: string): KnownProvider {
    const known = this.#providers.get(name);
    if (known === undefined) throw new Problem('not_found', 'the provider is unknown');
    return known;
  }

  /** A session that is over counts as no session. */
  async #holderOf(cookie: string | undefined): Promise<Pick<Flow, 'session' | 'guest'>> {
    if (cookie === undefined) return {};
    try {
      const { kind, principal, sessionId } = await this.#parts.authenticator.authenticate({ cookie });
      return kind === 'user' ? { session: { sessionId, userId: principal } } : { guest: principal };
    } catch (error) {
      if (error instanceof Problem) return {};
      throw error;
    }
  }

  /** As for links: a session that ended meanwhile, or lacks the second factor of its user, counts as no session. */
  async #presentUser(session: SessionClaims | undefined): Promise<string | undefined> {
    if (session === undefined) return undefined;
    const { authenticator, db } = this.#parts;
    try {
      await requireUsedFactor(db, await authenticator.callerOfSession(session));
      return session.userId;
    } catch (error) {
      if (error instanceof Problem) return undefined;
      throw error;
    }
  }

  async #takeFlow({ provider, query, cookie, isPosted }: OAuthCallback): Promise<TakenFlow> {
    const lost = 'this sign-in was not started in this browser, has expired, or was finished before; start again';
    const isOwnWay = isPosted === (presetOf(this.#provider(provider).provider)?.postsAnswer === true);
    if (!isOwnWay || cookie === undefined || !isSecret(cookie)) throw failed(lost);
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
}

const wrongAppCode = (): Problem =>
  new Problem('invalid_credentials', 'the code has expired or was used before, or it is of another verifier');

const badChallenge = (detail: string): Problem =>
  problemOfError('invalid_parameter', { parameter: 'code_challenge', code: 'invalid_parameter', detail });
