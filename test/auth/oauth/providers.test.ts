// @module-tag long
/** The presets of providers, each with a double that has the habits of the real one; and identities of one's own. */
import { generateKeyPairSync } from 'node:crypto';
import { afterAll, beforeEach, expect, test } from 'vitest';
import { IdTokenVerifier } from '../../../src/auth/oauth/id-tokens.ts';
import { checkPreset } from '../../../src/auth/oauth/oauth-provider.ts';
import { describeOnOne, type TestService } from '../../support/service.ts';
import { codeOfApp } from '../authenticator.ts';
import { newEmail, SCHEMA } from '../people.ts';
import { Browser, type Page } from './identity-provider.ts';
import { type Account, CLIENT, KEY_ID, ProviderDoubles, SECRET, TEAM } from './provider-doubles.ts';

const doubles = await ProviderDoubles.listen();
const NAMES = ['google', 'microsoft', 'apple', 'gitlab', 'github', 'discord'] as const;
type Name = (typeof NAMES)[number];
const addressOf = (name: Name) => `${doubles.url}/${name}${name === 'microsoft' ? '/common/v2.0' : ''}`;
const entries = NAMES.map((name) => {
  const secret =
    name === 'apple' ? `client_secret_env: APPLE_KEY, team_id: ${TEAM}, key_id: ${KEY_ID}` : `client_secret: ${SECRET}`;
  return `  ${name}: { preset: ${name}, issuer: '${addressOf(name)}', client_id: ${CLIENT}, ${secret} }`;
});
const OPTIONS = {
  // A variable of the environment often has the key on one line.
  env: { APPLE_KEY: doubles.applePem.replaceAll('\n', '\\n') },
  schema: `${SCHEMA.replace('nick: string,', 'nick: string, name: { type: string, max: 20 },')}
oauth:
${entries.join('\n')}
  company: { title: Our company, issuer: 'http://127.0.0.1:1', client_id: x, client_secret: y }
`,
};
afterAll(() => doubles.close());
beforeEach(() => {
  doubles.spoil = (claims) => claims;
  doubles.spoiled.clear();
  doubles.keyTenant = undefined;
});

const TENANT = '11111111-2222-4333-8444-555555555555';
const OTHER_TENANT = '99999999-2222-4333-8444-555555555555';
let serial = 0;
function accountOf(name: Name, more: Partial<Account> = {}): Account {
  const email = more.email ?? newEmail(name);
  const sub = String(++serial);
  const own: Readonly<Record<Name, Partial<Account>>> = {
    google: { verified: true },
    microsoft: { tid: TENANT, edov: '1' },
    apple: { verified: 'true' },
    gitlab: { verified: true },
    github: {
      emails: [
        { email: 'old@example.org', primary: false, verified: true },
        { email, primary: true, verified: true },
      ],
    },
    discord: { verified: true },
  };
  return { sub, email, name: 'Ada Lovelace', ...own[name], ...more };
}
const json = (page: Page) => JSON.parse(page.text);
const outcomeOf = (page: Page): string => (page.status === 200 ? 'in' : `${page.status} ${json(page).code}`);
const startOf = (service: TestService, name: string) => `${service.url}/api/auth/oauth/${name}/start`;

