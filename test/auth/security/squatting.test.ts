// @module-tag long
/** A stranger registers an address of another person: the owner's proof of the address ends every way in of the stranger. */
import { afterAll, describe, expect, test } from 'vitest';
import { issueProof } from '../../../src/auth/mail/email-tokens.ts';
import { newSecret } from '../../../src/auth/sessions/secrets.ts';
import { sql, text, uuid } from '../../../src/sql.ts';
import { describeOnOne } from '../../support/service.ts';
import { until } from '../../support/until.ts';
import { enrol, newEnrolled, unspentCode } from '../authenticator.ts';
import { SmtpServer } from '../mail/smtp-server.ts';
import { Browser } from '../oauth/identity-provider.ts';
import { CLIENT, ProviderDoubles, SECRET } from '../oauth/provider-doubles.ts';
import { codeOf, login, newEmail, PASSWORD, type Tokens } from '../people.ts';

const NEXT = 'the phrase of the owner';
const smtp = new SmtpServer();
await smtp.start();
const doubles = await ProviderDoubles.listen();
afterAll(() => {
  smtp.close();
  doubles.close();
});
const SCHEMA = `
roles: { member: { assigns: [member] } }
register: { roles: [member] }
mail: { otp: true }
oauth:
  google: { preset: google, issuer: '${doubles.url}/google', client_id: ${CLIENT}, client_secret: ${SECRET} }
collections:
  notes: { fields: { text: string }, access: { view: [{ roles: [member] }] } }
`;

