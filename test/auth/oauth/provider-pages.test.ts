/** The page of the sign-in with providers, and the page that they return the browser to. Without script. */
import { Secret, TOTP } from 'otpauth';
import { afterAll, expect, test } from 'vitest';
import { describeOnOne } from '../../support/service.ts';
import { newEmail, SCHEMA } from '../people.ts';
import { Browser, type Page } from './identity-provider.ts';
import { CLIENT, ProviderDoubles, SECRET } from './provider-doubles.ts';

const doubles = await ProviderDoubles.listen();
afterAll(() => doubles.close());
const SCHEMA_TEXT = `${SCHEMA}
oauth:
  google: { preset: google, issuer: '${doubles.url}/google', client_id: ${CLIENT}, client_secret: ${SECRET} }
  company: { title: '<b>Us & them</b>', issuer: 'http://127.0.0.1:1', client_id: x, client_secret: y }
`;

describeOnOne(
  'providers on the pages of accounts',
  (service) => {
    const at = (path: string) => `${service.url}${path}`;
    const linkOf = ({ text }: Page, label: string) =>
      new RegExp(`<a href="([^"]+)">${label}</a>`).exec(text)?.[1]?.replaceAll('&amp;', '&');
    const hiddenIn = ({ text }: Page, name: string) =>
      new RegExp(`<input type="hidden" name="${name}" value="([^"]*)">`).exec(text)?.[1];
    const startBy = async (browser: Browser, query = '') =>
      at(linkOf(await browser.visit(at(`/auth/sign-in${query}`)), 'Sign in with Google')!);
    const account = (email = newEmail('page')) => ({ sub: email, email, name: 'Ada', verified: true });

    test('the sign-in has an escaped link for each provider, which keeps the target; its policy admits no more', async () => {
      const page = await new Browser().visit(at('/auth/sign-in?redirect_to=/welcome'));
      expect(linkOf(page, 'Sign in with Google')).toBe(
        `/api/auth/oauth/google/start?redirect_to=${encodeURIComponent('/auth/signed-in?redirect_to=%2Fwelcome')}`,
      );
      expect(page.text).toContain('Sign in with &lt;b&gt;Us &amp; them&lt;/b&gt;');
      expect(page.headers.get('content-security-policy')).toContain("form-action 'self'; base-uri 'none'");
      expect(page.text).not.toContain('<script');
    });

    test('the link signs a person in, and leads on', async () => {
      const browser = new Browser();
      doubles.next = account();
      const shown = await browser.follow(await startBy(browser));
      expect([shown.status, shown.text.includes('You are signed in.')]).toEqual([200, true]);
      doubles.next = account();
      const led = await browser.follow(await startBy(browser, '?redirect_to=/api/auth/me'));
      expect(JSON.parse(led.text).user.email).toBe(doubles.next.email);
    });

    test('a declined sign-in shows its error, and nothing of an address that anybody wrote', async () => {
      const browser = new Browser();
      doubles.next = undefined;
      const declined = await browser.follow(await startBy(browser, '?redirect_to=/welcome'));
      expect(declined.text).toContain('<p role="alert">The sign-in was declined</p>');
      expect(hiddenIn(declined, 'redirect_to')).toBe('/welcome');
      for (const code of ['<script>', 'constructor', '__proto__']) {
        const forged = await browser.visit(at(`/auth/signed-in?error=${encodeURIComponent(code)}`));
        expect(forged.text).toContain('<p role="alert">The sign-in at the provider failed</p>');
        expect(forged.text).not.toContain('<script');
      }
      const elsewhere = await browser.visit(at('/auth/signed-in?redirect_to=//evil.example'));
      expect([elsewhere.status, elsewhere.headers.get('location')]).toEqual([400, null]);
    });

    test('a visitor finds the form; the page changes nothing', async () => {
      const page = await new Browser().visit(at('/auth/signed-in?redirect_to=/welcome'));
      expect([page.status, hiddenIn(page, 'redirect_to'), page.headers.getSetCookie()]).toEqual([200, '/welcome', []]);
    });

    test('a second factor is asked for by the page, once, with its challenge in no address', async () => {
      const person = account();
      const browser = new Browser();
      doubles.next = person;
      await browser.follow(await startBy(browser));
      const cookie = `svc_session=${browser.cookie(service.url, 'svc_session')}`;
      const post = (path: string, body?: object) =>
        service.anonymous.post(path, body, { Cookie: cookie, Origin: service.url });
      const { secret } = (await post('/api/auth/totp/enrol')).body;
      const totp = new TOTP({ secret: Secret.fromBase32(secret) });
      await post('/api/auth/totp/confirm', { code: totp.generate() });
      const other = new Browser();
      doubles.next = person;
      const asked = await other.follow(await startBy(other, '?redirect_to=/api/auth/me'));
      expect(asked.url).toBe(at('/auth/signed-in?redirect_to=%2Fapi%2Fauth%2Fme'));
      expect(other.cookie(service.url, 'svc_session')).toBeUndefined();
      const challenge = hiddenIn(asked, 'challenge')!;
      const fields = { challenge, redirect_to: hiddenIn(asked, 'redirect_to')! };
      const code = totp.generate({ timestamp: Date.now() + 30_000 });
      const done = await service.anonymous.send('POST', '/auth/challenge', {
        headers: { 'Content-Type': 'application/x-www-form-urlencoded', Origin: service.url },
        raw: new URLSearchParams({ ...fields, code }).toString(),
      });
      expect([done.status, done.headers.get('location')]).toEqual([303, '/api/auth/me']);
      expect(hiddenIn(await other.visit(at('/auth/signed-in')), 'challenge')).toBeUndefined();
    });
  },
  { schema: SCHEMA_TEXT },
);
