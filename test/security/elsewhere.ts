/** Attacks and findings whose tests are in other suites, and those that do not apply. */

export interface Proof {
  readonly id: string;
  readonly name: string;
  readonly file: string;
  /** Part of the title of the test. */
  readonly title: string;
}

const OAUTH = 'test/auth/oauth/oauth.test.ts';

export const PROVED_ELSEWHERE: readonly Proof[] = [
  {
    id: 'A39',
    name: 'an account that a stranger made with an address, joined by its owner',
    file: OAUTH,
    title: 'an account that a stranger made never becomes its owner’s, nor stays open to the stranger (pre-hijac',
  },
  {
    id: 'A40',
    name: 'an unverified address at the provider',
    file: OAUTH,
    title: 'an identity joins an account only if both sides have proved the address',
  },
  {
    id: 'A37',
    name: 'least privilege in the database',
    file: 'test/auth/security/database-roles.test.ts',
    title: 'L7: a role of the service',
  },
  {
    id: 'A41',
    name: 'an issuer chosen by the caller',
    file: OAUTH,
    title: 'a callback rejects the flow of another provider, and the answer of another issuer',
  },
  {
    id: 'A42',
    name: 'an identity token for another audience',
    file: OAUTH,
    title: 'a callback rejects an identity token with %s',
  },
  { id: 'A43', name: 'open redirects', file: OAUTH, title: 'the start rejects redirect_to twice' },
  {
    id: 'A44',
    name: 'a code used twice, or from another browser',
    file: OAUTH,
    title: 'a code works once, also in two flows',
  },
  {
    id: 'A46',
    name: 'sessions after a password reset',
    file: 'test/auth/mail/email.test.ts',
    title: 'a password is reset by the token of a mail, once; all sessions end',
  },
  {
    id: 'A47',
    name: 'a disabled user',
    file: 'test/auth/accounts/accounts.test.ts',
    title: 'a user who is disabled is out at once',
  },
  {
    id: 'A48',
    name: 'a refresh token used again',
    file: 'test/auth/sessions/sessions.test.ts',
    title: 'a replayed token that is not the newest spent one ends the whole session',
  },
  {
    id: 'A50',
    name: 'a mailed token used twice',
    file: 'test/auth/mail/email.test.ts',
    title: 'the token of a mail serves one of ten concurrent requests',
  },
  {
    id: 'A52',
    name: 'limits passed by forwarding headers',
    file: 'test/auth/limiter.test.ts',
    title: 'the limiter trusts the addresses of configured proxies only',
  },
  {
    id: 'A54',
    name: 'requests made for the caller to addresses inside',
    file: OAUTH,
    title: 'a provider that is down or lies about itself causes 503',
  },
];

export interface NotTried {
  readonly id: string;
  readonly name: string;
  readonly reason: string;
}

export const NOT_TRIED: readonly NotTried[] = [
  { id: 'A09', name: 'a token of one auth collection at another', reason: 'there is one collection of users' },
  { id: 'A34', name: 'paths into JSON columns', reason: 'there is no JSON field type' },
  { id: 'A36', name: 'operators of JSON paths', reason: 'there is no JSON field type' },
  { id: 'A53', name: 'keys with a scope', reason: 'there are no API keys' },
  { id: 'A60', name: 'subscriptions that outlive a permission', reason: 'there are no subscriptions' },
];

/** Findings without a test that names them. */
export const UNTESTED_FINDINGS: readonly NotTried[] = [
  {
    id: 'S9',
    name: 'one slow read holds up others',
    reason: 'documented in SECURITY.md, "What we do not promise"; the work on real databases has it',
  },
];
