/**
 * Finds the endpoints of a provider: by OpenID Connect Discovery, by a preset, or by the name of a preset of grant.
 */

import { createRequire } from 'node:module';
import { present } from '../../invariant.ts';
import { Problem } from '../../problem.ts';
import type { OAuthProvider } from '../../schema/model/model.ts';
import { isLoopback } from '../loopback.ts';
import { presetOf } from '../providers/presets.ts';
import { IdTokenVerifier } from './id-tokens.ts';

export interface Endpoints {
  /** Subjects are unique within it. */
  readonly issuer: string;
  /** The settings of grant: a name of a preset, or endpoints. */
  readonly grant: Readonly<Record<string, unknown>> & { readonly name: string };
  /** Given if the provider speaks OpenID Connect. */
  readonly idTokens?: IdTokenVerifier;
  /** Lists the addresses of an account. */
  readonly emails?: string;
}

const PROVIDER_TIMEOUT_MS = 5_000;
const DISCOVERY_FRESH_MS = 600_000;
const MAX_ANSWER_BYTES = 1 << 20;

type Presets = Readonly<
  Record<string, { readonly oauth?: number; readonly authorize_url?: string; readonly access_url?: string }>
>;
type Profiles = Readonly<Record<string, { readonly profile_url?: string }>>;

/** Lazy: only a schema that uses a preset needs them. */
const requireJson = createRequire(import.meta.url);
const readPresets = (): Presets => requireJson('grant/config/oauth.json');
const readProfiles = (): Profiles => requireJson('grant/config/profile.json');

export function providerUnavailable(provider: string, cause: unknown): Problem {
  return new Problem('unavailable', `the provider \`${provider}\` cannot be reached; try again shortly`, {
    headers: { 'Retry-After': '5' },
    cause,
  });
}

/** Throws for a preset that this service cannot use. */
export function checkPreset(provider: OAuthProvider): void {
  const { name, preset, issuer } = provider;
  if (preset === undefined) return;
  const own = presetOf(provider);
  if (own !== undefined) {
    own.check?.(provider);
    return;
  }
  const [presets, profiles] = [readPresets(), readProfiles()];
  const known = Object.hasOwn(presets, preset) ? presets[preset] : undefined;
  const profile = Object.hasOwn(profiles, preset) ? profiles[preset]?.profile_url : undefined;
  const usable =
    known?.oauth === 2 && profile !== undefined && !JSON.stringify([known, profile]).includes('[subdomain]');
  if (!usable) {
    throw new Error(
      `oauth.${name}: \`${preset}\` is not a preset with OAuth 2.0 and a profile; give its \`issuer\` instead`,
    );
  }
  if (issuer !== undefined) throw new Error(`oauth.${name}: the preset \`${preset}\` takes no \`issuer\``);
}

/** The issuer whose subjects the provider signs in. */
export function issuerOf(provider: OAuthProvider): string {
  const address = addressOf(provider);
  if (address !== undefined) return presetOf(provider)?.statedIssuer?.(address) ?? address;
  return `preset:${present(provider.preset, 'an issuer or a preset')}`;
}

const addressOf = (provider: OAuthProvider): string | undefined => provider.issuer ?? presetOf(provider)?.issuer;

/** Fetches the discovery document at most every ten minutes. Throws `unavailable`. */
export function endpointsOf(provider: OAuthProvider): () => Promise<Endpoints> {
  const preset = presetOf(provider);
  const address = addressOf(provider);
  const issuer = issuerOf(provider);
  if (address === undefined) {
    const known: Endpoints = { issuer, grant: { name: present(provider.preset, 'a preset') } };
    return async () => known;
  }
  if (preset?.endpoints !== undefined) {
    const { authorize, token, profile, emails } = preset.endpoints(withoutSlash(address));
    const grant = settingsOf({ authorize_url: authorize, access_url: token, profile_url: profile });
    const known: Endpoints = { issuer, grant, ...(emails !== undefined && { emails }) };
    return async () => known;
  }
  let found: { readonly at: number; readonly endpoints: Promise<Endpoints> } | undefined;
  return () => {
    if (found === undefined || performance.now() - found.at > DISCOVERY_FRESH_MS) {
      const asked = { at: performance.now(), endpoints: discover(provider, address) };
      found = asked;
      asked.endpoints.catch(() => {
        if (found === asked) found = undefined;
      });
    }
    return found.endpoints;
  };
}

const withoutSlash = (issuer: string): string => issuer.replace(/\/$/, '');

async function discover(provider: OAuthProvider, at: string): Promise<Endpoints> {
  const { name, clientId } = provider;
  const issuer = issuerOf(provider);
  const preset = presetOf(provider);
  const document = await fetchJson(`${withoutSlash(at)}/.well-known/openid-configuration`).catch((error: unknown) => {
    throw providerUnavailable(name, error);
  });
  const address = (key: string): string => {
    const value = document[key];
    if (typeof value === 'string' && isSafe(value)) return value;
    throw providerUnavailable(name, new Error(`discovery: no ${key}`));
  };
  // Otherwise one issuer could speak for another (OpenID Connect Discovery 1.0 §4.3).
  if (document.issuer !== issuer) throw providerUnavailable(name, new Error('discovery: another issuer'));
  const profile: Record<string, string> =
    preset?.document === 'id_token' ? {} : { profile_url: address('userinfo_endpoint') };
  return {
    issuer,
    grant: settingsOf({
      authorize_url: address('authorization_endpoint'),
      access_url: address('token_endpoint'),
      ...profile,
    }),
    idTokens: new IdTokenVerifier({ issuer, clientId, jwksUri: address('jwks_uri') }),
  };
}

/** Grant treats the names of its presets specially, so these endpoints have another name. */
const settingsOf = (urls: Readonly<Record<string, string>>): Endpoints['grant'] => ({
  name: 'openid_connect_provider',
  oauth: 2,
  scope_delimiter: ' ',
  ...urls,
});

function isSafe(address: string): boolean {
  if (!URL.canParse(address)) return false;
  const { protocol, hostname } = new URL(address);
  return protocol === 'https:' || (protocol === 'http:' && isLoopback(hostname));
}

/** `token`: an access token. */
export async function fetchJson(address: string, token?: string): Promise<Readonly<Record<string, unknown>>> {
  const response = await fetch(address, {
    redirect: 'error',
    headers: { Accept: 'application/json', ...(token !== undefined && { Authorization: `Bearer ${token}` }) },
    signal: AbortSignal.timeout(PROVIDER_TIMEOUT_MS),
  });
  if (!response.ok) throw new Error(`${response.status} from the provider`);
  const text = await limitedText(response);
  const value: unknown = JSON.parse(text);
  if (typeof value !== 'object' || value === null) throw new Error('no object from the provider');
  return value as Record<string, unknown>;
}

async function limitedText(response: Response): Promise<string> {
  let size = 0;
  const chunks: Uint8Array[] = [];
  for await (const chunk of response.body ?? []) {
    size += chunk.byteLength;
    if (size > MAX_ANSWER_BYTES) throw new Error('too much from the provider');
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}
