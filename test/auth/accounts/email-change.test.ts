// @module-tag long
/** A change of address: proofs of both sides, the notice to the old mailbox, and the sessions that end. */
import { afterAll, expect, test } from 'vitest';
import { raw } from '../../../src/sql.ts';
import { describeOnOne } from '../../support/service.ts';
import { until } from '../../support/until.ts';
import { SmtpServer, tokenIn } from '../mail/smtp-server.ts';
import { codeOf, login, newEmail, newPerson, PASSWORD, register, SCHEMA } from '../people.ts';

const MAILING = `${SCHEMA}mail: { otp: true, email_change_url: 'https://app.example/email?token={token}' }\n`;
const smtp = new SmtpServer();
await smtp.start();
afterAll(() => smtp.close());

describeOnOne(
  'a change of address',
  (service) => {
    const confirm = (token: string, client = service.anonymous) =>
      client.post('/api/auth/email/change/confirm', { token });
    const settled = () =>
      until('no mail waits', async () => (await service.app.db.rows(raw('SELECT 1 FROM "_auth_outbox"'))).length === 0);
    async function asked(
      person: Awaited<ReturnType<typeof newPerson>>,
      email = newEmail('next'),
      proof: object = { password: PASSWORD },
    ) {
      const answer = await person.client.post('/api/auth/email/change/request', { email, ...proof });
      expect([answer.status, answer.text]).toEqual([202, '']);
      await settled();
      return { email, token: smtp.to(email).length === 0 ? '' : tokenIn(smtp.to(email).at(-1)!) };
    }

    test('the token of the new mailbox changes the address, once, and all other sessions end', async () => {
      const person = await newPerson(service.anonymous);
      const other = await login(service.anonymous, person.email);
      const { email, token } = await asked(person);
      expect(smtp.to(email)[0]!.source).toContain(`https://app.example/email?token=${token}`);
      const [notice] = smtp.to(person.email);
      expect(notice!.source).toContain(`Somebody asked to change the address of your account`);
      expect(notice!.source).toContain(email);
      expect(notice!.source).not.toContain(token);
      expect((await person.client.get('/api/auth/me')).body.user.email).toBe(person.email);
      const done = await confirm(token, person.client);
      expect([done.status, done.text]).toEqual([204, '']);
      expect((await person.client.get('/api/auth/me')).body.user).toMatchObject({ email, email_verified: true });
      expect(codeOf(await other.client.get('/api/auth/me'))).toBe('401 invalid_token');
      const old = await service.anonymous.post('/api/auth/login', { email: person.email, password: PASSWORD });
      expect(codeOf(old)).toBe('401 invalid_credentials');
      await login(service.anonymous, email);
      const again = await confirm(token);
      expect([codeOf(again), again.body.errors[0].code]).toEqual(['422 validation_failed', 'invalid_token']);
      await settled();
      expect(smtp.to(person.email).at(-1)!.source).toContain('The address of your account was changed');
      const [event] = await service.app.auth.admin.audit({ email, event: 'email_changed', limit: 1 });
      expect(event!.detail).toEqual({ from: person.email, to: email });
    });

    test('without a session, all sessions end', async () => {
      const person = await newPerson(service.anonymous);
      const { email, token } = await asked(person);
      const stranger = await newPerson(service.anonymous);
      expect((await confirm(token, stranger.client)).status).toBe(204);
      expect(codeOf(await person.client.get('/api/auth/me'))).toBe('401 invalid_token');
      expect((await stranger.client.get('/api/auth/me')).status).toBe(200);
      await login(service.anonymous, email);
    });

    test('the owner proves with the password, or with a code of a mail', async () => {
      const person = await newPerson(service.anonymous);
      const request = (body: object) =>
        person.client.post('/api/auth/email/change/request', { email: newEmail('next'), ...body });
      const answers = [
        await request({ password: 'a wrong password' }),
        await request({ code: '000000' }),
        await request({}),
        await request({ password: PASSWORD, code: '000000' }),
        await request({ password: PASSWORD, email: person.email.toUpperCase() }),
        await request({ password: PASSWORD, email: 'nobody' }),
        await service.anonymous.post('/api/auth/email/change/request', { email: newEmail(), password: PASSWORD }),
      ];
      expect(answers.map(codeOf)).toEqual([
        ...Array(2).fill('401 invalid_credentials'),
        ...Array(4).fill('422 validation_failed'),
        '401 unauthenticated',
      ]);
      await service.anonymous.post('/api/auth/otp/request', { email: person.email });
      await settled();
      const code = /^(\d{6})$/m.exec(smtp.to(person.email).at(-1)!.source)![1]!;
      const other = await newPerson(service.anonymous);
      const foreign = await other.client.post('/api/auth/email/change/request', { email: newEmail(), code });
      expect(codeOf(foreign)).toBe('401 invalid_credentials');
      const { email, token } = await asked(person, newEmail('next'), { code });
      expect(codeOf(await request({ code }))).toBe('401 invalid_credentials');
      expect((await confirm(token, person.client)).status).toBe(204);
      expect((await person.client.get('/api/auth/me')).body.user.email).toBe(email);
    });

    test('an address that another account has gets no mail, and the answer is the same', async () => {
      const person = await newPerson(service.anonymous);
      const taken = await register(service.anonymous);
      const answers = [];
      for (const email of [taken.email, newEmail('free')]) {
        const { status, text, headers } = await person.client.post('/api/auth/email/change/request', {
          email,
          password: PASSWORD,
        });
        answers.push([status, text, [...headers].filter(([name]) => !['x-request-id', 'date'].includes(name))]);
      }
      expect(answers[0]).toEqual(answers[1]);
      await settled();
      expect(smtp.to(taken.email)).toEqual([]);
      const late = await asked(person);
      await service.app.auth.admin.addUser({ email: late.email, password: PASSWORD, roles: [] });
      expect(codeOf(await confirm(late.token, person.client))).toBe('409 email_taken');
      expect((await person.client.get('/api/auth/me')).body.user.email).toBe(person.email);
    });

    test('two changes to one address, and ten uses of a token, have one success', async () => {
      const people = [await newPerson(service.anonymous), await newPerson(service.anonymous)];
      const email = newEmail('wanted');
      const tokens = [(await asked(people[0]!, email)).token, (await asked(people[1]!, email)).token];
      const codes = (await Promise.all(tokens.map((token) => confirm(token)))).map(codeOf);
      expect(codes.toSorted()).toEqual(['204 undefined', '409 email_taken']);
      const third = await newPerson(service.anonymous);
      const { token } = await asked(third);
      const uses = (await Promise.all(Array.from({ length: 10 }, () => confirm(token)))).map(codeOf);
      expect(uses.toSorted()).toEqual(['204 undefined', ...Array(9).fill('422 validation_failed')]);
    });

    test('a token lasts for an hour, and ends with the next request, a new password and the account', async () => {
      const { db, auth } = service.app;
      const old = await newPerson(service.anonymous);
      const expired = await asked(old);
      await db.run(raw(`UPDATE "_auth_email_tokens" SET expires_at = expires_at - interval '61 minutes'`));
      const next = await newPerson(service.anonymous);
      const replaced = await asked(next);
      await asked(next);
      const changed = await newPerson(service.anonymous);
      const before = await asked(changed);
      const body = { password: PASSWORD, new_password: 'an even longer phrase' };
      expect((await changed.client.post('/api/auth/password', body)).status).toBe(204);
      const disabled = await newPerson(service.anonymous);
      const shut = await asked(disabled);
      await auth.admin.setDisabled(disabled.email, true);
      const reset = await newPerson(service.anonymous);
      await service.anonymous.post('/api/auth/password/reset/request', { email: reset.email });
      await settled();
      const foreign = tokenIn(smtp.to(reset.email)[0]!);
      for (const token of [expired.token, replaced.token, before.token, shut.token, foreign, 'x', 'A'.repeat(43)]) {
        expect(codeOf(await confirm(token))).toBe('422 validation_failed');
      }
    });

    test('the first proof of an address ends a change that a stranger asked for, also one that is being mailed', async () => {
      const { db, auth } = service.app;
      const stranger = await newPerson(service.anonymous);
      const change = await asked(stranger);
      const [cells] = await db.rows(raw('SELECT now()::text'));
      await service.anonymous.post('/api/auth/otp/request', { email: stranger.email });
      await settled();
      const code = /^(\d{6})$/m.exec(smtp.to(stranger.email).at(-1)!.source)![1]!;
      const owner = await service.anonymous.post('/api/auth/otp/confirm', { email: stranger.email, code });
      expect(owner.status).toBe(200);
      expect(codeOf(await confirm(change.token))).toBe('422 validation_failed');
      const waiting = {
        id: '',
        kind: 'email_change',
        attempt: 1,
        language: undefined,
        address: newEmail('next'),
      } as const;
      const issue = (createdAt: string) =>
        auth.emailChange.issueToken({ ...waiting, createdAt, detail: { userId: stranger.id } });
      expect(await issue(cells![0]!)).toBe(undefined);
      expect(await issue('2999-01-01T00:00:00Z')).toMatch(/^[\w-]{43}$/);
    });

    test('tokens for the old address end with it', async () => {
      const person = await newPerson(service.anonymous);
      await service.anonymous.post('/api/auth/password/reset/request', { email: person.email });
      await settled();
      const reset = tokenIn(smtp.to(person.email)[0]!);
      const { token } = await asked(person);
      expect((await confirm(token, person.client)).status).toBe(204);
      const body = { token: reset, password: 'an even longer phrase' };
      expect(codeOf(await service.anonymous.post('/api/auth/password/reset/confirm', body))).toBe(
        '422 validation_failed',
      );
    });

    test('a page of another site cannot confirm with the cookie of its visitor', async () => {
      const person = await newPerson(service.anonymous);
      const { token } = await asked(person);
      const headers = { 'Sec-Fetch-Site': 'cross-site' };
      const answer = await person.cookieClient.post('/api/auth/email/change/confirm', { token }, headers);
      expect(codeOf(answer)).toBe('403 cross_origin');
    });
  },
  { schema: MAILING, env: { SMTP_URL: smtp.url } },
);

describeOnOne(
  'a change of address without codes by mail',
  (service) => {
    test('a code is 404', async () => {
      const person = await newPerson(service.anonymous);
      const body = { email: newEmail('next'), code: '123456' };
      expect(codeOf(await person.client.post('/api/auth/email/change/request', body))).toBe('404 not_found');
    });
  },
  { schema: SCHEMA },
);
