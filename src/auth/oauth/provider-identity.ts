/** Exchanges a provider's answer for the identity that it proves. */
import { Problem } from '../../problem.ts';
import type { OAuthProvider } from '../../schema/model/model.ts';
import { type Preset, type ProviderDocument, presetOf } from '../providers/presets.ts';
import { IdTokenError, type IdTokenVerifier } from './id-tokens.ts';
import {
  exchangeError,
  failed,
  finishGrant,
  type GrantResponse,
  type GrantSession,
  providerError,
} from './oauth-grant.ts';
import { type Identity, openIdIdentity, profileIdentity, providerSubjectOf } from './oauth-identity.ts';
import { type Endpoints, fetchJson, providerUnavailable } from './oauth-provider.ts';

export interface ProviderAnswer {
  readonly provider: OAuthProvider;
  readonly endpoints: Endpoints;
  /** The parameters of the answer, each given once. */
  readonly query: ReadonlyMap<string, string>;
  readonly session: GrantSession;
  readonly baseUrl: string;
}

/** The second one is Apple's. */
const DECLINED = new Set(['access_denied', 'user_cancelled_authorize']);

/** Throws `oauth_denied`, `oauth_failed`, `unavailable`. */
export async function identify(answer: ProviderAnswer): Promise<Identity> {
  const { provider, endpoints, query, session } = answer;
  const { name } = provider;
  const error = query.get('error');
  if (error !== undefined && DECLINED.has(error))
    throw new Problem('oauth_denied', 'the sign-in was declined at the provider');
  if (error !== undefined) throw providerError(name, error);
  const { issuer, idTokens } = endpoints;
  // Another issuer's answer at this issuer's address (RFC 9207). The issuer of several tenants is known by the token only.
  if (idTokens !== undefined && query.has('iss') && !idTokens.mayBe(query.get('iss')))
    throw failed('the answer is of another issuer');
  const response = await finishGrant(answer, session, query);
  if (response.error !== undefined) throw exchangeError(name, response.error);
  const { profile = {} } = response;
  const claims = idTokens && (await idTokenClaims(name, idTokens, { token: response.id_token, nonce: session.nonce }));
  if (profile.error !== undefined) throw exchangeError(name, profile.error);
  // OpenID Connect Core 1.0 §5.3.2: the profile could be another user's.
  if (claims !== undefined && response.profile !== undefined && profile.sub !== claims.sub)
    throw failed('the profile is of another user than the identity token');
  const preset = presetOf(provider);
  if (preset === undefined)
    return claims === undefined ? profileIdentity(issuer, profile) : openIdIdentity(claims, profile);
  const document = await documentOf(preset, { name, endpoints, response, claims });
  return {
    issuer: claims?.iss ?? issuer,
    subject: providerSubjectOf(claims === undefined ? profile.id : claims.sub),
    email: document.email,
    isEmailVerified: preset.provesEmail(document),
    name: preset.postsAnswer ? postedName(query.get('user')) : (response.profile ?? claims)?.name,
  };
}

interface Exchanged {
  readonly name: string;
  readonly endpoints: Endpoints;
  readonly response: GrantResponse;
  readonly claims: ProviderDocument | undefined;
}

/** The document that has the email. */
async function documentOf(
  { document }: Preset,
  { name, endpoints, response, claims = {} }: Exchanged,
): Promise<ProviderDocument> {
  switch (document) {
    case 'id_token':
      return claims;
    case 'profile':
      return response.profile ?? {};
    case 'emails':
      return primaryEmail(name, endpoints, response.access_token);
  }
}

/** No address, unless one is the primary address. */
async function primaryEmail(name: string, { emails }: Endpoints, token: string | undefined): Promise<ProviderDocument> {
  if (emails === undefined || token === undefined) throw failed('the provider sent no access token');
  const list = await fetchJson(emails, token).catch((error: unknown) => {
    throw exchangeError(name, error instanceof Error ? error.message : error);
  });
  if (!Array.isArray(list)) throw failed('the provider sent no list of addresses');
  return (list as readonly ProviderDocument[]).find((each) => each?.primary === true) ?? {};
}

/** Apple posts it with the first sign-in only, beside the code and unsigned. */
function postedName(user: string | undefined): unknown {
  try {
    const { name } = JSON.parse(user ?? '{}') as { readonly name?: Readonly<Record<string, unknown>> };
    const parts = [name?.firstName, name?.lastName].filter((part) => typeof part === 'string');
    return parts.join(' ').trim();
  } catch {
    return undefined;
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