describeOnOne(
  'presets of providers',
  (service) => {
    const signIn = (name: Name, account: Account | undefined, browser = new Browser()): Promise<Page> => {
      doubles.next = account;
      return browser.follow(startOf(service, name));
    };

    test.each(NAMES)('%s signs a person in, proves the address, and finds the person again', async (name) => {
      const account = accountOf(name);
      const browser = new Browser();
      const first = json(await signIn(name, account, browser));
      // Discord has no name of a person.
      const shown = name === 'discord' ? null : 'Ada Lovelace';
      expect(first.user).toMatchObject({ email: account.email, email_verified: true, name: shown });
      expect(browser.cookie(service.url, 'svc_session')).toBeDefined();
      expect(browser.cookie(service.url, 'svc_oauth')).toBeUndefined();
      const again = json(await signIn(name, account));
      expect(again.user).toMatchObject({ id: first.user.id, name: shown });
    });

    test.each<[string, string]>([
      ['a NUL', 'n\u0000x'],
      ['a lone surrogate', '\ud800X'],
      ['256 characters', 'x'.repeat(256)],
      ['3,000 characters', 'x'.repeat(3_000)],
    ])('a subject with %s is rejected, in a token and in a profile', async (_, sub) => {
      for (const name of ['google', 'discord'] as const) {
        const account = accountOf(name, { sub });
        expect([name, outcomeOf(await signIn(name, account))]).toEqual([name, '400 oauth_failed']);
        expect(await service.app.auth.admin.accounts({ email: account.email, limit: 1 })).toEqual([]);
      }
    });

    test('a subject with 255 characters signs in', async () => {
      for (const name of ['google', 'discord'] as const) {
        const account = accountOf(name, { sub: 'x'.repeat(255) });
        const [first, again] = [json(await signIn(name, account)), json(await signIn(name, account))];
        expect([first.user.email, again.user.id]).toEqual([account.email, first.user.id]);
      }
    });

    test.each(NAMES)('%s: a person declines', async (name) => {
      expect(outcomeOf(await signIn(name, undefined))).toBe('403 oauth_denied');
    });

    test.each<[Name, string, Partial<Account>]>([
      ['google', 'email_verified is a string', { verified: 'true' }],
      ['microsoft', 'email_verified alone', { edov: undefined }],
      ['microsoft', 'xms_edov is false', { edov: false }],
      ['microsoft', 'xms_edov is "0"', { edov: '0' }],
      ['apple', 'email_verified is "false"', { verified: 'false' }],
      ['gitlab', 'email_verified is missing', { verified: undefined }],
      ['discord', 'verified is missing', { verified: undefined }],
    ])('%s does not take over an account where %s', async (name, _, more) => {
      const { email } = await service.user();
      expect(outcomeOf(await signIn(name, accountOf(name, { email, ...more })))).toBe('409 account_exists');
      expect(json(await signIn(name, accountOf(name, more))).user.email_verified).toBe(false);
    });

    test.each<[Name, Partial<Account>]>([
      ['google', {}],
      ['microsoft', { edov: true }],
      ['apple', { verified: true }],
      ['discord', {}],
    ])('%s joins an account whose address both sides have proved', async (name, more) => {
      const { id, email } = await service.user();
      expect(json(await signIn(name, accountOf(name, { email, ...more }))).user.id).toBe(id);
    });

    test('GitHub: the public address is not read, the primary one has to be verified, and the list has to come', async () => {
      const { email } = await service.user();
      const list = [
        { email, primary: true, verified: false },
        { email: newEmail('other'), primary: false, verified: true },
      ];
      expect(outcomeOf(await signIn('github', accountOf('github', { email, emails: list })))).toBe(
        '409 account_exists',
      );
      const hidden = newEmail('hidden');
      const own = [{ email: hidden, primary: true, verified: true }];
      expect(json(await signIn('github', accountOf('github', { email, emails: own }))).user.email).toBe(hidden);
      for (const emails of [[], [{ email, primary: false, verified: true }], undefined])
        expect(outcomeOf(await signIn('github', accountOf('github', { emails: emails as never })))).toBe(
          '400 oauth_failed',
        );
      doubles.spoiled.set('/github/api/v3/user/emails', (response) => response.writeHead(502).end());
      expect(outcomeOf(await signIn('github', accountOf('github')))).toBe('503 unavailable');
    });

    test('GitHub: an error with status 200 is a rejection', async () => {
      const browser = new Browser();
      doubles.next = accountOf('github');
      const { url } = await browser.follow(startOf(service, 'github'), ({ origin }) => origin === service.url);
      const spoiled = new URL(url);
      spoiled.searchParams.set('code', 'another');
      expect(outcomeOf(await browser.visit(spoiled.href))).toBe('400 oauth_failed');
    });

    test('Microsoft: subjects of two tenants are two people, and no tenant speaks for another', async () => {
      const account = accountOf('microsoft');
      const { user } = json(await signIn('microsoft', account));
      const elsewhere = { ...account, tid: OTHER_TENANT, email: newEmail('microsoft') };
      expect(json(await signIn('microsoft', elsewhere)).user.id).not.toBe(user.id);
      const lies: readonly ((claims: Readonly<Record<string, unknown>>) => Readonly<Record<string, unknown>>)[] = [
        (claims) => ({ ...claims, tid: OTHER_TENANT }),
        (claims) => ({ ...claims, iss: doubles.issuer('microsoft', OTHER_TENANT) }),
        (claims) => ({ ...claims, iss: doubles.issuer('microsoft') }),
        ({ tid: _, ...claims }) => claims,
        (claims) => ({ ...claims, tid: 'x/../y', iss: doubles.issuer('microsoft', 'x/../y') }),
      ];
      for (const lie of lies) {
        doubles.spoil = lie;
        expect(outcomeOf(await signIn('microsoft', account))).toBe('400 oauth_failed');
      }
    });

    test('Apple: the form of another site brings the cookie of its own flow, and nothing else does', async () => {
      const victim = new Browser();
      doubles.next = accountOf('apple');
      const page = await new Browser().follow(startOf(service, 'google'), ({ origin }) => origin === service.url);
      expect(new URL(page.url).searchParams.get('code')).toBeTruthy();
      // The attacker's own answer, posted by the attacker's page into a browser that is in the middle of a sign-in.
      const attacker = new Browser();
      const formOf = async (browser: Browser) => {
        const started = await browser.visit(startOf(service, 'apple'));
        return browser.visit(started.headers.get('location')!);
      };
      const forged = await formOf(attacker);
      await formOf(victim);
      expect(outcomeOf(await victim.submit(forged))).toBe('400 oauth_failed');
      expect(outcomeOf(await new Browser().submit(forged))).toBe('400 oauth_failed');
      expect(victim.cookie(service.url, 'svc_session')).toBeUndefined();
      expect(outcomeOf(await attacker.submit(forged))).toBe('in');
      expect(outcomeOf(await attacker.submit(forged))).toBe('400 oauth_failed');
    });

    test('an answer arrives in the way of its provider only', async () => {
      const browser = new Browser();
      doubles.next = accountOf('google');
      const { url } = await browser.follow(startOf(service, 'google'), ({ origin }) => origin === service.url);
      const fields = [...new URL(url).searchParams].map(([name, value]) => `<input name="${name}" value="${value}">`);
      const form = `<form method="post" action="${url.split('?')[0]}">${fields.join('')}</form>`;
      const posted = { status: 200, url: service.url, headers: new Headers(), text: form };
      expect(outcomeOf(await browser.submit(posted))).toBe('400 oauth_failed');
    });

    test('with redirect_to, a posted answer leads there by 303', async () => {
      const browser = new Browser();
      doubles.next = accountOf('apple');
      const started = await browser.visit(`${startOf(service, 'apple')}?redirect_to=/after`);
      const end = await browser.submit(await browser.visit(started.headers.get('location')!));
      expect([end.status, end.headers.get('location')]).toEqual([303, '/after']);
    });

    test('a name that the field does not take is left out', async () => {
      const account = accountOf('google', { name: 'x'.repeat(21) });
      expect(json(await signIn('google', account)).user.name).toBeNull();
    });

    test('the list of providers is public, in the order of the schema', async () => {
      const { status, body } = await service.anonymous.get('/api/auth/providers');
      const titles = ['Google', 'Microsoft', 'Apple', 'GitLab', 'GitHub', 'Discord'];
      const data = [...NAMES.map((name, i) => ({ name, title: titles[i] })), { name: 'company', title: 'Our company' }];
      expect([status, body]).toEqual([200, { data }]);
    });
  },
  OPTIONS,
);

