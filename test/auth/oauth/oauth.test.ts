// @module-tag long
/** Signing in through a real OpenID provider, as a browser does it; and what must not work. */
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { openIdIdentity, profileIdentity } from '../../../src/auth/oauth/oauth-identity.ts';
import { checkPreset } from '../../../src/auth/oauth/oauth-provider.ts';
import { describeOnOne, type TestService } from '../../support/service.ts';
import { codeOfApp, unspentCode } from '../authenticator.ts';
import { codeOf, login, newEmail, PASSWORD, register, SCHEMA, TOKEN_KEYS } from '../people.ts';
import {
  answerJson,
  Browser,
  CLIENT_ID,
  CLIENT_SECRET,
  IdentityProvider,
  type Page,
  type Person,
} from './identity-provider.ts';

// The schema names the issuer, so its port is taken before the services start.
const idp = await IdentityProvider.listen();
const client = `client_id: ${CLIENT_ID}, client_secret: ${CLIENT_SECRET}`;
const OAUTH = `${SCHEMA}
origins: ['https://app.example']
oauth:
  idp: { issuer: '${idp.url}', ${client}, scopes: [openid, email, profile] }
  posting: { issuer: '${idp.url}', ${client}, client_auth: post }
  dead: { issuer: 'http://127.0.0.1:1', ${client} }
  liar: { issuer: '${idp.url}/liar', ${client} }
  drive: { preset: dropbox, ${client}, scopes: [openid] }
  hub: { preset: github, ${client}, scopes: ['user:email'], client_auth: post }
  silent: { issuer: '${idp.url}/silent', ${client} }
`;
afterAll(() => idp.close());

const CALLBACK = '/api/auth/oauth/idp/callback';
const start = (service: TestService, more = '', provider = 'idp') =>
  `${service.url}/api/auth/oauth/${provider}/start${more}`;
const json = (page: Page) => JSON.parse(page.text);
const problem = (page: Page) => `${page.status} ${json(page).code}`;
type Failure = [string, string, Parameters<typeof idp.spoiled.set>[1]];
let serial = 0;
const person = (more: Partial<Person> = {}): Person => ({
  sub: `subject-${++serial}`,
  email: newEmail('oauth'),
  email_verified: true,
  ...more,
});

/** Up to the callback's address, which is not visited. */
async function toCallback(service: TestService, browser: Browser, from = start(service)): Promise<URL> {
  const page = await browser.follow(
    from,
    (url) => url.href.startsWith(service.url) && url.pathname.endsWith('/callback'),
  );
  return new URL(page.url);
}

test.each(['nothing', 'twitter', 'auth0', '__proto__', 'disqus-'])('the start rejects the preset %s', (preset) => {
  const provider = { name: 'x', preset, clientId: 'a', clientSecret: 'b', scopes: [], clientAuth: 'basic' as const };
  expect(() => checkPreset(provider)).toThrow(`oauth.x: \`${preset}\` is not a preset`);
  expect(() => checkPreset({ ...provider, preset: 'google' })).not.toThrow();
});

test('an identity has the name of a person: of the userinfo, else of the token or the profile', () => {
  const claims = { iss: 'https://id.example', sub: 'a', email: 'a@id.example', name: 'Ann of the token' };
  expect(openIdIdentity(claims, { name: 'Ann' }).name).toBe('Ann');
  expect(openIdIdentity(claims, {}).name).toBe('Ann of the token');
  expect(profileIdentity(claims.iss, { id: 7, name: 'Ann' }).name).toBe('Ann');
});

