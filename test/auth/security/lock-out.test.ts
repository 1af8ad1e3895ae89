/** Strangers who use up the attempts of codes and of registrations, and owners who get in nevertheless. */
import { afterAll, expect, test } from 'vitest';
import { raw } from '../../../src/sql.ts';
import { describeOnOne, type TestService } from '../../support/service.ts';
import { until } from '../../support/until.ts';
import { SmtpServer, tokenIn } from '../mail/smtp-server.ts';
import { codeOf, login, newEmail, PASSWORD, SCHEMA } from '../people.ts';

const LIMITED = `${SCHEMA.replace(/roles:/, 'proxies: [127.0.0.1]\nroles:')}
mail: { otp: true }
limits: { login_account: 10 in 15m, register: 6 in 15m, reset: 6 in 15m }
`;
const smtp = new SmtpServer();
await smtp.start();
afterAll(() => smtp.close());
const LIMIT = '429 rate_limited';
let last = 0;
const somewhere = (): string => `10.9.${++last >> 8}.${last & 255}`;
const from = (service: TestService, address: string) => service.anonymous.with({ 'X-Forwarded-For': address });

describeOnOne(
  'lock-out',
  (service) => {
    const person = async () => {
      const email = newEmail();
      await service.app.auth.admin.addUser({ email, password: PASSWORD, roles: ['member'] });
      return email;
    };
    const mailed = async (address: string, email: string) => {
      const before = smtp.to(email).length;
      expect((await from(service, address).post('/api/auth/otp/request', { email })).status).toBe(202);
      await until('the mail', () => smtp.to(email).length > before);
      return smtp.to(email).at(-1)!;
    };
    const guess = (email: string) =>
      from(service, somewhere()).post('/api/auth/otp/confirm', { email, code: 'xxxxxx' });

    test('the link of a mail signs in, and a known network too, when strangers have used up the codes', async () => {
      const email = await person();
      const home = somewhere();
      await login(from(service, home), email);
      const mail = await mailed(home, email);
      const codes: string[] = [];
      for (let i = 0; i < 11; i++) codes.push(codeOf(await guess(email)));
      expect(codes).toEqual([...Array(10).fill('401 invalid_credentials'), LIMIT]);
      const link = await from(service, somewhere()).post('/api/auth/otp/confirm', { token: tokenIn(mail) });
      expect(link.status).toBe(200);
      const code = /^(\d{6})$/m.exec((await mailed(home, email)).source)![1]!;
      // Each code has five tries, of which a stranger over the limit spends none.
      for (let i = 0; i < 6; i++) expect(codeOf(await guess(email))).toBe(LIMIT);
      expect((await from(service, home).post('/api/auth/otp/confirm', { email, code })).status).toBe(200);
    });

    test('L9: many strangers do not keep the owner from a mail at a known address, and do not flood the mailbox', async () => {
      const [email, home] = [await person(), somewhere()];
      await login(from(service, home), email);
      const askFor = async (route: string, address: string, mailbox: string) =>
        (await from(service, address).post(`/api/auth/${route}/request`, { email: mailbox })).status;
      const isSent = () =>
        until('the mails', async () => (await service.app.db.rows(raw('SELECT 1 FROM "_auth_outbox"'))).length === 0);
      for (const route of ['password/reset', 'otp', 'password/reset', 'otp'])
        for (const mailbox of [email, newEmail('nobody')])
          for (let i = 0; i < 2; i++) expect(await askFor(route, somewhere(), mailbox)).toBe(202);
      await isSent();
      expect(smtp.to(email)).toHaveLength(6);
      for (let i = 0; i < 3; i++) expect(await askFor('otp', home, email)).toBe(202);
      await isSent();
      expect(smtp.to(email)).toHaveLength(9);
    });

    test('an administrator mails a reset to a user whose mailbox has reached its limit', async () => {
      const [email, admin] = [await person(), await service.user('admin')];
      const [{ id }] = (await admin.client.get(`/api/auth/users?email=${email}`)).body.data;
      for (let i = 0; i < 7; i++) await from(service, somewhere()).post('/api/auth/password/reset/request', { email });
      await until('the mails', () => smtp.to(email).length === 6);
      expect((await admin.client.post(`/api/users/${id}/password-reset`)).status).toBe(202);
      await until('the mail', () => smtp.to(email).length === 7);
    });

    test('a stranger uses up neither the registrations nor the mails of an address', async () => {
      const email = newEmail('victim');
      const [stranger, owner] = [from(service, somewhere()), from(service, somewhere())];
      const attempts = {
        mails: (client = stranger) => client.post('/api/auth/password/reset/request', { email }),
        registrations: (client = stranger) => client.post('/api/auth/register', { email, password: 'short' }),
      };
      for (const attempt of [attempts.mails, attempts.registrations]) {
        const codes: string[] = [];
        for (let i = 0; i < 7; i++) codes.push(codeOf(await attempt()));
        expect(codes.at(-1)).toBe(LIMIT);
      }
      expect((await attempts.mails(owner)).status).toBe(202);
      expect((await owner.post('/api/auth/register', { email, password: PASSWORD })).status).toBe(201);
    });
  },
  { schema: LIMITED, env: { BYLAW_RATE_LIMIT: 'on', SMTP_URL: smtp.url } },
);
