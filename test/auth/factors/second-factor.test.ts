// @module-tag long
/** A second factor: enrolment, sign-ins in two steps, recovery codes, removal. */
import { expect, test } from 'vitest';
import { Users } from '../../../src/auth/accounts/users.ts';
import {
  closingChallenge,
  countWrongAnswer,
  type ReadChallenge,
  readChallenge,
} from '../../../src/auth/factors/challenges.ts';
import { issueProof } from '../../../src/auth/mail/email-tokens.ts';
import { raw, sql, text, uuid } from '../../../src/sql.ts';
import type { Answer } from '../../support/client.ts';
import { describeOnOne } from '../../support/service.ts';
import { codeOfApp, newEnrolled, unspentCode } from '../authenticator.ts';
import { codeOf, login, newPerson, PASSWORD, refresh, register, TOKEN_KEYS, tokensOf } from '../people.ts';

const SCHEMA = `
roles: [member, admin]
register: { roles: [member] }
guests: true
collections:
  vaults: { fields: { title: string }, access: { view: '@request.auth.second_factor' } }
`;
const WRONG = '401 invalid_credentials';

describeOnOne(
  'a second factor',
  (service) => {
    const firstStep = (email: string, password = PASSWORD) =>
      service.anonymous.post('/api/auth/login', { email, password });
    const challengeOf = async (email: string): Promise<string> => (await firstStep(email)).body.challenge;
    const answer = (challenge: string, code: string, method = 'totp') =>
      service.anonymous.post('/api/auth/challenge', { challenge, method, code });
    const eventsOf = async (userId: string): Promise<readonly string[]> =>
      (await service.app.auth.admin.audit({ userId, limit: 100 })).map(({ event }) => event);

    test('an enrolment counts once a code of it is confirmed', async () => {
      const person = await newPerson(service.anonymous);
      const begun = await person.client.post('/api/auth/totp/enrol');
      expect([begun.status, begun.headers.get('cache-control'), Object.keys(begun.body)]).toEqual([
        200,
        'no-store',
        ['secret', 'uri', 'qr'],
      ]);
      const { secret, uri, qr } = begun.body;
      const { hostname, searchParams } = new URL(uri);
      expect([hostname, decodeURIComponent(uri).includes(person.email), searchParams.get('secret')]).toEqual([
        'totp',
        true,
        secret,
      ]);
      expect(qr).toMatch(/^<svg xmlns="http:\/\/www\.w3\.org\/2000\/svg"[^<>]*>[\s\S]*<\/svg>$/);
      expect((await firstStep(person.email)).body.access_token).toBeDefined();

      expect(
        codeOf(
          await person.client.post('/api/auth/totp/confirm', {
            code: '000000' === codeOfApp(secret) ? '111111' : '000000',
          }),
        ),
      ).toBe(WRONG);
      expect((await person.client.get('/api/vaults')).status).toBe(403);
      const confirmed = await person.client.post('/api/auth/totp/confirm', { code: codeOfApp(secret) });
      expect([confirmed.status, confirmed.headers.get('cache-control')]).toEqual([200, 'no-store']);
      expect(new Set(confirmed.body.recovery_codes).size).toBe(10);
      for (const code of confirmed.body.recovery_codes) expect(code).toMatch(/^[0-9a-z]{10}$/);
      expect((await person.client.get('/api/vaults')).status).toBe(200);
      expect((await person.cookieClient.get('/api/vaults')).status).toBe(200);

      for (const path of ['/api/auth/totp/enrol', '/api/auth/totp/confirm']) {
        const again = await person.client.post(path, path.endsWith('enrol') ? undefined : { code: codeOfApp(secret) });
        expect(codeOf(again)).toBe('409 too_many');
      }
      expect(await eventsOf(person.id)).toEqual(
        expect.arrayContaining(['second_factor_failed', 'second_factor_enrolled']),
      );
    });

    test('a new enrolment replaces one that was not confirmed, and an old one cannot be confirmed', async () => {
      const person = await newPerson(service.anonymous);
      const [first, second] = [
        await person.client.post('/api/auth/totp/enrol'),
        await person.client.post('/api/auth/totp/enrol'),
      ];
      const confirm = (secret: string) => person.client.post('/api/auth/totp/confirm', { code: codeOfApp(secret) });
      expect(codeOf(await confirm(first.body.secret))).toBe(WRONG);
      await service.app.db.run(
        sql`UPDATE "_auth_totp" SET created_at = created_at - interval '2 hours' WHERE user_id = ${uuid(person.id)}`,
      );
      expect(codeOf(await confirm(second.body.secret))).toBe(WRONG);
      expect((await confirm((await person.client.post('/api/auth/totp/enrol')).body.secret)).status).toBe(200);
    });

    test('a sign-in has two steps, the first without tokens and cookie', async () => {
      const person = await newEnrolled(service.anonymous);
      const first = await firstStep(person.email);
      expect([first.status, first.headers.get('cache-control'), first.headers.getSetCookie(), first.body]).toEqual([
        200,
        'no-store',
        [],
        { challenge: expect.stringMatching(/^[\w-]{43}$/), methods: ['totp', 'recovery'] },
      ]);
      const asToken = service.anonymous.with({ Authorization: `Bearer ${first.body.challenge}` });
      expect(codeOf(await asToken.get('/api/auth/me'))).toBe('401 invalid_token');
      const asCookie = service.anonymous.with({ Cookie: `svc_session=${first.body.challenge}` });
      expect(codeOf(await asCookie.get('/api/auth/me'))).toBe('401 unauthenticated');

      const second = await answer(first.body.challenge, await unspentCode(service.app.db, person));
      expect([second.status, Object.keys(second.body), second.headers.getSetCookie().length]).toEqual([
        200,
        [...TOKEN_KEYS],
        1,
      ]);
      const tokens = tokensOf(service.anonymous, second);
      expect((await tokens.client.get('/api/vaults')).status).toBe(200);
      const next = tokensOf(service.anonymous, await refresh(service.anonymous, tokens.refresh));
      expect((await next.client.get('/api/vaults')).status).toBe(200);
      expect((await eventsOf(person.id)).slice(0, 2)).toEqual(['login', 'second_factor_asked']);
    });

    test('a wrong password gets the same answer with a second factor and without', async () => {
      const [person, other] = [await newEnrolled(service.anonymous), await newPerson(service.anonymous)];
      const wrong = async (email: string) => {
        const { status, body, headers } = await firstStep(email, 'not it at all');
        return { status, code: body.code, detail: body.detail, keys: [...headers.keys()].toSorted() };
      };
      const answers = [await wrong(person.email), await wrong(other.email), await wrong('nobody@example.org')];
      expect(answers).toEqual([answers[0], answers[0], answers[0]]);
    });

    test('a code works once, also for twenty sign-ins at the same time', async () => {
      const person = await newEnrolled(service.anonymous);
      const challenges = await Promise.all(Array.from({ length: 20 }, () => challengeOf(person.email)));
      const code = await unspentCode(service.app.db, person);
      const answers = await Promise.all(challenges.map((challenge) => answer(challenge, code)));
      expect(answers.map(codeOf).toSorted()).toEqual(['200 undefined', ...Array(19).fill(WRONG)]);
      expect(codeOf(await answer(await challengeOf(person.email), code))).toBe(WRONG);
      const next = codeOfApp(person.secret, 1);
      expect((await answer(await challengeOf(person.email), next)).status).toBe(200);
      expect(codeOf(await answer(await challengeOf(person.email), codeOfApp(person.secret)))).toBe(WRONG);
    });

    test('a challenge works once, also for twenty answers at the same time', async () => {
      const person = await newEnrolled(service.anonymous);
      const challenge = await challengeOf(person.email);
      const codes = person.recoveryCodes.slice(0, 5);
      const answers = await Promise.all(codes.map((code) => answer(challenge, code, 'recovery')));
      expect(answers.map(codeOf).toSorted()).toEqual(['200 undefined', ...Array(4).fill(WRONG)]);
      const [row] = await service.app.db.rows(
        sql`SELECT count(*) FROM "_auth_recovery_codes" WHERE user_id = ${uuid(person.id)}`,
      );
      expect(row).toEqual(['9']);
      const used = codes[answers.findIndex(({ status }) => status === 200)]!;
      expect(codeOf(await answer(await challengeOf(person.email), used, 'recovery'))).toBe(WRONG);
    });

    test('a challenge takes five tries, and the right code comes too late', async () => {
      const person = await newEnrolled(service.anonymous);
      const challenge = await challengeOf(person.email);
      const wrong = await Promise.all(Array.from({ length: 5 }, () => answer(challenge, 'zzzzzzzzzz', 'recovery')));
      expect(wrong.map(codeOf)).toEqual(Array(5).fill(WRONG));
      expect(codeOf(await answer(challenge, await unspentCode(service.app.db, person)))).toBe(WRONG);
      expect((await answer(await challengeOf(person.email), codeOfApp(person.secret))).status).toBe(200);
    });

    test('a counted wrong answer invalidates a right one that was read at the same time', async () => {
      const { db } = service.app;
      const person = await newEnrolled(service.anonymous);
      const challenge = await challengeOf(person.email);
      const users = new Users(db, service.app.schema);
      const [first, second] = [await readChallenge(db, users, challenge), await readChallenge(db, users, challenge)];
      await countWrongAnswer(db, first!);
      const close = async (read: ReadChallenge) => (await db.run(closingChallenge(read, raw('true')))) > 0;
      expect(await close(second!)).toBe(false);
      const third = await readChallenge(db, users, challenge);
      expect([third?.tries, await close(third!), await close(third!)]).toEqual([1, true, false]);
    });

    test('a challenge ends after five minutes, and with the password, the sessions and the account', async () => {
      const person = await newEnrolled(service.anonymous);
      const late = await challengeOf(person.email);
      await service.app.db.run(raw(`UPDATE "_auth_challenges" SET expires_at = expires_at - interval '5 minutes'`));
      const attempts: Answer[] = [await answer(late, await unspentCode(service.app.db, person))];
      const voided = await challengeOf(person.email);
      const change = await person.client.post('/api/auth/password', {
        password: PASSWORD,
        new_password: `${PASSWORD}!`,
      });
      expect(change.status).toBe(204);
      attempts.push(await answer(voided, codeOfApp(person.secret)));
      const held = (await firstStep(person.email, `${PASSWORD}!`)).body.challenge;
      await service.app.auth.admin.setDisabled(person.email, true);
      attempts.push(await answer(held, codeOfApp(person.secret)));
      await service.app.auth.admin.setDisabled(person.email, false);
      attempts.push(
        await answer(held, codeOfApp(person.secret)),
        await answer('a'.repeat(43), codeOfApp(person.secret)),
      );
      expect(attempts.map(codeOf)).toEqual(Array(5).fill(WRONG));
      expect(new Set(attempts.map(({ body }) => body.detail)).size).toBe(1);
    });

    test('a challenge of one person takes no code of another', async () => {
      const [ann, eve] = [await newEnrolled(service.anonymous), await newEnrolled(service.anonymous)];
      const challenge = await challengeOf(ann.email);
      expect(codeOf(await answer(challenge, await unspentCode(service.app.db, eve)))).toBe(WRONG);
      expect(codeOf(await answer(challenge, eve.recoveryCodes[0]!, 'recovery'))).toBe(WRONG);
      await service.app.db.run(sql`
        UPDATE "_auth_totp" SET secret = (SELECT secret FROM "_auth_totp" WHERE user_id = ${uuid(eve.id)}) WHERE user_id = ${uuid(ann.id)}`);
      expect(codeOf(await answer(challenge, codeOfApp(eve.secret)))).toBe('500 internal');
    });

    test('a code of the step before and after is right, and of two steps is not', async () => {
      const person = await newEnrolled(service.anonymous);
      const at = async (steps: number) => {
        await unspentCode(service.app.db, person);
        return (await answer(await challengeOf(person.email), codeOfApp(person.secret, steps))).status;
      };
      expect([await at(1), await at(3), await at(-3)]).toEqual([200, 401, 401]);
    });

    test('a recovery code is read as people type it, and stored as a hash', async () => {
      const person = await newEnrolled(service.anonymous);
      const [code = ''] = person.recoveryCodes;
      const typed = ` ${code.slice(0, 5).toUpperCase()}-${code.slice(5)} `.replaceAll('0', 'o').replaceAll('1', 'l');
      expect((await answer(await challengeOf(person.email), typed, 'recovery')).status).toBe(200);
      const rows = await service.app.db.rows(
        sql`SELECT hash FROM "_auth_recovery_codes" WHERE user_id = ${uuid(person.id)}`,
      );
      expect(rows.flat().filter((hash) => person.recoveryCodes.some((each) => hash!.includes(each)))).toEqual([]);
      const [stored] = await service.app.db.rows(
        sql`SELECT secret FROM "_auth_totp" WHERE user_id = ${uuid(person.id)}`,
      );
      expect(stored![0]).toMatch(/^A256GCM\./);
      expect(stored![0]).not.toContain(person.secret);
    });

    test('new recovery codes void the old ones', async () => {
      const person = await newEnrolled(service.anonymous);
      expect(codeOf(await person.client.post('/api/auth/totp/recovery', { code: '12345' }))).toBe(WRONG);
      const renewed = await person.client.post('/api/auth/totp/recovery', {
        code: await unspentCode(service.app.db, person),
      });
      expect(renewed.body.recovery_codes).toHaveLength(10);
      const answered = async (code: string) => (await answer(await challengeOf(person.email), code, 'recovery')).status;
      expect(await answered(person.recoveryCodes[0]!)).toBe(401);
      expect(await answered(renewed.body.recovery_codes[0])).toBe(200);
    });

    test('the second factor is removed by a code or the password, and marks no session any more', async () => {
      const remove = (client: typeof service.anonymous, json: object) =>
        client.send('DELETE', '/api/auth/totp', { json });
      for (const proof of ['code', 'password'] as const) {
        const person = await newEnrolled(service.anonymous);
        expect(codeOf(await remove(person.client, {}))).toBe('422 validation_failed');
        expect(codeOf(await remove(person.client, { code: '1', password: PASSWORD }))).toBe('422 validation_failed');
        expect(codeOf(await remove(person.client, { [proof]: 'not it at all' }))).toBe(WRONG);
        const right = proof === 'code' ? await unspentCode(service.app.db, person) : PASSWORD;
        expect((await remove(person.client, { [proof]: right })).status).toBe(204);
        expect((await person.client.get('/api/vaults')).status).toBe(403);
        expect((await firstStep(person.email)).body.access_token).toBeDefined();
        expect(codeOf(await remove(person.client, { password: PASSWORD }))).toBe('404 not_found');
        expect(await eventsOf(person.id)).toContain('second_factor_removed');
      }
    });

    test('an older session stays without a second factor until it confirms by a code', async () => {
      const person = await register(service.anonymous);
      const [older, newer] = [
        await login(service.anonymous, person.email),
        await login(service.anonymous, person.email),
      ];
      const { secret } = (await newer.client.post('/api/auth/totp/enrol')).body;
      await newer.client.post('/api/auth/totp/confirm', { code: codeOfApp(secret) });
      expect((await older.client.get('/api/vaults')).status).toBe(403);
      await older.client.post('/api/auth/confirm', { password: PASSWORD });
      expect((await older.client.get('/api/vaults')).status).toBe(403);
      const code = await unspentCode(service.app.db, { id: person.id, secret });
      expect((await older.client.post('/api/auth/confirm', { code })).status).toBe(200);
      expect((await older.client.get('/api/vaults')).status).toBe(200);
      expect(codeOf(await older.client.post('/api/auth/confirm', { code }))).toBe(WRONG);
    });

    test('a guest who signs in in two steps stays a guest until the second', async () => {
      const person = await newEnrolled(service.anonymous);
      const visit = await service.anonymous.post('/api/auth/guest');
      const guest = service.anonymous.with({ Authorization: `Bearer ${visit.body.access_token}` });
      const first = await guest.post('/api/auth/login', { email: person.email, password: PASSWORD });
      expect((await guest.get('/api/vaults')).status).toBe(403);
      expect(
        (
          await guest.post('/api/auth/challenge', {
            challenge: first.body.challenge,
            method: 'totp',
            code: await unspentCode(service.app.db, person),
          })
        ).status,
      ).toBe(200);
      expect(codeOf(await guest.get('/api/vaults'))).toBe('401 invalid_token');
    });

    test('keys and guests have no second factor to enrol', async () => {
      const visit = await service.anonymous.post('/api/auth/guest');
      const guest = service.anonymous.with({ Authorization: `Bearer ${visit.body.access_token}` });
      for (const [method, path] of [
        ['POST', 'totp/enrol'],
        ['POST', 'totp/confirm'],
        ['POST', 'totp/recovery'],
        ['DELETE', 'totp'],
      ] as const) {
        expect(codeOf(await guest.send(method, `/api/auth/${path}`, { json: { code: '123456' } }))).toBe(
          '403 forbidden',
        );
        expect(codeOf(await service.anonymous.send(method, `/api/auth/${path}`, { json: { code: '123456' } }))).toBe(
          '401 unauthenticated',
        );
      }
    });

    test('the first proof of an address takes the factors of a stranger who held the account', async () => {
      const person = await newEnrolled(service.anonymous);
      await service.app.db.run(sql`
        INSERT INTO "_auth_passkeys" (id, user_id, name, credential_id, public_key, counter, created_at)
        VALUES (gen_random_uuid(), ${uuid(person.id)}, 'x', ${text(person.id)}, '', 0, now())`);
      const proof = { userId: person.id, email: person.email };
      const reset = async (password: string) => {
        const token = await service.app.db.transaction((tx) => issueProof(tx, 'reset_password', proof));
        return (await service.anonymous.post('/api/auth/password/reset/confirm', { token, password })).status;
      };
      expect(await reset('the phrase of the owner')).toBe(204);
      const owner = await login(service.anonymous, person.email, 'the phrase of the owner');
      expect((await owner.client.get('/api/auth/passkeys')).body.data).toEqual([]);
      // From then on, a reset leaves them as they are.
      const { secret } = (await owner.client.post('/api/auth/totp/enrol')).body;
      await owner.client.post('/api/auth/totp/confirm', { code: codeOfApp(secret) });
      expect(await reset('another phrase of the owner')).toBe(204);
      expect((await firstStep(person.email, 'another phrase of the owner')).body.methods).toEqual(['totp', 'recovery']);
    });

    test('a page of another site cannot finish a sign-in', async () => {
      const person = await newEnrolled(service.anonymous);
      const body = { challenge: await challengeOf(person.email), method: 'totp', code: codeOfApp(person.secret) };
      const headers = { Origin: 'https://evil.example', 'Sec-Fetch-Site': 'cross-site' };
      expect(codeOf(await service.anonymous.post('/api/auth/challenge', body, headers))).toBe('403 cross_origin');
    });

    test('the audit trail holds no code and no secret', async () => {
      const person = await newEnrolled(service.anonymous);
      await answer(await challengeOf(person.email), person.recoveryCodes[0]!, 'recovery');
      const rows = await service.app.db.rows(
        sql`SELECT coalesce(detail, '') FROM "_auth_audit" WHERE user_id = ${uuid(person.id)}`,
      );
      const written = rows.flat().join(' ');
      for (const hidden of [person.secret, ...person.recoveryCodes]) expect(written).not.toContain(hidden);
      expect(
        await service.app.db.rows(
          sql`SELECT 1 FROM "_auth_audit" WHERE event = ${text('second_factor_asked')} LIMIT 1`,
        ),
      ).toHaveLength(1);
    });
  },
  { schema: SCHEMA },
);

describeOnOne(
  'limits of codes',
  (service) => {
    test('an account has fifty wrong codes in a quarter of an hour, over all challenges', async () => {
      const person = await newEnrolled(service.anonymous);
      const wrong = () => person.client.post('/api/auth/totp/recovery', { code: 'zzzzzzzzzz' });
      const answers: Answer[] = [];
      for (let i = 0; i < 51; i++) answers.push(await wrong());
      expect(answers.slice(0, 50).map(codeOf)).toEqual(Array(50).fill(WRONG));
      expect(codeOf(answers[50]!)).toBe('429 rate_limited');
      const { challenge } = (
        await service.anonymous.post('/api/auth/login', { email: person.email, password: PASSWORD })
      ).body;
      const code = await unspentCode(service.app.db, person);
      expect(codeOf(await service.anonymous.post('/api/auth/challenge', { challenge, method: 'totp', code }))).toBe(
        '429 rate_limited',
      );
      const other = await newEnrolled(service.anonymous);
      expect(
        (await other.client.post('/api/auth/totp/recovery', { code: await unspentCode(service.app.db, other) })).status,
      ).toBe(200);
    });
  },
  { schema: SCHEMA, env: { BYLAW_RATE_LIMIT: 'on' } },
);
