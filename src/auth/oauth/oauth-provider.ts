/**
 * Finds the endpoints of a provider, by OpenID Connect Discovery or by the name of a preset of grant.
 */
import { createRequire } from 'node:module';
import { present } from '../../invariant.ts';
import { Problem } from '../../problem.ts';
import type { OAuthProvider } from '../../schema/model/model.ts';
import { IdTokenVerifier } from './id-tokens.ts';

export interface Endpoints {
  /** Subjects are unique within it. */
  readonly issuer: string;
  /** The settings of grant: a name of a preset, or endpoints. */
  readonly grant: Readonly<Record<string, unknown>> & { readonly name: string };
  /** Given if the provider speaks OpenID Connect. */
  readonly idTokens?: IdTokenVerifier;
}

const TIMEOUT_MS = 5_000;
const DISCOVERY_FRESH_MS = 600_000;
const MAX_ANSWER_BYTES = 1 << 20;
const LOOPBACK = /^(?:localhost|127(?:\.\d+){3}|\[::1\])$/;

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
export function checkPreset({ name, preset }: OAuthProvider): void {
  if (preset === undefined) return;
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
}

/** Fetches the discovery document at most every ten minutes. Throws `unavailable`. */
export function endpointsOf(provider: OAuthProvider): () => Promise<Endpoints> {
  const { preset, issuer } = provider;
  if (issuer === undefined) {
    const known: Endpoints = { issuer: `preset:${preset}`, grant: { name: present(preset, 'an issuer or a preset') } };
    return async () => known;
  }
  let found: { readonly at: number; readonly endpoints: Promise<Endpoints> } | undefined;
  return () => {
    if (found === undefined || performance.now() - found.at > DISCOVERY_FRESH_MS) {
      const asked = { at: performance.now(), endpoints: discover(provider, issuer) };
      found = asked;
      asked.endpoints.catch(() => {
        if (found === asked) found = undefined;
      });
    }
    return found.endpoints;
  };
}

async function discover({ name, clientId }: OAuthProvider, issuer: string): Promise<Endpoints> {
  const document = await fetchJson(`${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`).catch(
    (error: unknown) => {
      throw providerUnavailable(name, error);
    },
  );
  const address = (key: string): string => {
    const value = document[key];
    if (typeof value === 'string' && isSafe(value)) return value;
    throw providerUnavailable(name, new Error(`discovery: no ${key}`));
  };
  // Otherwise one issuer could speak for another (OpenID Connect Discovery 1.0 §4.3).
  if (document.issuer !== issuer) throw providerUnavailable(name, new Error('discovery: another issuer'));
  return {
    issuer,
    grant: {
      // Any other name: grant treats names of presets specially.
      name: 'openid_connect_provider',
      oauth: 2,
      scope_delimiter: ' ',
      authorize_url: address('authorization_endpoint'),
      access_url: address('token_endpoint'),
      profile_url: address('userinfo_endpoint'),
    },
    idTokens: new IdTokenVerifier({ issuer, clientId, jwksUri: address('jwks_uri') }),
  };
}

function isSafe(address: string): boolean {
  if (!URL.canParse(address)) return false;
  const { protocol, hostname } = new URL(address);
  return protocol === 'https:' || (protocol === 'http:' && LOOPBACK.test(hostname));
}

async function fetchJson(address: string): Promise<Readonly<Record<string, unknown>>> {
  const response = await fetch(address, {
    redirect: 'error',
    headers: { Accept: 'application/json' },
    signal: AbortSignal.timeout(TIMEOUT_MS),
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