describeOnOne(
  'a squatted address',
  (service) => {
    const post = (path: string, body: object) => service.anonymous.post(`/api/auth/${path}`, body);
    type Person = Awaited<ReturnType<typeof newEnrolled>>;
    const makeKey = async ({ client }: Pick<Tokens, 'client'>): Promise<string> =>
      (await client.post('/api/auth/keys', { name: 'of the stranger', roles: ['member'] })).body.secret;

    /** Adds each way in that needs no browser by its route; the others by their rows. */
    async function squat() {
      const { db } = service.app;
      const person = await newEnrolled(service.anonymous);
      const { id, email } = person;
      const key = await makeKey(person);
      await db.run(sql`
        INSERT INTO "_auth_passkeys" (id, user_id, credential_id, public_key, counter, name, created_at)
        VALUES (gen_random_uuid(), ${uuid(id)}, ${text(newSecret())}, 'AA', 0, 'stranger', now())`);
      await db.run(sql`
        INSERT INTO "_auth_identities" (issuer, subject, user_id, created_at)
        VALUES ('https://stranger.example', ${text(id)}, ${uuid(id)}, now())`);
      await db.run(sql`
        INSERT INTO "_auth_former_guests" (user_id, guest, ended_at) VALUES (${uuid(id)}, gen_random_uuid(), now())`);
      await db.run(sql`
        INSERT INTO "_auth_oauth_codes" (hash, user_id, challenge, expires_at)
        VALUES (${text(newSecret())}, ${uuid(id)}, 'x', now() + interval '1 minute')`);
      const change = await issueProof(db, 'change_email', { userId: id, email }, `stranger-${email}`);
      return { person, key, change };
    }

    async function waysOf({ id }: Person): Promise<Readonly<Record<string, number>>> {
      const tables = ['passkeys', 'identities', 'former_guests', 'oauth_codes', 'totp', 'recovery_codes', 'challenges'];
      const counts: Record<string, number> = {};
      for (const table of tables) {
        const [cells] = await service.app.db.rows(sql`
          SELECT count(*) FROM ${RELATIONS[table]!} WHERE user_id = ${uuid(id)}`);
        if (cells![0] !== '0') counts[table] = Number(cells![0]);
      }
      return counts;
    }

    const byKey = async (key: string) =>
      codeOf(await service.anonymous.with({ Authorization: `Bearer ${key}` }).get('/api/notes'));
    const byPassword = async ({ email }: Person) => codeOf(await post('login', { email, password: PASSWORD }));
    const verify = async ({ id, email }: Person, of: Pick<Tokens, 'client'> = { client: service.anonymous }) => {
      const token = await issueProof(service.app.db, 'verify_email', { userId: id, email });
      expect((await of.client.post('/api/auth/email/verify/confirm', { token })).status).toBe(204);
    };
    const OPEN = '200 undefined';
    const LOST = '401 invalid_token';

    test('the token that verifies ends all but the password, for a reader who is not in a session of the account', async () => {
      const { person, key, change } = await squat();
      expect([await byKey(key), Object.keys(await waysOf(person)).length]).toEqual([OPEN, 6]);
      await verify(person);
      expect([await byKey(key), await waysOf(person)]).toEqual([LOST, {}]);
      expect(codeOf(await post('email/change/confirm', { token: change }))).toBe('422 validation_failed');
      expect(await byPassword(person)).toBe(OPEN);
    });

    describe('that the owner verified', () => {
      /** The stranger still has the password, and adds what the confirmation took. */
      async function squatAgain() {
        const { person } = await squat();
        await verify(person);
        const back = await login(service.anonymous, person.email);
        const { db } = service.app;
        const key = await makeKey(back);
        await db.run(sql`
          INSERT INTO "_auth_identities" (issuer, subject, user_id, created_at)
          VALUES ('https://stranger.example', ${text(`again ${person.id}`)}, ${uuid(person.id)}, now())`);
        expect(await byKey(key)).toBe(OPEN);
        return { person, back, key };
      }
      const lost = async ({ person, back, key }: Awaited<ReturnType<typeof squatAgain>>) => {
        expect([await byKey(key), await byPassword(person)]).toEqual([LOST, '401 invalid_credentials']);
        expect(codeOf(await back.client.get('/api/auth/me'))).toBe(LOST);
        expect(codeOf(await post('token/refresh', { refresh_token: back.refresh }))).toBe(LOST);
        const identities = await service.app.db.rows(sql`
          SELECT issuer FROM "_auth_identities" WHERE user_id = ${uuid(person.id)}`);
        return identities.flat();
      };

      test('a new password by a mail ends every way in', async () => {
        const squatted = await squatAgain();
        const { id, email } = squatted.person;
        const token = await issueProof(service.app.db, 'reset_password', { userId: id, email });
        expect((await post('password/reset/confirm', { token, password: NEXT })).status).toBe(204);
        expect(await lost(squatted)).toEqual([]);
        const own = await makeKey(await login(service.anonymous, email, NEXT));
        const later = await issueProof(service.app.db, 'reset_password', { userId: id, email });
        expect((await post('password/reset/confirm', { token: later, password: PASSWORD })).status).toBe(204);
        // The account is the owner's now: a later reset leaves the keys.
        expect(await byKey(own)).toBe(OPEN);
      });

      test('a new password by a mail ends all but a second factor that was set up since', async () => {
        const { person, back, key } = await squatAgain();
        await enrol(back.client);
        const token = await issueProof(service.app.db, 'reset_password', { userId: person.id, email: person.email });
        expect((await post('password/reset/confirm', { token, password: NEXT })).status).toBe(204);
        expect([await byKey(key), (await waysOf(person)).identities, (await waysOf(person)).totp]).toEqual([
          LOST,
          undefined,
          1,
        ]);
        const { status, body } = await post('login', { email: person.email, password: NEXT });
        expect([status, body.access_token]).toEqual([200, undefined]);
      });

      async function enterByMail(email: string) {
        await post('otp/request', { email });
        await until('a code', () => smtp.to(email).some(({ source }) => /^\d{6}$/m.test(source)));
        const code = smtp
          .to(email)
          .map(({ source }) => /^(\d{6})$/m.exec(source)?.[1])
          .find((found) => found)!;
        const answer = await post('otp/confirm', { email, code });
        expect(answer.status).toBe(200);
        return answer.body;
      }

      test('a code by mail ends every way in', async () => {
        const squatted = await squatAgain();
        await enterByMail(squatted.person.email);
        expect(await lost(squatted)).toEqual([]);
      });

      test('a code by mail and a second factor are of one person: nothing ends, also at a later reset', async () => {
        const { person, back, key } = await squatAgain();
        const { id, email } = person;
        const { secret } = await enrol(back.client);
        const { challenge } = await enterByMail(email);
        const code = await unspentCode(service.app.db, { id, secret });
        expect((await post('challenge', { challenge, method: 'totp', code })).status).toBe(200);
        const token = await issueProof(service.app.db, 'reset_password', { userId: id, email });
        expect((await post('password/reset/confirm', { token, password: NEXT })).status).toBe(204);
        expect([await byKey(key), (await waysOf(person)).identities]).toEqual([OPEN, 1]);
      });

      test('a provider that proves the address ends every way in', async () => {
        const squatted = await squatAgain();
        const { email } = squatted.person;
        doubles.next = { sub: email, email, name: 'Owner', verified: true };
        const page = await new Browser().follow(`${service.url}/api/auth/oauth/google/start`);
        expect([page.status, JSON.parse(page.text).user.email]).toEqual([200, email]);
        expect(await lost(squatted)).toEqual([`${doubles.url}/google`]);
      });
    });

    test('a confirmation in a session of the account keeps everything, also at a later reset', async () => {
      const { person, key } = await squat();
      const before = await waysOf(person);
      await verify(person, person);
      expect([await byKey(key), await waysOf(person)]).toEqual([OPEN, before]);
      const { id, email } = person;
      const token = await issueProof(service.app.db, 'reset_password', { userId: id, email });
      expect((await post('password/reset/confirm', { token, password: NEXT })).status).toBe(204);
      expect([await byKey(key), (await waysOf(person)).passkeys]).toEqual([OPEN, 1]);
    });

    describe('that an account was moved to', () => {
      /** The stranger's account is an old one, with an address that the stranger proved. */
      async function move(client?: Tokens['client']) {
        const { person, key } = await squat();
        await verify(person, person);
        const { id, email } = person;
        const next = newEmail('owner');
        const token = await issueProof(service.app.db, 'change_email', { userId: id, email }, next);
        const answer = await (client ?? person.client).post('/api/auth/email/change/confirm', { token });
        expect(answer.status).toBe(204);
        const reset = await issueProof(service.app.db, 'reset_password', { userId: id, email: next });
        expect((await post('password/reset/confirm', { token: reset, password: NEXT })).status).toBe(204);
        const { passkeys, identities, totp } = await waysOf(person);
        return [await byKey(key), passkeys, identities, totp];
      }

      test('outside of a session, its owner ends the ways of the stranger by a new password', async () => {
        expect(await move(service.anonymous)).toEqual([LOST, undefined, undefined, 1]);
      });

      test('in a session of the account, everything stays', async () => {
        expect(await move()).toEqual([OPEN, 1, 1, 1]);
      });
    });

    test('a confirmation in a session of another account counts as none', async () => {
      const [{ person, key }, other] = [await squat(), await newEnrolled(service.anonymous)];
      await verify(person, other);
      expect([await byKey(key), await waysOf(person)]).toEqual([LOST, {}]);
    });
  },
  { schema: SCHEMA, env: { SMTP_URL: smtp.url } },
);

const RELATIONS: Readonly<Record<string, ReturnType<typeof sql>>> = {
  passkeys: sql`"_auth_passkeys"`,
  identities: sql`"_auth_identities"`,
  former_guests: sql`"_auth_former_guests"`,
  oauth_codes: sql`"_auth_oauth_codes"`,
  totp: sql`"_auth_totp"`,
  recovery_codes: sql`"_auth_recovery_codes"`,
  challenges: sql`"_auth_challenges"`,
};
