// @module-tag long
/** Codes and links by mail: one live code, few tries, one use, and nothing for an unknown address. */
import { afterAll, expect, test } from 'vitest';
import { createClient } from '../../../src/client/client.ts';
import { raw } from '../../../src/sql.ts';
import { describeOnBoth, describeOnOne } from '../../support/service.ts';
import { until } from '../../support/until.ts';
import { GUESTS_SCHEMA } from '../keyed.ts';
import { SmtpServer, tokenIn } from '../mail/smtp-server.ts';
import { codeOf, login, newEmail, newPerson, PASSWORD, register, SCHEMA, TOKEN_KEYS, tokensOf } from '../people.ts';

const MAILING = `${GUESTS_SCHEMA}mail: { otp: true, login_url: 'https://app.example/in?token={token}' }\n`;
const smtp = new SmtpServer();
await smtp.start();
afterAll(() => smtp.close());

describeOnBoth(
  'codes by mail',
  (service) => {
    const post = (path: string, body: object) => service.anonymous.post(`/api/auth/otp/${path}`, body);
    const confirm = (email: string, code: string) => post('confirm', { email, code });
    async function mailed(email: string) {
      const before = smtp.to(email).length;
      const asked = await post('request', { email });
      expect([asked.status, asked.text]).toEqual([202, '']);
      await until(`a mail to ${email}`, () => smtp.to(email).length > before);
      const mail = smtp.to(email).at(-1)!;
      return { code: /^(\d{6})$/m.exec(mail.source)![1]!, token: tokenIn(mail), source: mail.source };
    }
    const another = (code: string, by = 1) => String((Number(code) + by) % 1_000_000).padStart(6, '0');
    const verified = async () => {
      const { email } = await register(service.anonymous);
      await service.app.db.run(raw(`UPDATE "users" SET email_verified = true WHERE email = '${email}'`));
      return email;
    };

    test('a code logs in, once, in any case of the address', async () => {
      const email = await verified();
      const { code, source } = await mailed(email);
      expect(source).toMatch(/https:\/\/app\.example\/in\?token=[\w-]{43}$/m);
      const answer = await confirm(email.toUpperCase(), code);
      expect([answer.status, Object.keys(answer.body)]).toEqual([200, TOKEN_KEYS]);
      expect(answer.headers.get('cache-control')).toBe('no-store');
      const { client } = tokensOf(service.anonymous, answer);
      expect((await client.get('/api/auth/me')).body.user.email).toBe(email);
      expect(codeOf(await confirm(email, code))).toBe('401 invalid_credentials');
      const [event] = await service.app.auth.admin.audit({ email, event: 'login', limit: 1 });
      expect(event).toMatchObject({ detail: { method: 'code' }, ip: '127.0.0.1' });
    });

    test('a link logs in, once; either of code and link spends both', async () => {
      const email = await verified();
      const one = await mailed(email);
      expect((await post('confirm', { token: one.token })).status).toBe(200);
      expect(codeOf(await post('confirm', { token: one.token }))).toBe('401 invalid_credentials');
      expect(codeOf(await confirm(email, one.code))).toBe('401 invalid_credentials');
      const two = await mailed(email);
      expect((await confirm(email, two.code)).status).toBe(200);
      expect(codeOf(await post('confirm', { token: two.token }))).toBe('401 invalid_credentials');
    });

    test.each(['code', 'token'] as const)('ten concurrent uses of a %s have one success', async (kind) => {
      const email = await verified();
      const { code, token } = await mailed(email);
      const body = kind === 'code' ? { email, code } : { token };
      const codes = (await Promise.all(Array.from({ length: 10 }, () => post('confirm', body)))).map(codeOf);
      expect(codes.toSorted()).toEqual(['200 undefined', ...Array(9).fill('401 invalid_credentials')]);
    });

    test('a code has five tries, also when ten are sent at once', async () => {
      const email = await verified();
      const first = await mailed(email);
      for (let i = 1; i <= 4; i++) expect((await confirm(email, another(first.code, i))).status).toBe(401);
      expect((await confirm(email, first.code)).status).toBe(200);
      const second = await mailed(email);
      const wrong = Array.from({ length: 10 }, (_, i) => confirm(email, another(second.code, i + 1)));
      expect(new Set((await Promise.all(wrong)).map(codeOf))).toEqual(new Set(['401 invalid_credentials']));
      expect(codeOf(await confirm(email, second.code))).toBe('401 invalid_credentials');
    });

    test('an account has one live code, for ten minutes, for its address', async () => {
      const email = await verified();
      const [first, second] = [await mailed(email), await mailed(email)];
      if (first.code !== second.code) expect((await confirm(email, first.code)).status).toBe(401);
      expect((await post('confirm', { token: first.token })).status).toBe(401);
      const age = (minutes: number) =>
        service.app.db.run(raw(`UPDATE "_auth_otp" SET expires_at = expires_at - interval '${minutes} minutes'`));
      await age(9);
      expect((await confirm(email, second.code)).status).toBe(200);
      const third = await mailed(email);
      await age(11);
      expect((await confirm(email, third.code)).status).toBe(401);
      const [mine, theirs] = [await mailed(email), await mailed(await verified())];
      if (mine.code !== theirs.code) expect((await confirm(email, theirs.code)).status).toBe(401);
      await service.app.auth.admin.setDisabled(email, true);
      expect((await confirm(email, mine.code)).status).toBe(401);
      expect((await post('confirm', { token: mine.token })).status).toBe(401);
    });

    test('an unknown address gets the same answers, no mail and no account', async () => {
      const email = await verified();
      const stranger = newEmail('nobody');
      const comparable = ({ status, text, headers }: Awaited<ReturnType<typeof post>>) => [
        status,
        text.replace(/"request_id":"[^"]*"/, ''),
        [...headers].filter(([name]) => !['x-request-id', 'date'].includes(name)),
      ];
      await mailed(email);
      const asked = [await post('request', { email }), await post('request', { email: stranger })];
      expect(comparable(asked[0]!)).toEqual(comparable(asked[1]!));
      const tried = [await confirm(email, 'xxxxxx'), await confirm(stranger, 'xxxxxx')];
      expect(comparable(tried[0]!)).toEqual(comparable(tried[1]!));
      await until('no mail waits', async () => {
        const rows = await service.app.db.rows(raw('SELECT 1 FROM "_auth_outbox"'));
        return rows.length === 0;
      });
      expect(smtp.to(stranger)).toEqual([]);
      expect(await service.app.db.rows(raw(`SELECT 1 FROM "users" WHERE email = '${stranger}'`))).toEqual([]);
    });

    test('the first proof of an address shuts out a stranger who made the account', async () => {
      const stranger = await newPerson(service.anonymous);
      const lead = await service.user('lead');
      await service.app.db.run(raw(`UPDATE "users" SET roles = '{lead}' WHERE id = '${stranger.id}'`));
      await service.app.auth.authenticator.userChanged(stranger.id);
      const made = await stranger.client.post('/api/auth/keys', { name: 'x', roles: ['reader'] });
      const key = service.anonymous.with({ Authorization: `Bearer ${made.body.secret}` });
      expect((await key.get('/api/books')).status).toBe(200);
      const { code } = await mailed(stranger.email);
      const { client } = tokensOf(service.anonymous, await confirm(stranger.email, code));
      expect((await client.get('/api/auth/me')).body.user.email_verified).toBe(true);
      const shut = [
        await stranger.client.get('/api/auth/me'),
        await key.get('/api/books'),
        await service.anonymous.post('/api/auth/login', { email: stranger.email, password: PASSWORD }),
      ];
      expect(shut.map(codeOf)).toEqual(['401 invalid_token', '401 invalid_token', '401 invalid_credentials']);
      // A proved address loses nothing.
      const known = await login(service.anonymous, lead.email, lead.password);
      tokensOf(service.anonymous, await confirm(lead.email, (await mailed(lead.email)).code));
      expect((await known.client.get('/api/auth/me')).status).toBe(200);
      await login(service.anonymous, lead.email, lead.password);
    });

    test('a code ends the session of a guest', async () => {
      const email = await verified();
      const guest = await service.anonymous.post('/api/auth/guest');
      const client = service.anonymous.with({ Authorization: `Bearer ${guest.body.access_token}` });
      const { code } = await mailed(email);
      expect((await client.post('/api/auth/otp/confirm', { email, code })).status).toBe(200);
      expect(codeOf(await client.get('/api/books'))).toBe('401 invalid_token');
    });

    test('a page of another site cannot log its visitor in', async () => {
      const email = await verified();
      const { code } = await mailed(email);
      const headers = { 'Sec-Fetch-Site': 'cross-site' };
      const answer = await service.anonymous.post('/api/auth/otp/confirm', { email, code }, headers);
      expect(codeOf(answer)).toBe('403 cross_origin');
      expect((await confirm(email, code)).status).toBe(200);
    });

    test.each<[string, object]>([
      ['nothing', {}],
      ['a code without an address', { code: '123456' }],
      ['an address without a code', { email: 'a@example.org' }],
      ['a token and a code', { token: 'A'.repeat(43), email: 'a@example.org', code: '123456' }],
      ['a number', { email: 'a@example.org', code: 123_456 }],
    ])('%s is rejected', async (_, body) => {
      expect(codeOf(await post('confirm', body))).toBe('422 validation_failed');
    });

    test.each(['', '12345', '1234567', '12345６', "' OR true --", '\0', '\ud800'])(
      'the code %j is wrong',
      async (code) => {
        expect(codeOf(await confirm(await verified(), code))).toBe('401 invalid_credentials');
        expect(codeOf(await confirm(`\0${code}`, code))).toBe('401 invalid_credentials');
      },
    );

    test('the tables hold neither code nor token', async () => {
      const email = await verified();
      const { code, token } = await mailed(email);
      const tables = await Promise.all(
        ['_auth_otp', '_auth_outbox', '_auth_audit'].map((name) =>
          service.app.db.rows(
            raw(`SELECT to_jsonb(t) - '{id,user_id,session_id,request_id}'::text[] FROM "${name}" t`),
          ),
        ),
      );
      const text = JSON.stringify(tables);
      expect(text).toContain(email);
      expect(text).not.toContain(`\\"${code}\\"`);
      expect(text).not.toContain(token);
      expect((await confirm(email, code)).status).toBe(200);
    });

    test('the client logs in by a code and by a token', async () => {
      const email = await verified();
      const client = createClient(service.url);
      await client.account.requestCode(email);
      await until('a mail', () => smtp.to(email).length > 0);
      const { source } = smtp.to(email)[0]!;
      await client.loginByMail({ email, code: /^(\d{6})$/m.exec(source)![1]! });
      expect(await client.me()).toMatchObject({ email });
    });
  },
  { schema: MAILING, env: { SMTP_URL: smtp.url } },
);

