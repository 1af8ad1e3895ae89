// @module-tag long
/** Sign-ins of native apps: what an address, another app, another browser or a second try could gain. */
import { createHash, randomBytes } from 'node:crypto';
import { afterAll, beforeEach, describe, expect, test } from 'vitest';
import { isAppRedirect } from '../../../src/auth/oauth/app-redirects.ts';
import { sql } from '../../../src/sql.ts';
import { describeOnOne, type TestService } from '../../support/service.ts';
import { codeOfApp } from '../authenticator.ts';
import { Browser, type Page } from '../oauth/identity-provider.ts';
import { CLIENT, ProviderDoubles, SECRET } from '../oauth/provider-doubles.ts';
import { newEmail, SCHEMA } from '../people.ts';

const doubles = await ProviderDoubles.listen();
const schema = `${SCHEMA}
redirects: ['com.example.app://', 'http://127.0.0.1']
oauth:
  gitlab: { preset: gitlab, issuer: '${doubles.url}/gitlab', client_id: ${CLIENT}, client_secret: ${SECRET} }
`;
const APP = 'com.example.app://signed-in';
const INVALID = 'x'.repeat(43);
afterAll(() => doubles.close());
let serial = 0;
beforeEach(() => {
  doubles.next = { sub: `app-${++serial}`, email: newEmail('app'), verified: true };
});

const json = (page: Page) => JSON.parse(page.text);
function pair() {
  const verifier = randomBytes(32).toString('base64url');
  return { verifier, challenge: createHash('sha256').update(verifier).digest('base64url') };
}
const startOf = (service: TestService, parameters: Readonly<Record<string, string>>) =>
  `${service.url}/api/auth/oauth/gitlab/start?${new URLSearchParams(parameters)}`;
const exchange = (service: TestService, code: string, verifier: string) =>
  service.anonymous.post('/api/auth/oauth/exchange', { code, verifier });

/** Up to the app's address. */
async function signIn(service: TestService, { browser = new Browser(), target = APP } = {}) {
  const { verifier, challenge } = pair();
  const from = startOf(service, { redirect_to: target, code_challenge: challenge, code_challenge_method: 'S256' });
  const end = await browser.follow(from, ({ href }) => href.startsWith(target));
  const { searchParams } = new URL(end.url);
  return { end, browser, verifier, code: searchParams.get('code') ?? '', error: searchParams.get('error') };
}

const REJECTED = [
  'com.example.application://signed-in',
  'com.example.evil://signed-in',
  'COM.EXAMPLE.APP://signed-in',
  'com.example.app:signed-in',
  'com.example.app://x#code=evil',
  'com.example.app://x?code=evil',
  'com.example.app://x?a=1&error=evil',
  'com.example.app://x?%63ode=evil',
  'com.example.app://x?a=1&err%6Fr=evil',
  'com.example.app://x?code',
  'com.example.app://x\\y',
  'com.example.app://x y',
  `com.example.app://${'x'.repeat(2_048)}`,
  'javascript:alert(1)//com.example.app://',
  'http://127.0.0.1.evil.example/cb',
  'http://127.0.0.1@evil.example/cb',
  'http://user@127.0.0.1:8000/cb',
  'http://localhost:8000/cb',
  'http://127.0.0.2:8000/cb',
  'http://2130706433/cb',
  'https://127.0.0.1:8000/cb',
];