describeOnOne(
  'oauth',
  (service) => {
    beforeAll(() => idp.open([`${service.url}${CALLBACK}`, `${service.url}/api/auth/oauth/posting/callback`]));
    beforeEach(() => {
      idp.spoiled.clear();
      idp.next = person();
    });

    test('the start sends the browser to the provider with code, PKCE, state and nonce, and binds it by a cookie', async () => {
      const page = await new Browser().visit(start(service, '?redirect_to=/after'));
      const { origin, pathname, searchParams } = new URL(page.headers.get('location')!);
      expect([page.status, origin, pathname, page.headers.get('cache-control')]).toEqual([
        302,
        idp.url,
        '/auth',
        'no-store',
      ]);
      expect(Object.fromEntries(searchParams)).toEqual({
        client_id: CLIENT_ID,
        response_type: 'code',
        redirect_uri: `${service.url}${CALLBACK}`,
        scope: 'openid email profile',
        state: expect.stringMatching(/^[0-9a-f]{40}$/),
        nonce: expect.stringMatching(/^[0-9a-f]{40}$/),
        code_challenge_method: 'S256',
        code_challenge: expect.stringMatching(/^[\w-]{43}$/),
      });
      expect(page.headers.getSetCookie()).toEqual([
        expect.stringMatching(/^svc_oauth=[\w-]{43}; Path=\/; Max-Age=600; HttpOnly; SameSite=Lax$/),
      ]);
    });

    test('a user with a second factor gets a challenge: in the fragment of redirect_to, or as the answer', async () => {
      const first = json(await new Browser().follow(start(service)));
      const user = service.anonymous.with({ Authorization: `Bearer ${first.access_token}` });
      const { secret } = (await user.post('/api/auth/totp/enrol')).body;
      await user.post('/api/auth/totp/confirm', { code: codeOfApp(secret) });

      const direct = await new Browser().follow(start(service));
      expect(json(direct)).toEqual({ challenge: expect.any(String), methods: ['totp', 'recovery'] });
      expect(direct.headers.getSetCookie().some((line) => line.startsWith('svc_session='))).toBe(false);

      const browser = new Browser();
      const target = 'https://app.example/in?a=1#top';
      const callback = await toCallback(service, browser, start(service, `?redirect_to=${encodeURIComponent(target)}`));
      const page = await browser.visit(callback.href);
      const [address, challenge = ''] = page.headers.get('location')!.split('#challenge=');
      expect([page.status, address, browser.cookie(service.url, 'svc_session')]).toEqual([
        302,
        'https://app.example/in?a=1',
        undefined,
      ]);
      const code = await unspentCode(service.app.db, { id: first.user.id, secret });
      const done = await service.anonymous.post('/api/auth/challenge', { challenge, method: 'totp', code });
      expect([done.status, done.body.user.id]).toEqual([200, first.user.id]);
      const events = await service.app.auth.admin.audit({ userId: first.user.id, limit: 2 });
      expect(events.map(({ event }) => event)).toEqual(['oauth_login', 'second_factor_asked']);
    });

    test.each(['idp', 'posting'])(
      'a new user signs in, and gets tokens as by a login without redirect_to (%s)',
      async (provider) => {
        const browser = new Browser();
        const page = await browser.follow(start(service, '', provider));
        expect(page.status).toBe(200);
        expect(page.headers.get('cache-control')).toBe('no-store');
        const body = json(page);
        expect(Object.keys(body)).toEqual(TOKEN_KEYS);
        expect(body.user).toMatchObject({ email: idp.next!.email, email_verified: true, roles: ['member'], level: 3 });
        expect(browser.cookie(service.url, 'svc_oauth')).toBeUndefined();
        const me = await browser.visit(`${service.url}/api/auth/me`);
        expect(json(me).user).toEqual(body.user);
        const bearer = await service.anonymous.get('/api/auth/me', { Authorization: `Bearer ${body.access_token}` });
        expect(bearer.body.user.id).toBe(body.user.id);
        const again = json(await new Browser().follow(start(service, '', provider)));
        expect(again.user.id).toBe(body.user.id);
      },
    );

    test.each(['/', '/after?x=1#part', 'https://app.example/in'])(
      'with redirect_to %s the browser ends there, signed in',
      async (target) => {
        const browser = new Browser();
        const callback = await toCallback(
          service,
          browser,
          start(service, `?redirect_to=${encodeURIComponent(target)}`),
        );
        const page = await browser.visit(callback.href);
        expect([page.status, page.headers.get('location'), page.text]).toEqual([302, target, '']);
        expect((await browser.visit(`${service.url}/api/auth/me`)).status).toBe(200);
      },
    );

    test.each([
      'https://evil.example',
      '//evil.example',
      '/\\evil.example',
      '\\\\evil.example',
      '/\t/evil.example',
      'javascript:alert(1)',
      'https://app.example.evil.example/',
      'https://app.example@evil.example/',
      'https://user@app.example/',
      'http://app.example/',
      'https:app.example',
      'after',
      '',
      '/a\r\nSet-Cookie: x=y',
      '/\u00e9',
    ])('redirect_to rejects an open redirect: %j', async (target) => {
      const page = await new Browser().visit(start(service, `?redirect_to=${encodeURIComponent(target)}`));
      expect(problem(page)).toBe('400 invalid_parameter');
      expect(json(page).errors[0].parameter).toBe('redirect_to');
      expect([page.headers.get('location'), page.headers.getSetCookie()]).toEqual([null, []]);
    });
    test('the start rejects redirect_to twice', async () => {
      expect(problem(await new Browser().visit(start(service, '?redirect_to=/a&redirect_to=/b')))).toBe(
        '400 invalid_parameter',
      );
    });

    test('a preset of grant, and one of the service, need no discovery', async () => {
      const drive = new URL((await new Browser().visit(start(service, '', 'drive'))).headers.get('location')!);
      expect([drive.origin, drive.pathname]).toEqual(['https://www.dropbox.com', '/oauth2/authorize']);
      expect([...drive.searchParams.keys()].sort()).toEqual([
        'client_id',
        'code_challenge',
        'code_challenge_method',
        'nonce',
        'redirect_uri',
        'response_type',
        'scope',
        'state',
      ]);
      expect(drive.searchParams.get('redirect_uri')).toBe(`${service.url}/api/auth/oauth/drive/callback`);
      const hub = new URL((await new Browser().visit(start(service, '', 'hub'))).headers.get('location')!);
      expect([hub.origin, hub.pathname, hub.searchParams.get('scope')]).toEqual([
        'https://github.com',
        '/login/oauth/authorize',
        'user:email',
      ]);
      expect(hub.searchParams.get('redirect_uri')).toBe(`${service.url}/api/auth/oauth/hub/callback`);
    });

    test('an unknown provider gets 404', async () => {
      for (const name of ['nobody', '__proto__', 'constructor']) {
        expect(problem(await new Browser().visit(start(service, '', name)))).toBe('404 not_found');
        expect(
          problem(await new Browser().visit(`${service.url}/api/auth/oauth/${name}/callback?code=x&state=y`)),
        ).toBe('404 not_found');
      }
    });

    test('a replayed callback fails', async () => {
      const browser = new Browser();
      const callback = await toCallback(service, browser);
      const flow = browser.cookie(service.url, 'svc_oauth')!;
      expect((await browser.visit(callback.href)).status).toBe(200);
      expect(problem(await browser.visit(callback.href))).toBe('400 oauth_failed');
      browser.setCookie(service.url, 'svc_oauth', flow);
      expect(problem(await browser.visit(callback.href))).toBe('400 oauth_failed');
    });

    test('a code works once, also in two flows', async () => {
      const [one, two] = [new Browser(), new Browser()];
      const callback = await toCallback(service, one);
      expect((await one.visit(callback.href)).status).toBe(200);
      const other = await toCallback(service, two);
      other.searchParams.set('code', callback.searchParams.get('code')!);
      expect(problem(await two.visit(other.href))).toBe('400 oauth_failed');
    });

    test("a victim's browser rejects the attacker's callback, with and without its own flow (login CSRF)", async () => {
      const attacker = await toCallback(service, new Browser());
      expect(problem(await new Browser().visit(attacker.href))).toBe('400 oauth_failed');
      const victim = new Browser();
      await toCallback(service, victim);
      const page = await victim.visit(attacker.href);
      expect(problem(page)).toBe('400 oauth_failed');
      expect(victim.cookie(service.url, 'svc_session')).toBeUndefined();
    });

    test('a callback rejects a state that is swapped, missing or given twice', async () => {
      for (const spoil of [
        (url: URL) => url.searchParams.set('state', 'f'.repeat(40)),
        (url: URL) => url.searchParams.delete('state'),
        (url: URL) => url.searchParams.append('state', url.searchParams.get('state')!),
      ]) {
        const browser = new Browser();
        const callback = await toCallback(service, browser, start(service, '?redirect_to=/after'));
        spoil(callback);
        const page = await browser.visit(callback.href);
        expect([problem(page), page.headers.get('location')]).toEqual(['400 oauth_failed', null]);
        expect(browser.cookie(service.url, 'svc_session')).toBeUndefined();
      }
    });

    test('a callback rejects the flow of another provider, and the answer of another issuer', async () => {
      const browser = new Browser();
      const callback = await toCallback(service, browser);
      expect(problem(await browser.visit(callback.href.replace('/idp/', '/posting/')))).toBe('400 oauth_failed');
      const second = new Browser();
      const mixed = await toCallback(service, second);
      mixed.searchParams.set('iss', 'https://elsewhere.example');
      expect(problem(await second.visit(mixed.href))).toBe('400 oauth_failed');
    });

    test('a declined sign-in reports its error, here or at redirect_to', async () => {
      idp.next = undefined;
      expect(problem(await new Browser().follow(start(service)))).toBe('403 oauth_denied');
      const callback = await toCallback(service, new Browser(), start(service, '?redirect_to=/after'));
      expect(callback.searchParams.get('error')).toBe('access_denied');
      const browser = new Browser();
      const page = await browser.follow(
        start(service, `?redirect_to=${encodeURIComponent('/after?a=1#b')}`),
        (url) => url.pathname === '/after',
      );
      expect(page.url).toBe(`${service.url}/after?a=1&error=oauth_denied#b`);
      expect(browser.cookie(service.url, 'svc_session')).toBeUndefined();
    });

    const forgeries: readonly (readonly [string, (nonce: string) => string])[] = [
      ['a wrong issuer', (nonce) => idp.idToken({ sub: 'x', nonce, iss: 'https://elsewhere.example' })],
      ['a wrong audience', (nonce) => idp.idToken({ sub: 'x', nonce, aud: 'another-client' })],
      [
        'another authorized party',
        (nonce) => idp.idToken({ sub: 'x', nonce, aud: [CLIENT_ID, 'another'], azp: 'another' }),
      ],
      ['a wrong nonce', () => idp.idToken({ sub: 'x', nonce: 'another' })],
      ['no nonce', () => idp.idToken({ sub: 'x' })],
      ['expired', (nonce) => idp.idToken({ sub: 'x', nonce, iat: 1_000, exp: 2_000 })],
      ['no subject', (nonce) => idp.idToken({ nonce })],
      ['alg none', (nonce) => idp.idToken({ sub: 'x', nonce }, { alg: 'none' }).replace(/[^.]+$/, '')],
      ['alg HS256', (nonce) => idp.idToken({ sub: 'x', nonce }, { alg: 'HS256' })],
      ['an unknown kid', (nonce) => idp.idToken({ sub: 'x', nonce }, { kid: 'another' })],
      [
        'a changed payload',
        (nonce) =>
          idp.idToken({ sub: 'y', nonce }).replace(/\.[^.]+\./, `.${idp.idToken({ sub: 'x', nonce }).split('.')[1]}.`),
      ],
      ['text', () => 'no token'],
    ];
    async function withToken(token: (nonce: string) => string): Promise<Page> {
      const browser = new Browser();
      const first = await browser.visit(start(service));
      const nonce = new URL(first.headers.get('location')!).searchParams.get('nonce')!;
      const callback = await toCallback(service, browser, first.headers.get('location')!);
      idp.spoiled.set('/token', answerJson(200, { access_token: 'a', token_type: 'Bearer', id_token: token(nonce) }));
      idp.spoiled.set('/me', answerJson(200, { sub: 'x', email: newEmail(), email_verified: true }));
      return browser.visit(callback.href);
    }
    test('a correct identity token passes: the forgeries fail for their claims', async () => {
      expect((await withToken((nonce) => idp.idToken({ sub: 'x', nonce }))).status).toBe(200);
    });
    test.each(forgeries)('a callback rejects an identity token with %s', async (_, token) => {
      expect(problem(await withToken(token))).toBe('400 oauth_failed');
    });
    test("a callback rejects a profile of another user than the identity token's", async () => {
      expect(problem(await withToken((nonce) => idp.idToken({ sub: 'z', nonce })))).toBe('400 oauth_failed');
    });

    test('a callback rejects an answer without an identity token', async () => {
      const browser = new Browser();
      const callback = await toCallback(service, browser);
      idp.spoiled.set('/token', answerJson(200, { access_token: 'a', token_type: 'Bearer' }));
      expect(problem(await browser.visit(callback.href))).toBe('400 oauth_failed');
    });

    /** Waits while the next tests run, until the service gives up. */
    let silent: Promise<Page>;
    const isSilent = Promise.withResolvers<void>();
    test('a provider that is down or lies about itself causes 503', async () => {
      idp.spoiled.set(
        '/liar/.well-known/openid-configuration',
        answerJson(200, {
          issuer: idp.url,
          authorization_endpoint: `${idp.url}/auth`,
          token_endpoint: `${idp.url}/token`,
          userinfo_endpoint: `${idp.url}/me`,
          jwks_uri: `${idp.url}/jwks`,
        }),
      );
      idp.spoiled.set('/silent/.well-known/openid-configuration', () => isSilent.resolve());
      silent = new Browser().visit(start(service, '', 'silent'));
      await isSilent.promise;
      const names = ['dead', 'liar'];
      const pages = await Promise.all(names.map((name) => new Browser().visit(start(service, '', name))));
      expect(pages.map(problem)).toEqual(names.map(() => '503 unavailable'));
      expect(pages.map((page) => page.headers.get('retry-after'))).toEqual(names.map(() => '5'));
    });

    test.each<Failure>([
      [
        'token: 503',
        '/token',
        (_, response) => void response.writeHead(503, { 'Content-Type': 'text/html' }).end('<h1>down</h1>'),
      ],
      ['token: 500 without a body', '/token', (_, response) => void response.writeHead(500).end()],
      ['token: the line is cut', '/token', (request) => void request.socket.destroy()],
      ['token: nothing comes', '/token', () => {}],
      ['token: temporarily_unavailable', '/token', answerJson(503, { error: 'temporarily_unavailable' })],
      ['profile: 503', '/me', (_, response) => void response.writeHead(503).end()],
      ['profile: the line is cut', '/me', (request) => void request.socket.destroy()],
    ])(
      'a provider that goes down in the middle (%s) causes 503, at redirect_to if there is one',
      async (_, path, handler) => {
        const [plain, redirected] = [new Browser(), new Browser()];
        const callback = await toCallback(service, plain);
        const other = await toCallback(service, redirected, start(service, '?redirect_to=/after'));
        idp.spoiled.set(path, handler);
        const [page, moved] = await Promise.all([plain.visit(callback.href), redirected.visit(other.href)]);
        expect([problem(page), page.headers.get('retry-after')]).toEqual(['503 unavailable', '5']);
        expect([moved.status, moved.headers.get('location')]).toEqual([302, '/after?error=unavailable']);
        expect(plain.cookie(service.url, 'svc_session')).toBeUndefined();
      },
    );

    test('a provider that does not answer causes 503 in time', async () => {
      const page = await silent;
      expect([problem(page), page.headers.get('retry-after')]).toEqual(['503 unavailable', '5']);
    });

    test('an identity joins an account only if both sides have proved the address', async () => {
      const verified = newEmail('verified');
      const { id } = await service.app.auth.admin.addUser({ email: verified, password: PASSWORD, roles: ['member'] });
      const unproved = await register(service.anonymous);
      const cases: readonly (readonly [Person, string])[] = [
        [person({ email: verified, email_verified: false }), '409 account_exists'],
        [person({ email: verified, email_verified: 'true' }), '409 account_exists'],
        [person({ email: verified, email_verified: 1 }), '409 account_exists'],
        [person({ email: verified, email_verified: undefined }), '409 account_exists'],
        [person({ email: unproved.email, email_verified: true }), '409 account_exists'],
        [person({ email: unproved.email, email_verified: false }), '409 account_exists'],
      ];
      for (const [who, expected] of cases) {
        idp.next = who;
        const browser = new Browser();
        expect(problem(await browser.follow(start(service)))).toBe(expected);
        expect(browser.cookie(service.url, 'svc_session')).toBeUndefined();
      }
      idp.next = person({ email: verified.toUpperCase() });
      expect(json(await new Browser().follow(start(service))).user.id).toBe(id);
      // From now on the identity counts, with any address that the provider sends.
      idp.next = { ...idp.next, email: newEmail('moved') };
      expect(json(await new Browser().follow(start(service))).user).toMatchObject({ id, email: verified });
      await login(service.anonymous, verified);
    });

    test('an account that a stranger made never becomes its owner’s, nor stays open to the stranger (pre-hijacking)', async () => {
      const stranger = await register(service.anonymous, newEmail('victim'));
      const held = await login(service.anonymous, stranger.email);
      idp.next = person({ email: stranger.email, email_verified: true });
      const owner = new Browser();
      expect(problem(await owner.follow(start(service)))).toBe('409 account_exists');
      expect(owner.cookie(service.url, 'svc_session')).toBeUndefined();
      expect((await held.client.get('/api/auth/me')).body.user.email_verified).toBe(false);
      // The other way round: by a provider that does not check addresses.
      const email = newEmail('victim');
      const thief = person({ email, email_verified: false });
      idp.next = thief;
      const made = json(await new Browser().follow(start(service)));
      expect(made.user).toMatchObject({ email, email_verified: false });
      expect(codeOf(await service.anonymous.post('/api/auth/register', { email, password: PASSWORD }))).toBe(
        '409 email_taken',
      );
      idp.next = person({ email, email_verified: true });
      expect(problem(await new Browser().follow(start(service)))).toBe('409 account_exists');
    });

    test('a disabled user does not get in', async () => {
      const { user } = json(await new Browser().follow(start(service)));
      await service.app.auth.admin.setDisabled(user.email, true);
      expect(problem(await new Browser().follow(start(service)))).toBe('403 oauth_denied');
    });

    test('a closed registration makes no account at a first sign-in, and lets known users in', async () => {
      const { user } = json(await new Browser().follow(start(service)));
      const register = service.app.schema.register as { open: boolean };
      register.open = false;
      try {
        expect(json(await new Browser().follow(start(service))).user.id).toBe(user.id);
        const stranger = person();
        idp.next = stranger;
        expect(problem(await new Browser().follow(start(service)))).toBe('403 registration_closed');
        const login = { email: stranger.email, password: PASSWORD };
        expect(codeOf(await service.anonymous.post('/api/auth/login', login))).toBe('401 invalid_credentials');
      } finally {
        register.open = true;
      }
    });

    test('a sign-in fails without an address, and with an invalid one', async () => {
      for (const email of [undefined, '', 'nobody', 'a b@example.org', 7, `${'x'.repeat(300)}@example.org`]) {
        idp.next = person({ email: email as string });
        expect(problem(await new Browser().follow(start(service)))).toBe('400 oauth_failed');
      }
    });

    test('the audit trail records sign-ins, without secrets', async () => {
      const page = await new Browser().follow(start(service));
      const rows = await service.app.auth.admin.audit({ limit: 1000 });
      const events = rows.filter((row) => row.user_id === json(page).user.id).map(({ event }) => event);
      expect(events).toEqual(['oauth_login', 'register']);
      expect(rows.some(({ event, detail }) => event === 'oauth_failed' && detail?.code === 'account_exists')).toBe(
        true,
      );
      expect(JSON.stringify(rows)).not.toContain(CLIENT_SECRET);
    });
  },
  { schema: OAUTH },
);