describeOnOne(
  'limited codes',
  (service) => {
    test('wrong codes count as failed logins of the account', async () => {
      const { email } = await register(service.anonymous);
      const tries = [];
      for (let i = 0; i < 5; i++)
        tries.push(await service.anonymous.post('/api/auth/otp/confirm', { email, code: 'x' }));
      expect(tries.map(codeOf)).toEqual([
        ...Array(3).fill('401 invalid_credentials'),
        ...Array(2).fill('429 rate_limited'),
      ]);
      const answer = await service.anonymous.post('/api/auth/login', { email, password: PASSWORD });
      expect(codeOf(answer)).toBe('429 rate_limited');
    });
  },
  { schema: `${MAILING}limits: { login_account: 3 in 1h }\n`, env: { SMTP_URL: smtp.url, BYLAW_RATE_LIMIT: 'on' } },
);

describeOnOne(
  'a service without codes',
  (service) => {
    test('both routes are 404', async () => {
      const answers = [
        await service.anonymous.post('/api/auth/otp/request', { email: 'a@example.org' }),
        await service.anonymous.post('/api/auth/otp/confirm', { email: 'a@example.org', code: '123456' }),
        await service.anonymous.post('/api/auth/otp/confirm', { token: 'A'.repeat(43) }),
      ];
      expect(answers.map(codeOf)).toEqual(Array(3).fill('404 not_found'));
    });
  },
  { schema: SCHEMA },
);
