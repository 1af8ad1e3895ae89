/** Attacks on every door to accounts alike: the doors are those of the OpenAPI document and of the pages. */
import { beforeAll, expect, test } from 'vitest';
import { issueProof } from '../../../src/auth/mail/email-tokens.ts';
import { hashSecret, newSecret } from '../../../src/auth/sessions/secrets.ts';
import { raw, sql, text, uuid } from '../../../src/sql.ts';
import { describeOnOne } from '../../support/service.ts';
import { codeOfApp, newEnrolled, unspentCode } from '../authenticator.ts';
import { codeOf, login, newEmail, newPerson, PASSWORD, SCHEMA } from '../people.ts';

interface Operation {
  readonly responses: Readonly<Record<string, { readonly headers?: object }>>;
}

const FORM = { 'Content-Type': 'application/x-www-form-urlencoded' };
const PROVIDER = `oauth:
  company: { issuer: 'http://127.0.0.1:1', client_id: bylaw, client_secret: secret, scopes: [openid, email] }
`;
const ID = '00000000-0000-4000-8000-000000000001';

describeOnOne(
  'doors to accounts',
  (service) => {
    let doors: readonly (readonly [string, string])[];
    beforeAll(async () => {
      const { paths } = (await service.anonymous.get('/openapi.json')).body as {
        paths: Record<string, Record<string, Operation>>;
      };
      doors = Object.entries(paths).flatMap(([path, methods]) =>
        Object.entries(methods)
          .filter(([method]) => method !== 'get')
          .filter(([, { responses }]) =>
            Object.values(responses).some(({ headers = {} }) => Object.hasOwn(headers, 'Set-Cookie')),
          )
          .map(([method]) => [method.toUpperCase(), path.replace(/\{[^}]*\}/, 'x')] as const),
      );
    });

    test('no door that sets a cookie opens to a page of another site (login CSRF, fixation)', async () => {
      // The one is posted by a provider; the other one needs a session.
      const own = doors.filter(([, path]) => !/\/(?:callback|logout)$/.test(path));
      expect(own.map(([, path]) => path)).toEqual(
        expect.arrayContaining([
          '/api/auth/login',
          '/api/auth/guest',
          '/api/auth/challenge',
          '/api/auth/otp/confirm',
          '/api/auth/passkeys/login',
          '/api/auth/oauth/exchange',
          '/api/auth/identities/x',
        ]),
      );
      const { client } = await newPerson(service.anonymous);
      const from = { 'Sec-Fetch-Site': 'cross-site', Origin: 'https://evil.example' };
      for (const [method, path] of own) {
        const answer = await client.send(method, path, { json: {}, headers: from });
        expect([path, codeOf(answer), answer.headers.getSetCookie()]).toEqual([path, '403 cross_origin', []]);
      }
    });

    test('no page of a mail is used up by the programs that open its link', async () => {
      const { db } = service.app;
      const { id, email } = await newPerson(service.anonymous);
      const tokens = {
        verify: await issueProof(db, 'verify_email', { userId: id, email }),
        reset: await issueProof(db, 'reset_password', { userId: id, email }),
        email: await issueProof(db, 'change_email', { userId: id, email }, newEmail('next')),
        login: newSecret(),
        invite: newSecret(),
      };
      await db.run(sql`
        INSERT INTO "_auth_otp" (user_id, email, code_hmac, token_hash, tries, expires_at)
        VALUES (${uuid(id)}, ${text(email)}, 'x', ${text(hashSecret(tokens.login))}, 0, now() + interval '1 minute')`);
      await db.run(sql`
        INSERT INTO "_auth_invites" (id, email, roles, data, hash, created_at, expires_at, created_by)
        VALUES (${uuid(ID)}, ${text(newEmail('invited'))}, '{}', '{}', ${text(hashSecret(tokens.invite))},
                now(), now() + interval '1 minute', ${uuid(id)})`);
      const rows = () =>
        db.rows(
          raw(`
            SELECT (SELECT string_agg(hash, ',' ORDER BY hash) FROM "_auth_email_tokens"),
                   (SELECT string_agg(token_hash || tries, ',') FROM "_auth_otp"),
                   (SELECT string_agg(hash, ',') FROM "_auth_invites"),
                   (SELECT count(*) FROM "_auth_sessions")`),
        );
      const before = await rows();
      for (const [page, token] of Object.entries(tokens)) {
        for (const method of ['GET', 'HEAD', 'OPTIONS', 'GET'])
          await service.anonymous.send(method, `/auth/${page}?token=${token}`);
        const shown = await service.anonymous.get(`/auth/${page}?token=${token}`);
        expect([page, shown.status, shown.text.includes(token)]).toEqual([page, 200, true]);
      }
      expect(await rows()).toEqual(before);
    });

    test.each(['sign-in', 'code', 'login', 'challenge', 'passkey'])(
      'the page %s leads to no address of another site',
      async (page) => {
        for (const target of ['//evil.example', 'https://evil.example/', '/\\evil.example', 'javascript:alert(1)']) {
          const answer = await service.anonymous.send('POST', `/auth/${page}`, {
            headers: FORM,
            raw: new URLSearchParams({ redirect_to: target, token: 'x', email: 'a@example.org' }).toString(),
          });
          expect([target, answer.status, answer.headers.get('location')]).toEqual([target, 400, null]);
        }
      },
    );

    test('ten confirmations of an enrolment at once give out one set of recovery codes', async () => {
      const person = await newPerson(service.anonymous);
      const { secret } = (await person.client.post('/api/auth/totp/enrol')).body;
      const confirm = () => person.client.post('/api/auth/totp/confirm', { code: codeOfApp(secret) });
      const answers = await Promise.all(Array.from({ length: 10 }, confirm));
      const [right, ...others] = answers.toSorted((one, other) => one.status - other.status);
      expect([right!.status, others.filter(({ status }) => status === 200)]).toEqual([200, []]);
      const renewed = await person.client.post('/api/auth/totp/recovery', { code: right!.body.recovery_codes[0] });
      expect(renewed.status).toBe(200);
    });

    test('strangers who guess challenges are stopped, and stop no user of their network', async () => {
      const person = await newEnrolled(service.anonymous);
      const guess = () =>
        service.anonymous.post('/api/auth/challenge', { challenge: newSecret(), method: 'totp', code: '000000' });
      const guesses = await Promise.all(Array.from({ length: 60 }, guess));
      expect(new Set(guesses.map(codeOf))).toEqual(new Set(['401 invalid_credentials', '429 rate_limited']));
      const { challenge } = (
        await service.anonymous.post('/api/auth/login', { email: person.email, password: PASSWORD })
      ).body;
      const code = await unspentCode(service.app.db, person);
      const answer = await service.anonymous.post('/api/auth/challenge', { challenge, method: 'totp', code });
      expect(answer.status).toBe(200);
      expect((await login(service.anonymous, (await newPerson(service.anonymous)).email)).access).toBeDefined();
    });
  },
  {
    schema: `${SCHEMA}mail: { otp: true }\n${PROVIDER}limits: { refresh: 1000 in 15m, register: 1000 in 15m }\n`,
    env: { BYLAW_RATE_LIMIT: 'on' },
  },
);