describe('addresses of native apps', () => {
  test.each(REJECTED)('an address is rejected: %j', (target) => {
    expect(isAppRedirect(target, ['com.example.app://', 'http://127.0.0.1'])).toBe(false);
  });

  test.each([
    ['com.example.app://', 'com.example.app://x?state=1'],
    ['com.example.app:/cb', 'com.example.app:/cb'],
    ['com.example.app:/cb', 'com.example.app:/cb/more'],
    ['http://127.0.0.1', 'http://127.0.0.1:49152/any'],
    ['http://127.0.0.1/cb', 'http://127.0.0.1:49152/cb?x=1'],
    ['http://[::1]/cb', 'http://[::1]:49152/cb'],
    ['http://127.0.0.1:8080/cb', 'http://127.0.0.1:8080/cb'],
  ])('%s admits %s', (allowed, target) => {
    expect(isAppRedirect(target, [allowed])).toBe(true);
  });

  test.each([
    ['com.example.app:/cb', 'com.example.app:/cbx'],
    ['http://127.0.0.1/cb', 'http://127.0.0.1:49152/other'],
    ['http://127.0.0.1:8080/cb', 'http://127.0.0.1:8081/cb'],
    ['http://[::1]/cb', 'http://127.0.0.1:49152/cb'],
  ])('%s does not admit %s', (allowed, target) => {
    expect(isAppRedirect(target, [allowed])).toBe(false);
  });
});

describeOnOne(
  'attacks on the sign-in of a native app',
  (service) => {
    test.each(REJECTED)('the start sends nobody to %j', async (target) => {
      const page = await new Browser().visit(
        startOf(service, { redirect_to: target, code_challenge: pair().challenge }),
      );
      expect([page.status, json(page).code, page.headers.get('location')]).toEqual([400, 'invalid_parameter', null]);
      expect(page.headers.getSetCookie()).toEqual([]);
    });

    test.each([
      ['without a challenge', { redirect_to: APP }],
      ['with a short challenge', { redirect_to: APP, code_challenge: 'abc' }],
      ['with the method plain', { redirect_to: APP, code_challenge: INVALID, code_challenge_method: 'plain' }],
      ['with a challenge for a page', { redirect_to: '/after', code_challenge: INVALID }],
      ['with a challenge for nobody', { code_challenge: INVALID }],
    ])('no sign-in starts %s', async (_, parameters) => {
      const page = await new Browser().visit(startOf(service, parameters as Record<string, string>));
      expect([page.status, json(page).code]).toEqual([400, 'invalid_parameter']);
      expect(json(page).errors[0].parameter).toMatch(/^code_challenge/);
    });

    test('the address has a code alone, the browser is not signed in, and the exchange is a login', async () => {
      const { end, browser, code, verifier } = await signIn(service);
      expect([end.status, end.headers.get('cache-control')]).toEqual([302, 'no-store']);
      expect(end.url).toBe(`${APP}?code=${code}`);
      expect(code).toMatch(/^[\w-]{43}$/);
      expect(browser.cookie(service.url, 'svc_session')).toBeUndefined();
      const { status, body, headers } = await exchange(service, code, verifier);
      expect([status, body.user.email, headers.get('cache-control')]).toEqual([200, doubles.next!.email, 'no-store']);
      const me = await service.anonymous.get('/api/auth/me', { Authorization: `Bearer ${body.access_token}` });
      expect(me.body.user.id).toBe(body.user.id);
    });

    test('a loopback address with the port of the day works', async () => {
      const { code, verifier } = await signIn(service, { target: 'http://127.0.0.1:49152/cb' });
      expect((await exchange(service, code, verifier)).status).toBe(200);
    });

    test('an error goes to the app', async () => {
      doubles.next = undefined;
      expect((await signIn(service)).end.url).toBe(`${APP}?error=oauth_denied`);
    });

    test('an app that intercepts a code has nothing without the verifier, and the code is spent', async () => {
      const { code, verifier } = await signIn(service);
      const wrong = await exchange(service, code, pair().verifier);
      expect([wrong.status, wrong.body.code]).toEqual([401, 'invalid_credentials']);
      const late = await exchange(service, code, verifier);
      expect([late.status, late.body]).toEqual([wrong.status, { ...wrong.body, request_id: late.body.request_id }]);
      const rows = await service.app.auth.admin.audit({ event: 'oauth_failed', limit: 1 });
      expect(rows[0]).toMatchObject({ detail: { code: 'invalid_credentials' } });
      expect(JSON.stringify(rows)).not.toContain(code);
    });

    test('a code that an attacker slips into the app of a victim is of another verifier (fixation)', async () => {
      const [attacker, victim] = [await signIn(service), await signIn(service)];
      expect((await exchange(service, attacker.code, victim.verifier)).status).toBe(401);
    });

    test('the callback of an attacker fails in the browser of a victim, with and without a flow of its own', async () => {
      const callbackOf = async (browser: Browser) => {
        const from = startOf(service, { redirect_to: APP, code_challenge: pair().challenge });
        return browser.follow(from, ({ pathname }) => pathname.endsWith('/callback'));
      };
      const { url } = await callbackOf(new Browser());
      const victim = new Browser();
      await callbackOf(victim);
      for (const browser of [victim, new Browser()]) {
        const page = await browser.visit(url);
        expect([page.status, json(page).code, page.headers.get('location')]).toEqual([400, 'oauth_failed', null]);
      }
    });

    test('the session of the browser has no part in it: an admin is not joined', async () => {
      const admin = await service.user('admin');
      const browser = new Browser();
      browser.setCookie(service.url, 'svc_session', admin.cookie.split('=')[1]!);
      doubles.next = { sub: `app-${++serial}`, email: admin.email, verified: true };
      expect((await signIn(service, { browser })).error).toBe('account_exists');
    });

    test('a second factor is asked at the exchange', async () => {
      const first = await signIn(service);
      const { body } = await exchange(service, first.code, first.verifier);
      const user = service.anonymous.with({ Authorization: `Bearer ${body.access_token}` });
      const { secret } = (await user.post('/api/auth/totp/enrol')).body;
      await user.post('/api/auth/totp/confirm', { code: codeOfApp(secret) });
      const { code, verifier } = await signIn(service);
      const asked = await exchange(service, code, verifier);
      expect(asked.body).toEqual({ challenge: expect.any(String), methods: ['totp', 'recovery'] });
      expect(asked.headers.getSetCookie()).toEqual([]);
    });

    test('another site does not exchange a code in a browser (login CSRF)', async () => {
      const { code, verifier } = await signIn(service);
      const foreign = service.anonymous.with({ 'Sec-Fetch-Site': 'cross-site' });
      const answer = await foreign.post('/api/auth/oauth/exchange', { code, verifier });
      expect([answer.status, answer.body.code]).toEqual([403, 'cross_origin']);
    });

    test.each(['', 'short', INVALID, `${INVALID}=`, "' OR true --"])('the code %j is refused', async (code) => {
      const { status, body } = await exchange(service, code, pair().verifier);
      expect([status, body.code]).toEqual([401, 'invalid_credentials']);
    });
  },
  { schema },
);

