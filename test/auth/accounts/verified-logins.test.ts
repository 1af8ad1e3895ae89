// @module-tag long
/** `register: { verify: true }`: a login needs a verified address. */
import { afterAll, expect, test } from 'vitest';
import { raw } from '../../../src/sql.ts';
import { describeOnOne } from '../../support/service.ts';
import { until } from '../../support/until.ts';
import { SmtpServer, tokenIn } from '../mail/smtp-server.ts';
import { codeOf, login, newEmail, PASSWORD, register, SCHEMA } from '../people.ts';

const VERIFYING = SCHEMA.replace('register: { roles: [member] }', 'register: { roles: [member], verify: true }');
const smtp = new SmtpServer();
await smtp.start();
afterAll(() => smtp.close());

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
