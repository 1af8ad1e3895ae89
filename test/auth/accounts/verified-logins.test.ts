// @module-tag long
/** `register: { verify: true }`: a login needs a verified address. */
import { afterAll, expect, test } from 'vitest';
import { raw, sql, uuid } from '../../../src/sql.ts';
import { describeOnBoth, describeOnOne } from '../../support/service.ts';
import { until } from '../../support/until.ts';
import { SmtpServer, tokenIn } from '../mail/smtp-server.ts';
import { Browser } from '../oauth/identity-provider.ts';
import { CLIENT, ProviderDoubles, SECRET } from '../oauth/provider-doubles.ts';
import { codeOf, login, newEmail, PASSWORD, register, SCHEMA } from '../people.ts';

const VERIFYING = SCHEMA.replace('register: { roles: [member] }', 'register: { roles: [member], verify: true }');
const smtp = new SmtpServer();
await smtp.start();
const doubles = await ProviderDoubles.listen();
afterAll(() => {
  smtp.close();
  doubles.close();
});

describeOnOne(
  'logins with a verified address',
  (service) => {
    const tryLogin = (email: string, password = PASSWORD) =>
      service.anonymous.post('/api/auth/login', { email, password });
    const mail = async (to: string, nth = 1) => {
      await until(`mail ${nth} to ${to}`, () => smtp.to(to).length >= nth);
      return smtp.to(to)[nth - 1]!;
    };
    const settled = () =>
      until('no mail waits', async () => (await service.app.db.rows(raw('SELECT 1 FROM "_auth_outbox"'))).length === 0);
    const age = (seconds: number) =>
      service.app.db.run(
        raw(`UPDATE "_auth_email_tokens" SET expires_at = expires_at - interval '${seconds} seconds'`),
      );

    test('registration mails a token, and a login works once the address is verified', async () => {
      const { email, id } = await register(service.anonymous);
      const refused = await tryLogin(email);
      expect([codeOf(refused), refused.headers.getSetCookie()]).toEqual(['403 email_unverified', []]);
      const token = tokenIn(await mail(email));
      expect((await service.anonymous.post('/api/auth/email/verify/confirm', { token })).status).toBe(204);
      await login(service.anonymous, email);
      const events = await service.app.auth.admin.audit({ userId: id, event: 'login_failed', limit: 10 });
      expect(events.map(({ detail }) => detail)).toEqual([{ reason: 'email_unverified' }]);
    });

    test('only the right password reveals the state of an address, and mails', async () => {
      const { email } = await register(service.anonymous);
      await mail(email);
      await age(120);
      const [wrong, unknown] = [await tryLogin(email, 'a wrong password'), await tryLogin(newEmail(), 'a wrong one')];
      expect([codeOf(wrong), codeOf(unknown)]).toEqual(Array(2).fill('401 invalid_credentials'));
      await settled();
      expect(smtp.to(email)).toHaveLength(1);
    });

    test('refused logins mail once a minute, also ten at once', async () => {
      const { email } = await register(service.anonymous);
      await mail(email);
      await tryLogin(email);
      await settled();
      expect(smtp.to(email)).toHaveLength(1);
      await age(61);
      const codes = (await Promise.all(Array.from({ length: 10 }, () => tryLogin(email)))).map(codeOf);
      expect(codes).toEqual(Array(10).fill('403 email_unverified'));
      await mail(email, 2);
      await settled();
      expect(smtp.to(email)).toHaveLength(2);
      const token = tokenIn(await mail(email, 2));
      expect((await service.anonymous.post('/api/auth/email/verify/confirm', { token })).status).toBe(204);
      await login(service.anonymous, email);
    });

    test('a reset verifies the address, and an account of an admin may be verified already', async () => {
      const { email } = await register(service.anonymous);
      await mail(email);
      await service.anonymous.post('/api/auth/password/reset/request', { email });
      const token = tokenIn(await mail(email, 2));
      const password = 'an even longer phrase';
      expect((await service.anonymous.post('/api/auth/password/reset/confirm', { token, password })).status).toBe(204);
      await login(service.anonymous, email, password);
      expect((await service.user('member')).token).toBeTruthy();
    });
  },
  { schema: VERIFYING, env: { SMTP_URL: smtp.url } },
);

describeOnOne(
  'the limit of mails to a mailbox',
  (service) => {
    test('refused logins stop to mail at the limit, with the same answer', async () => {
      const { email } = await register(service.anonymous);
      for (let i = 0; i < 6; i++) {
        await until('no mail waits', async () => {
          const rows = await service.app.db.rows(raw('SELECT 1 FROM "_auth_outbox"'));
          return rows.length === 0;
        });
        await service.app.db.run(
          raw(`UPDATE "_auth_email_tokens" SET expires_at = expires_at - interval '61 seconds'`),
        );
        const refused = await service.anonymous.post('/api/auth/login', { email, password: PASSWORD });
        expect(codeOf(refused)).toBe('403 email_unverified');
      }
      await until('no mail waits', async () => {
        const rows = await service.app.db.rows(raw('SELECT 1 FROM "_auth_outbox"'));
        return rows.length === 0;
      });
      // That of the registration, and as many as the limit.
      expect(smtp.to(email)).toHaveLength(1 + 4);
    });
  },
  { schema: `${VERIFYING}limits: { reset: 4 in 1h }\n`, env: { SMTP_URL: smtp.url, BYLAW_RATE_LIMIT: 'on' } },
);

describeOnBoth(
  'an account that a provider made without a proof of the address',
  (service) => {
    const post = (path: string, body: object) => service.anonymous.post(`/api/auth/${path}`, body);
    const signIn = async () =>
      JSON.parse((await new Browser().follow(`${service.url}/api/auth/oauth/gitlab/start`)).text);
    const token = async (to: string, nth: number) => {
      await until(`mail ${nth} to ${to}`, () => smtp.to(to).length >= nth);
      return tokenIn(smtp.to(to)[nth - 1]!);
    };

    test('keeps the provider when the address is verified, until the next proof by the mailbox', async () => {
      const email = newEmail('made');
      doubles.next = { sub: email, email };
      expect((await signIn()).code).toBe('email_unverified');
      const { db, auth } = service.app;
      const [made] = await auth.admin.accounts({ email, limit: 1 });
      await db.run(sql`
        INSERT INTO "_auth_identities" (issuer, subject, user_id, created_at)
        VALUES ('https://later.example', 'later', ${uuid(made!.id)}, now())`);
      expect((await post('email/verify/confirm', { token: await token(email, 1) })).status).toBe(204);
      expect((await signIn()).user.id).toBe(made!.id);
      const identities = () => db.rows(sql`SELECT issuer FROM "_auth_identities" WHERE user_id = ${uuid(made!.id)}`);
      expect(await identities()).toEqual([[`${doubles.url}/gitlab`]]);

      await post('password/reset/request', { email });
      const reset = { token: await token(email, 2), password: 'an even longer phrase' };
      expect((await post('password/reset/confirm', reset)).status).toBe(204);
      expect(await identities()).toEqual([]);
      expect((await signIn()).code).toBe('account_exists');
    });
  },
  {
    schema: `${VERIFYING}oauth:
  gitlab: { preset: gitlab, issuer: '${doubles.url}/gitlab', client_id: ${CLIENT}, client_secret: ${SECRET} }
`,
    env: { SMTP_URL: smtp.url },
  },
);