describeOnOne(
  'codes of native apps',
  (service) => {
    test('a code works once, also in a race', async () => {
      const { code, verifier } = await signIn(service);
      const answers = await Promise.all([1, 2, 3].map(() => exchange(service, code, verifier)));
      expect(answers.map(({ status }) => status).sort()).toEqual([200, 401, 401]);
    });

    test('a code ends after a minute, with a new start of all sessions, and with a disabled user', async () => {
      const old = await signIn(service);
      await service.app.db.run(sql`UPDATE "_auth_oauth_codes" SET expires_at = expires_at - interval '60 seconds'`);
      expect((await exchange(service, old.code, old.verifier)).status).toBe(401);
      const { email } = doubles.next!;
      const [ended, disabled] = [await signIn(service), await signIn(service)];
      expect((await exchange(service, ended.code, ended.verifier)).status).toBe(200);
      await service.app.auth.admin.setDisabled(email!, true);
      await service.app.auth.admin.setDisabled(email!, false);
      expect((await exchange(service, disabled.code, disabled.verifier)).status).toBe(401);
    });

    test('the database has neither code nor verifier', async () => {
      const { code, verifier } = await signIn(service);
      const rows = await service.app.db.rows(sql`SELECT to_json(c)::text FROM "_auth_oauth_codes" c`);
      expect(rows.length).toBeGreaterThan(0);
      expect(JSON.stringify(rows)).not.toContain(code);
      expect(JSON.stringify(rows)).not.toContain(verifier);
    });
  },
  { schema },
);
