/** Confirming an address and resetting a password by mail; the mails are files in the data folder. */
import { mkdtemp, readdir, readFile, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { Mailer, mailErrorOf } from '../../../src/auth/mail/mailer.ts';
import { raw } from '../../../src/sql.ts';
import { describeOnOne } from '../../support/service.ts';
import { until } from '../../support/until.ts';
import { codeOf, login, newEmail, newPerson, PASSWORD, refresh, register, SCHEMA } from '../people.ts';

const data = await mkdtemp(join(tmpdir(), 'bylaw-mail-'));
const folder = join(data, 'mail');
const NEXT = 'an even longer phrase';

const mails = async (to: string): Promise<readonly string[]> => {
  const files = await readdir(folder).catch(() => []);
  const texts = await Promise.all(files.sort().map((file) => readFile(join(folder, file), 'utf8')));
  return texts.filter((text) => text.includes(`To: ${to}`));
};
async function tokenFor(to: string, nth = 1): Promise<string> {
  await until(`mail ${nth} to ${to}`, async () => (await mails(to)).length >= nth);
  const text = (await mails(to))[nth - 1]!.replace(/=\n/g, '').replace(/=3D/g, '=');
  return /(?:^|=)([\w-]{43})$/m.exec(text)![1]!;
}

describeOnOne(
  'mail',
  (service) => {
    const { anonymous: send } = {
      get anonymous() {
        return (path: string, body: unknown) => service.anonymous.post(`/api/auth/${path}`, body);
      },
    };
    const ask = (email: string) => send('password/reset/request', { email });
    const confirm = (token: string, password = NEXT) => send('password/reset/confirm', { token, password });

    test('the token of a mail confirms an address, once', async () => {
      const person = await newPerson(service.anonymous);
      const asked = await person.client.post('/api/auth/email/verify/request');
      expect([asked.status, asked.text]).toEqual([202, '']);
      const token = await tokenFor(person.email);
      expect((await person.client.get('/api/auth/me')).body.user.email_verified).toBe(false);
      const confirmed = await send('email/verify/confirm', { token });
      expect([confirmed.status, confirmed.text]).toEqual([204, '']);
      expect((await person.client.get('/api/auth/me')).body.user.email_verified).toBe(true);
      const again = await send('email/verify/confirm', { token });
      expect(codeOf(again)).toBe('422 validation_failed');
      expect(again.body.errors).toMatchObject([{ pointer: '/token', code: 'invalid_token' }]);
      expect((await person.client.post('/api/auth/email/verify/request')).status).toBe(202);
      expect(codeOf(await service.anonymous.post('/api/auth/email/verify/request'))).toBe('401 unauthenticated');
      expect(await mails(person.email)).toHaveLength(1);
    });

    test('a password is reset by the token of a mail, once; all sessions end, and the address is proved', async () => {
      const person = await newPerson(service.anonymous);
      expect((await ask(person.email.toUpperCase())).status).toBe(202);
      const token = await tokenFor(person.email);
      const weak = await confirm(token, 'password1');
      expect(weak.body.errors).toMatchObject([{ pointer: '/password', code: 'common_password' }]);
      const done = await confirm(token);
      expect([done.status, done.text]).toEqual([204, '']);
      expect(codeOf(await person.client.get('/api/auth/me'))).toBe('401 invalid_token');
      expect(codeOf(await person.cookieClient.get('/api/auth/me'))).toBe('401 unauthenticated');
      expect(codeOf(await refresh(service.anonymous, person.refresh))).toBe('401 invalid_token');
      expect(codeOf(await send('login', { email: person.email, password: PASSWORD }))).toBe('401 invalid_credentials');
      const { client } = await login(service.anonymous, person.email, NEXT);
      expect((await client.get('/api/auth/me')).body.user.email_verified).toBe(true);
      expect(codeOf(await confirm(token))).toBe('422 validation_failed');
    });

    test('the token of a mail serves one of ten concurrent requests', async () => {
      const { email } = await register(service.anonymous);
      await ask(email);
      const token = await tokenFor(email);
      const codes = (await Promise.all(Array.from({ length: 10 }, (_, i) => confirm(token, `${NEXT} ${i}`)))).map(
        codeOf,
      );
      expect(codes.sort()).toEqual(['204 undefined', ...Array(9).fill('422 validation_failed')]);
    });

    test('an unknown address gets the same answer and no mail', async () => {
      const { email } = await register(service.anonymous);
      const stranger = newEmail('nobody');
      const [known, unknown] = [await ask(email), await ask(stranger)];
      const comparable = ({ status, text, headers }: typeof known) => [
        status,
        text,
        [...headers].filter(([name]) => !['x-request-id', 'date'].includes(name)),
      ];
      expect(comparable(unknown)).toEqual(comparable(known));
      await tokenFor(email);
      expect(await mails(stranger)).toEqual([]);
    });

    test('a token works for an hour, for its purpose, for its address, and for an enabled user', async () => {
      const { db, auth } = service.app;
      const make = async () => {
        const { email } = await register(service.anonymous);
        await ask(email);
        return { email, token: await tokenFor(email) };
      };
      const old = await make();
      await db.run(raw(`UPDATE "_auth_email_tokens" SET expires_at = expires_at - interval '59 minutes'`));
      const good = await confirm(old.token);
      expect(good.status).toBe(204);
      const older = await make();
      await db.run(raw(`UPDATE "_auth_email_tokens" SET expires_at = expires_at - interval '61 minutes'`));
      expect(codeOf(await confirm(older.token))).toBe('422 validation_failed');
      const other = await make();
      expect(codeOf(await send('email/verify/confirm', { token: other.token }))).toBe('422 validation_failed');
      const disabled = await make();
      await auth.admin.setDisabled(disabled.email, true);
      expect(codeOf(await confirm(disabled.token))).toBe('422 validation_failed');
      for (const token of ['x', 'A'.repeat(43), "' OR true --"])
        expect(codeOf(await confirm(token))).toBe('422 validation_failed');
    });

    test('a password change voids the token of a mail', async () => {
      const person = await newPerson(service.anonymous);
      await ask(person.email);
      const token = await tokenFor(person.email);
      expect((await person.client.post('/api/auth/password', { password: PASSWORD, new_password: NEXT })).status).toBe(
        204,
      );
      expect(codeOf(await confirm(token, 'quite another phrase'))).toBe('422 validation_failed');
    });

    test('the tables hold no token, and only the owner can read the files', async () => {
      const { email } = await register(service.anonymous);
      await ask(email);
      const token = await tokenFor(email);
      const rows = JSON.stringify(await service.app.db.rows(raw('SELECT t::text FROM "_auth_email_tokens" t')));
      expect(rows).toContain('reset_password');
      expect(rows).not.toContain(token);
      const [file] = await readdir(folder);
      expect([(await stat(folder)).mode & 0o777, (await stat(join(folder, file!))).mode & 0o777]).toEqual([
        0o700, 0o600,
      ]);
      expect(service.app.auth.mailTo).toBe(folder);
    });
  },
  { schema: SCHEMA, env: { BYLAW_DATA: data } },
);

describe('a mailer', () => {
  test('the mailer announces the folder of mails once', async () => {
    const said: string[] = [];
    const warn = (message: string) => void said.push(message);
    const mailer = new Mailer({ dataDir: data, baseUrl: () => 'https://api.example', warn });
    const mail = { to: 'first@example.org', subject: 'a', text: 'one' };
    await mailer.send(mail);
    await mailer.send(mail);
    expect(said).toEqual([`SMTP_URL is not set: mails are written as files into ${folder}`]);
  });

  test('an unreachable server is reported without the address', async () => {
    const settings = { dataDir: data, baseUrl: () => 'https://api.example', warn: () => undefined };
    const mailer = new Mailer({ ...settings, smtpUrl: 'smtp://127.0.0.1:1' });
    const error = await mailer.send({ to: 'first@example.org', subject: 'a', text: 'one' }).catch((thrown) => thrown);
    expect([mailer.to, mailErrorOf(error)]).toEqual(['SMTP', 'ESOCKET']);
  });
});