describeOnOne(
  'identities of one’s own',
  (service) => {
    const link = async (user: { readonly token: string }, name: Name, account: Account, browser = new Browser()) => {
      const client = service.anonymous.with({ Authorization: `Bearer ${user.token}` });
      const started = await client.post(`/api/auth/identities/${name}`, { redirect_to: '/account' });
      expect(started.status).toBe(200);
      const flow = /^svc_oauth=([^;]+)/.exec(started.headers.getSetCookie()[0]!)![1]!;
      browser.setCookie(service.url, 'svc_oauth', flow);
      doubles.next = account;
      const page = await browser.follow(started.body.location, ({ pathname }) => pathname === '/account');
      return page.url.replace(service.url, '');
    };

    test('a user links an identity with another address, signs in by it, and unlinks it', async () => {
      const user = await service.user();
      const account = accountOf('microsoft', { edov: undefined });
      expect(await link(user, 'microsoft', account)).toBe('/account');
      expect(await link(user, 'microsoft', account)).toBe('/account');
      doubles.next = account;
      const page = await new Browser().follow(startOf(service, 'microsoft'));
      expect(json(page).user).toMatchObject({ id: user.id, email: user.email });
      expect((await user.client.delete('/api/auth/identities/google')).status).toBe(404);
      expect((await user.client.delete('/api/auth/identities/microsoft')).status).toBe(204);
      expect((await user.client.delete('/api/auth/identities/microsoft')).status).toBe(404);
      const stranger = json(await new Browser().follow(startOf(service, 'microsoft')));
      expect(stranger.user.id).not.toBe(user.id);
      const events = await service.app.auth.admin.audit({ userId: user.id, limit: 20 });
      expect(events.map(({ event }) => event)).toEqual(
        expect.arrayContaining(['oauth_linked', 'oauth_unlinked', 'oauth_login']),
      );
    });

    test('an identity of another account is not moved', async () => {
      const [owner, other] = [await service.user(), await service.user()];
      const account = accountOf('gitlab');
      await link(owner, 'gitlab', account);
      const browser = new Browser();
      expect(await link(other, 'gitlab', account, browser)).toBe('/account?error=account_exists');
      expect(browser.cookie(service.url, 'svc_session')).toBeUndefined();
      doubles.next = account;
      expect(json(await new Browser().follow(startOf(service, 'gitlab'))).user.id).toBe(owner.id);
    });

    test('a link that was started in a session that has ended links nothing', async () => {
      const user = await service.user();
      const started = await user.client.post('/api/auth/identities/google', {});
      const browser = new Browser();
      browser.setCookie(service.url, 'svc_oauth', /^svc_oauth=([^;]+)/.exec(started.headers.getSetCookie()[0]!)![1]!);
      await user.client.post('/api/auth/logout');
      doubles.next = accountOf('google');
      const page = await browser.follow(started.body.location, ({ pathname }) => pathname === '/');
      expect(page.url).toBe(`${service.url}/?error=invalid_token`);
      expect(json(await new Browser().follow(startOf(service, 'google'))).user.id).not.toBe(user.id);
    });

    test('the last way to sign in stays', async () => {
      doubles.next = accountOf('discord');
      const { access_token, user } = json(await new Browser().follow(startOf(service, 'discord')));
      const client = service.anonymous.with({ Authorization: `Bearer ${access_token}` });
      const answer = await client.delete('/api/auth/identities/discord');
      expect([answer.status, answer.body.code]).toEqual([409, 'last_credential']);
      await link({ token: access_token }, 'github', accountOf('github'));
      expect((await client.delete('/api/auth/identities/discord')).status).toBe(204);
      expect((await client.delete('/api/auth/identities/github')).body.code).toBe('last_credential');
      expect(user.id).toBeDefined();
    });

    test('a session without the second factor of its user links nothing', async () => {
      const user = await service.user();
      const { secret } = (await user.client.post('/api/auth/totp/enrol')).body;
      const other = await service.anonymous.post('/api/auth/login', { email: user.email, password: user.password });
      await user.client.post('/api/auth/totp/confirm', { code: codeOfApp(secret) });
      const older = service.anonymous.with({ Authorization: `Bearer ${other.body.access_token}` });
      expect((await older.post('/api/auth/identities/google', {})).body.code).toBe('forbidden');
      expect((await user.client.post('/api/auth/identities/google', {})).status).toBe(200);
    });

    test('a link rejects what a sign-in rejects, and other sites, keys and strangers', async () => {
      const user = await service.user();
      const path = '/api/auth/identities/google';
      expect((await user.client.post(path, { redirect_to: 'https://evil.example' })).body.code).toBe(
        'invalid_parameter',
      );
      expect((await user.client.post('/api/auth/identities/nobody', {})).status).toBe(404);
      expect((await service.anonymous.post(path, {})).status).toBe(401);
      const foreign = user.client.with({ 'Sec-Fetch-Site': 'cross-site' });
      expect((await foreign.post(path, {})).body.code).toBe('cross_origin');
    });
  },
  OPTIONS,
);

