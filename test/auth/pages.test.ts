// @module-tag long
/** The service's own pages of accounts: without script, and safe from scanners, other sites and what an address brings. */
import { createHash } from 'node:crypto';
import { Secret, TOTP } from 'otpauth';
import { afterAll, expect, test } from 'vitest';
import { SetupOffer } from '../../src/auth/accounts/setup-offer.ts';
import { newSecret } from '../../src/auth/sessions/secrets.ts';
import { raw, sql, text, uuid } from '../../src/sql.ts';
import type { Answer } from '../support/client.ts';
import { describeOnOne } from '../support/service.ts';
import { until } from '../support/until.ts';
import { SmtpServer, tokenIn } from './mail/smtp-server.ts';
import { codeOf, cookieOf, login, newEmail, newPerson, PASSWORD, register, SCHEMA } from './people.ts';

const NEXT = 'an even longer phrase';
const PAGED = `${SCHEMA}mail: { app_name: 'A <b> & B', otp: true, logo: 'https://cdn.example/logo.svg' }\norigins: ['https://app.example']\n`;
const setup = new SetupOffer();
const smtp = new SmtpServer();
await smtp.start();
afterAll(() => smtp.close());

describeOnOne(
  'pages of accounts',
  (service) => {
    const get = (path: string) => service.anonymous.get(`/auth/${path}`);
    const post = (page: string, fields: Record<string, string>, headers: Record<string, string> = {}) =>
      service.anonymous.send('POST', `/auth/${page}`, {
        headers: { 'Content-Type': 'application/x-www-form-urlencoded', ...headers },
        raw: new URLSearchParams(fields).toString(),
      });
    const mail = async (to: string, nth = 1) => {
      await until(`mail ${nth} to ${to}`, () => smtp.to(to).length >= nth);
      return smtp.to(to)[nth - 1]!;
    };
    /** The path of the link of a mail. */
    const linkIn = (source: string) => new RegExp(`^${service.url}/auth/(\\S+)$`, 'm').exec(source)![1]!;
    const hiddenIn = ({ text }: Answer, name: string) =>
      new RegExp(`<input type="hidden" name="${name}" value="([^"]*)">`).exec(text)?.[1];

    test('a page has no script, loads nothing but the logo, and is not kept', async () => {
      const answer = await get('sign-in');
      expect([answer.status, answer.headers.get('content-type')]).toEqual([200, 'text/html; charset=utf-8']);
      expect(answer.headers.get('cache-control')).toBe('no-store');
      expect(answer.headers.get('content-security-policy')!.split('; ')).toEqual([
        "default-src 'none'",
        expect.stringMatching(/^style-src 'sha256-[\w+/=]{44}'$/),
        'img-src https://cdn.example',
        "form-action 'self' https://app.example",
        "base-uri 'none'",
        "frame-ancestors 'none'",
      ]);
      expect(answer.text).not.toMatch(/<script|javascript:| on\w+=/);
      expect(answer.text).toContain('A &lt;b&gt; &amp; B');
      expect(answer.text).toContain('<img src="https://cdn.example/logo.svg"');
    });

    test('a passkey is renamed on its page, by its user alone', async () => {
      const [owner, other] = [await newPerson(service.anonymous), await newPerson(service.anonymous)];
      const id = crypto.randomUUID();
      await service.app.db.run(sql`
        INSERT INTO "_auth_passkeys" (id, user_id, credential_id, public_key, counter, name, created_at)
        VALUES (${uuid(id)}, ${uuid(owner.id)}, ${text(newSecret())}, 'AA', 0, 'phone', now())`);
      const rename = (person: typeof owner, fields: Record<string, string>) =>
        post('passkeys', { step: 'rename', id, ...fields }, { Cookie: person.cookie });
      const shown = async () => (await owner.cookieClient.get('/auth/passkeys')).text;
      expect(await shown()).toMatch(/<button>Rename phone<\/button>[\s\S]*<button>Remove phone<\/button>/);
      expect((await rename(other, { name: 'mine' })).status).toBe(404);
      expect((await rename(owner, { name: '' })).status).toBe(422);
      expect((await rename(owner, { name: 'a', id: 'x' })).status).toBe(404);
      expect(await shown()).toContain('<button>Rename phone</button>');
      expect((await rename(owner, { name: 'key & <b>' })).text).toContain('The passkey is called key &amp; &lt;b&gt;.');
      expect(await shown()).toContain('<button>Rename key &amp; &lt;b&gt;</button>');
    });

    test('the link of a mail leads to a page, whose GET changes nothing, and whose click verifies', async () => {
      const person = await newPerson(service.anonymous);
      await person.client.post('/api/auth/email/verify/request');
      const { source } = await mail(person.email);
      const link = linkIn(source);
      for (let i = 0; i < 3; i++) expect((await get(link)).status).toBe(200);
      expect((await person.client.get('/api/auth/me')).body.user.email_verified).toBe(false);
      const token = hiddenIn(await get(link), 'token')!;
      const clicked = await post('verify', { token });
      expect([clicked.status, clicked.text.includes('is confirmed')]).toEqual([200, true]);
      expect((await person.client.get('/api/auth/me')).body.user.email_verified).toBe(true);
      const again = await post('verify', { token });
      expect([again.status, again.text.includes('role="alert"')]).toEqual([422, true]);
    });

    test('a forgotten password is set by two forms; known and unknown addresses look alike', async () => {
      const { email } = await register(service.anonymous);
      const [known, unknown] = [await post('forgot', { email }), await post('forgot', { email: newEmail('nobody') })];
      expect([known.status, known.text]).toEqual([unknown.status, unknown.text]);
      const link = linkIn((await mail(email)).source);
      const token = hiddenIn(await get(link), 'token')!;
      const weak = await post('reset', { token, password: 'password1' });
      expect([weak.status, hiddenIn(weak, 'token'), weak.text.includes('password1')]).toEqual([422, token, false]);
      expect((await post('reset', { token, password: NEXT })).status).toBe(200);
      await login(service.anonymous, email, NEXT);
    });

    test('an invitation is accepted, and an address is changed', async () => {
      const admin = await service.user('admin');
      const email = newEmail('invited');
      await admin.client.post('/api/users/invite', { email, roles: ['member'] });
      const invite = hiddenIn(await get(linkIn((await mail(email)).source)), 'token')!;
      expect((await post('invite', { token: invite, password: PASSWORD })).status).toBe(200);
      const person = await login(service.anonymous, email);
      const next = newEmail('next');
      await person.client.post('/api/auth/email/change/request', { email: next, password: PASSWORD });
      const change = hiddenIn(await get(linkIn((await mail(next)).source)), 'token')!;
      const changed = await post(
        'email',
        { token: change },
        { Cookie: person.cookie, 'Sec-Fetch-Site': 'same-origin' },
      );
      expect(changed.status).toBe(200);
      expect((await person.client.get('/api/auth/me')).body.user.email).toBe(next);
    });

    test('a password signs in, and leads to a path or an origin of the schema only', async () => {
      const { email } = await register(service.anonymous);
      const plain = await post('sign-in', { email, password: PASSWORD, redirect_to: '' });
      expect([plain.status, plain.text.includes('You are signed in')]).toEqual([200, true]);
      const cookie = cookieOf(plain, 'svc_session')!;
      expect((await service.anonymous.with({ Cookie: cookie }).get('/api/auth/me')).body.user.email).toBe(email);
      for (const target of ['/welcome?x=1', 'https://app.example/in']) {
        const answer = await post('sign-in', { email, password: PASSWORD, redirect_to: target });
        expect([answer.status, answer.headers.get('location'), answer.text]).toEqual([303, target, '']);
      }
      for (const target of [
        '//evil.example',
        'https://evil.example',
        'javascript:alert(1)',
        '/\\evil',
        'https://app.example.evil.example',
      ]) {
        const answer = await post('sign-in', { email, password: PASSWORD, redirect_to: target });
        expect([target, answer.status, answer.headers.getSetCookie()]).toEqual([target, 400, []]);
      }
      const wrong = await post('sign-in', { email, password: 'a wrong password', redirect_to: '/x' });
      expect([wrong.status, hiddenIn(wrong, 'redirect_to'), wrong.headers.getSetCookie()]).toEqual([401, '/x', []]);
      expect(wrong.text).not.toContain('a wrong password');
    });

    test('a code and a link of a mail sign in', async () => {
      const { email } = await register(service.anonymous);
      const asked = await post('code', { email, redirect_to: '' });
      const unknown = await post('code', { email: newEmail('nobody'), redirect_to: '' });
      expect([asked.status, unknown.status, hiddenIn(asked, 'email')]).toEqual([200, 200, email]);
      const code = /^(\d{6})$/m.exec((await mail(email)).source)![1]!;
      expect((await post('code', { email, code: code === '000000' ? '000001' : '000000' })).status).toBe(401);
      const answer = await post('code', { email, code, redirect_to: '/in' });
      expect([answer.status, cookieOf(answer, 'svc_session') !== undefined]).toEqual([303, true]);
      await post('code', { email });
      const link = linkIn((await mail(email, 2)).source);
      const token = hiddenIn(await get(link), 'token')!;
      expect(cookieOf(await post('login', { token }), 'svc_session')).toBeTruthy();
      expect((await post('login', { token })).status).toBe(401);
    });

    test('a second factor is asked on a page of its own', async () => {
      const person = await newPerson(service.anonymous);
      const { secret } = (await person.client.post('/api/auth/totp/enrol', { password: PASSWORD })).body;
      const totp = new TOTP({ secret: Secret.fromBase32(secret) });
      const now = Date.now();
      const confirmed = await person.client.post('/api/auth/totp/confirm', { code: totp.generate({ timestamp: now }) });
      expect(confirmed.status).toBe(200);
      const asked = await post('sign-in', { email: person.email, password: PASSWORD, redirect_to: '/in' });
      expect([asked.status, asked.headers.getSetCookie(), hiddenIn(asked, 'redirect_to')]).toEqual([200, [], '/in']);
      const challenge = hiddenIn(asked, 'challenge')!;
      const wrong = await post('challenge', { challenge, code: 'x', redirect_to: '/in' });
      expect([wrong.status, hiddenIn(wrong, 'challenge')]).toEqual([401, challenge]);
      const code = totp.generate({ timestamp: now + 30_000 });
      const answer = await post('challenge', { challenge, code, redirect_to: '/in' });
      expect([answer.status, answer.headers.get('location')]).toEqual([303, '/in']);
      expect(cookieOf(answer, 'svc_session')).toBeTruthy();
    });

    test('the pages of a user need a session, a step of their own, and show no other user', async () => {
      const person = await newPerson(service.anonymous);
      const signedIn = { Cookie: person.cookie, 'Sec-Fetch-Site': 'same-origin' };
      for (const page of ['second-factor', 'passkeys']) {
        const visitor = await get(page);
        expect([visitor.status, visitor.text.includes(`href="/auth/sign-in?redirect_to=/auth/${page}"`)]).toEqual([
          200,
          true,
        ]);
        expect((await post(page, { step: 'enrol' })).status).toBe(page === 'passkeys' ? 422 : 401);
        for (const step of ['', 'toString', '__proto__', 'show'])
          expect((await post(page, { step }, signedIn)).status).toBe(422);
        const foreign = await post(page, { step: 'enrol' }, { ...signedIn, 'Sec-Fetch-Site': 'cross-site' });
        expect(codeOf(foreign)).toBe('403 cross_origin');
      }
      const remove = (id: string) => post('passkeys', { step: 'remove', id }, signedIn);
      for (const id of ['x', person.id]) expect((await remove(id)).status).toBe(404);
      const made = await post('second-factor', { step: 'enrol' }, signedIn);
      expect([made.status, /<svg|<code>[A-Z2-7]{32}</.test(made.text)]).toEqual([200, true]);
      const csp = made.headers.get('content-security-policy');
      expect([csp?.includes('script-src'), made.headers.get('cache-control')]).toEqual([false, 'no-store']);
    });

    test('a page that uses a passkey runs one script, named by its hash', async () => {
      const asked = await post('passkey', {});
      const [, script] = /<script>([\s\S]*)<\/script>/.exec(asked.text)!;
      const hash = createHash('sha256').update(script!).digest('base64');
      expect(asked.headers.get('content-security-policy')).toContain(`script-src 'sha256-${hash}'`);
      expect(asked.text.match(/<script/g)).toHaveLength(1);
      const wrong = await post('passkey', { response: '{"id":"x","response":{}}' });
      expect([wrong.status, wrong.headers.getSetCookie()]).toEqual([401, []]);
      expect((await post('passkey', { response: 'x' })).status).toBe(422);
    });

    test('the first administrator is made with the token of the start', async () => {
      await service.app.db.run(raw(`UPDATE "users" SET roles = '{}'`));
      const token = newSecret();
      setup.open(token);
      const email = newEmail('first');
      expect((await get('setup')).text).toContain('name="token" type="text"');
      expect((await post('setup', { token: newSecret(), email, password: PASSWORD })).status).toBe(404);
      const address = `${service.url}/auth/setup#token=${token}`;
      const made = await post('setup', { token: address, email, password: PASSWORD });
      expect([made.status, /href="([^"]+)"/.exec(made.text)![1]]).toEqual([200, '/auth/sign-in?redirect_to=%2Fstudio']);
      expect((await login(service.anonymous, email)).access).toBeTruthy();
    });

    test('the values of an address and of a form are text', async () => {
      const evil = '"><script>alert(1)</script>';
      const query = `token=${encodeURIComponent(evil)}&redirect_to=${encodeURIComponent(evil)}&email=${encodeURIComponent(evil)}`;
      for (const page of [
        'sign-in',
        'reset',
        'verify',
        'invite',
        'login',
        'code',
        'email',
        'setup',
        'challenge',
        'forgot',
        'passkey',
        'passkeys',
        'second-factor',
      ]) {
        expect((await get(`${page}?${query}`)).text).not.toContain('<script');
        const answer = await post(page, {
          token: evil,
          email: evil,
          code: evil,
          challenge: evil,
          password: evil,
          response: evil,
        });
        expect([page, answer.status >= 400, answer.text.includes('<script')]).toEqual([page, true, false]);
      }
    });

    test.each<[string, Record<string, string>, string]>([
      ['another site', { 'Sec-Fetch-Site': 'cross-site' }, '403 cross_origin'],
      ['another origin', { Origin: 'https://evil.example' }, '403 cross_origin'],
      ['JSON', { 'Content-Type': 'application/json' }, '415 unsupported_media_type'],
    ])('a form is not taken from %s', async (_, headers, code) => {
      const { email } = await register(service.anonymous);
      const answer = await post('sign-in', { email, password: PASSWORD }, headers);
      expect([codeOf(answer), answer.headers.getSetCookie()]).toEqual([code, []]);
    });

    test('a form is small, valid, and has a field once', async () => {
      const send = (body: string | Uint8Array<ArrayBuffer>) =>
        service.anonymous.send('POST', '/auth/sign-in', {
          headers: { 'Content-Type': 'application/x-www-form-urlencoded' },
          raw: body,
        });
      const answers = [
        await send(`email=${'x'.repeat(20_000)}`),
        await send('email=a&email=b'),
        await send(new Uint8Array([0x65, 0x3d, 0xff])),
      ];
      expect(answers.map(codeOf)).toEqual(['413 too_large', ...Array(2).fill('422 validation_failed')]);
    });

    test('the mails of the links have no token elsewhere, and the token of the page works once', async () => {
      const { email } = await register(service.anonymous);
      await post('forgot', { email });
      const received = await mail(email);
      const token = tokenIn(received);
      const codes = (
        await Promise.all(Array.from({ length: 5 }, (_, i) => post('reset', { token, password: `${NEXT} ${i}` })))
      ).map(({ status }) => status);
      expect(codes.toSorted()).toEqual([200, 422, 422, 422, 422]);
    });
  },
  { schema: PAGED, env: { SMTP_URL: smtp.url }, setup },
);

describeOnOne(
  'pages without codes by mail',
  (service) => {
    test('the pages of codes are missing', async () => {
      expect(codeOf(await service.anonymous.get('/auth/code'))).toBe('404 not_found');
      expect(codeOf(await service.anonymous.get('/auth/login?token=x'))).toBe('404 not_found');
      expect((await service.anonymous.get('/auth/sign-in')).text).not.toContain('/auth/code');
    });
  },
  { schema: SCHEMA },
);
