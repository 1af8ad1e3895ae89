/** Checks of `users` hold for the accounts that people make themselves. */
import { afterAll, expect, test } from 'vitest';
import { raw } from '../../../src/sql.ts';
import { describeOnOne } from '../../support/service.ts';
import { until } from '../../support/until.ts';
import { SmtpServer, tokenIn } from '../mail/smtp-server.ts';
import { newEmail, PASSWORD } from '../people.ts';

const SCHEMA = `
roles: { admin: { assigns: [member] }, member: {} }
register: { roles: [member] }
mail: { invite_url: 'https://app.example/join?token={token}' }
collections:
  users:
    fields: { level: { type: int, default: 3 } }
    access: { update: [{ roles: [admin] }] }
    checks:
      allowed:
        when: '@next.email != "mallory@example.org" or @request.auth.roles contains "admin"'
        message: this address is barred
      level: { when: '@next.level > 2 and @next.id != @request.auth.id', message: the level is too low, fields: [level] }
`;

const smtp = new SmtpServer();
await smtp.start();
afterAll(() => smtp.close());

describeOnOne(
  'checks of users',
  (service) => {
    const BARRED = [{ pointer: '', code: 'check_failed', check: 'allowed', detail: 'this address is barred' }];
    const register = (email: string) => service.anonymous.post('/api/auth/register', { email, password: PASSWORD });

    test('a registration that fails a check makes no account', async () => {
      const { status, body } = await register('Mallory@example.org');
      expect([status, body.code, body.detail, body.errors]).toEqual([
        422,
        'validation_failed',
        'this address is barred',
        BARRED,
      ]);
      const claim = { email: 'mallory@example.org', password: PASSWORD };
      expect((await service.anonymous.post('/api/auth/login', claim)).body.code).toBe('invalid_credentials');
      expect((await register(newEmail())).status).toBe(201);
    });

    test('an administrator makes the account, whom the checks of registration do not bind', async () => {
      const admin = await service.user('admin');
      const email = 'mallory@example.org';
      expect((await admin.client.post('/api/auth/users', { email, roles: ['member'] })).status).toBe(201);
    });

    test('an invitation is judged when it is sent, and once more when it is taken', async () => {
      const { client } = await service.user('admin');
      const email = newEmail('invited');
      const invite = (data: object) => client.post('/api/users/invite', { email, roles: ['member'], data });
      expect((await invite({ level: 1 })).body.errors).toMatchObject([{ check: 'level' }]);
      expect((await invite({ level: 4 })).status).toBe(202);
      await until('the mail is sent', () => smtp.to(email).length > 0);
      const token = tokenIn(smtp.to(email)[0]!);
      await service.app.db.run(raw(`UPDATE "_auth_invites" SET data = '{"level":1}' WHERE email = '${email}'`));
      const confirm = () => service.anonymous.post('/api/auth/invite/confirm', { token, password: PASSWORD });
      expect((await confirm()).body.errors).toMatchObject([{ pointer: '', check: 'level' }]);
      await service.app.db.run(raw(`UPDATE "_auth_invites" SET data = '{"level":5}' WHERE email = '${email}'`));
      expect((await confirm()).status).toBe(204);
    });
  },
  { schema: SCHEMA, env: { SMTP_URL: smtp.url } },
);