test('Microsoft: the key of one tenant signs for no other', async () => {
  const issuer = doubles.issuer('microsoft');
  const verify = (tid: string) => {
    const params = new URLSearchParams({ nonce: 'n' });
    const token = doubles.idToken({ of: 'microsoft', account: accountOf('microsoft', { tid }), params });
    const jwksUri = `${doubles.url}/microsoft/jwks`;
    return new IdTokenVerifier({ issuer, clientId: CLIENT, jwksUri }).verify(token, 'n');
  };
  doubles.keyTenant = OTHER_TENANT;
  expect((await verify(OTHER_TENANT)).tid).toBe(OTHER_TENANT);
  await expect(verify(TENANT)).rejects.toThrow('the identity token is not accepted (invalid)');
  // A token that leaves its key out would not be compared with the tenant of the key.
  doubles.namesKeys = false;
  await expect(verify(TENANT)).rejects.toThrow('the identity token is not accepted (invalid)');
  doubles.namesKeys = true;
  doubles.keyTenant = undefined;
  expect((await verify(TENANT)).tid).toBe(TENANT);
});

test.each([
  ['a text', 'no key'],
  ['an RSA key', generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey],
  ['a key of another curve', generateKeyPairSync('ec', { namedCurve: 'P-384' }).privateKey],
])('Apple: the secret is rejected at the start: %s', (_, key) => {
  const clientSecret = typeof key === 'string' ? key : (key.export({ type: 'pkcs8', format: 'pem' }) as string);
  const provider = { name: 'apple', preset: 'apple', clientId: 'x', clientSecret, teamId: TEAM, keyId: KEY_ID };
  expect(() => checkPreset(provider)).toThrow('oauth.apple: the secret is not a private key of Apple');
  expect(() => checkPreset({ ...provider, clientSecret: doubles.applePem })).not.toThrow();
});
