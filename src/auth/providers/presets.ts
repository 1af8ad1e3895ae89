/**
 * Providers that are known by name, as data: their address, their scopes, and the claim that proves an address.
 * Sources: the documentation of each for OpenID Connect or OAuth, as of November 2026.
 */
import type { OAuthProvider } from '../../schema/model/model.ts';
import { appleSecret, checkAppleKey } from './apple-secret.ts';

export type ProviderDocument = Readonly<Record<string, unknown>>;

export interface Preset {
  /** Shown to users. */
  readonly title: string;
  /** Subjects are unique within it. */
  readonly issuer: string;
  readonly scopes: readonly string[];
  /** Given if the provider does not speak OpenID Connect; `base` is its own server. */
  readonly endpoints?: (base: string) => PlainEndpoints;
  /**
   * The document that the email is read from. `emails`: the list of the account's addresses, of which the
   * primary one counts.
   */
  readonly document: 'id_token' | 'profile' | 'emails';
  readonly provesEmail: (document: ProviderDocument) => boolean;
  /** The issuer of the discovery document at this address. Default: the address. */
  readonly statedIssuer?: (address: string) => string;
  /** The answer arrives as a form that the browser posts from the provider's page. */
  readonly postsAnswer?: true;
  /** Default: the secret of the schema. */
  readonly secret?: (provider: OAuthProvider, issuer: string) => Promise<string>;
  /** Throws for settings that the preset cannot use. */
  readonly check?: (provider: OAuthProvider) => void;
}

/** The endpoints of OAuth 2.0, and of the account's documents. */
interface PlainEndpoints {
  readonly authorize: string;
  readonly token: string;
  readonly profile: string;
  readonly emails?: string;
}

/** In the issuer of several tenants: each token names its own, by the claim `tid`. */
export const TENANT = '{tenantid}';

const OPENID = ['openid', 'email', 'profile'];
const isTrue = (value: unknown): boolean => value === true;

const PRESETS: ReadonlyMap<string, Preset> = new Map<string, Preset>([
  [
    'google',
    {
      title: 'Google',
      issuer: 'https://accounts.google.com',
      scopes: OPENID,
      document: 'id_token',
      provesEmail: ({ email_verified }) => isTrue(email_verified),
    },
  ],
  [
    'microsoft',
    {
      title: 'Microsoft',
      issuer: 'https://login.microsoftonline.com/common/v2.0',
      statedIssuer: (address) => address.replace(/\/(?:common|organizations)\//, `/${TENANT}/`),
      scopes: OPENID,
      // A tenant's admin writes any `email`; this claim says that the owner of its domain is the tenant.
      document: 'id_token',
      provesEmail: ({ xms_edov }) => [true, 'true', 1, '1'].includes(xms_edov as never),
    },
  ],
  [
    'apple',
    {
      title: 'Apple',
      issuer: 'https://appleid.apple.com',
      scopes: ['openid', 'email', 'name'],
      document: 'id_token',
      provesEmail: ({ email_verified }) => email_verified === 'true' || isTrue(email_verified),
      // Required by Apple with the scopes `email` and `name`.
      postsAnswer: true,
      secret: appleSecret,
      check: checkAppleKey,
    },
  ],
  [
    'gitlab',
    {
      title: 'GitLab',
      issuer: 'https://gitlab.com',
      scopes: OPENID,
      document: 'profile',
      provesEmail: ({ email_verified }) => isTrue(email_verified),
    },
  ],
  [
    'github',
    {
      title: 'GitHub',
      issuer: 'https://github.com',
      scopes: ['read:user', 'user:email'],
      endpoints: (base) => {
        const api = base === 'https://github.com' ? 'https://api.github.com' : `${base}/api/v3`;
        return {
          authorize: `${base}/login/oauth/authorize`,
          token: `${base}/login/oauth/access_token`,
          profile: `${api}/user`,
          emails: `${api}/user/emails`,
        };
      },
      // The profile has the public address, which may be absent, and says nothing of its proof.
      document: 'emails',
      provesEmail: ({ verified }) => isTrue(verified),
    },
  ],
  [
    'discord',
    {
      title: 'Discord',
      issuer: 'https://discord.com',
      scopes: ['identify', 'email'],
      endpoints: (base) => ({
        authorize: `${base}/oauth2/authorize`,
        token: `${base}/api/oauth2/token`,
        profile: `${base}/api/users/@me`,
      }),
      document: 'profile',
      provesEmail: ({ verified }) => isTrue(verified),
    },
  ],
]);

export const presetOf = ({ preset }: OAuthProvider): Preset | undefined =>
  preset === undefined ? undefined : PRESETS.get(preset);
