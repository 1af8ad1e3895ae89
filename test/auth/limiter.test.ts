// @module-tag long
/** Limits on attempts; and that they cannot be used to lock others out. */
import { expect, test } from 'vitest';
import type { PasswordPool } from '../../src/auth/accounts/passwords.ts';
import { issueProof, type Purpose } from '../../src/auth/mail/email-tokens.ts';
import { raw } from '../../src/sql.ts';
import type { Answer } from '../support/client.ts';
import { cheapPasswords, describeOnOne, type TestService } from '../support/service.ts';
import { codeOf, login, newEmail, newPerson, PASSWORD, refresh, register, SCHEMA } from './people.ts';

const LIMITED = `${SCHEMA.replace(/roles:/, 'proxies: [127.0.0.1]\nroles:')}
limits: { login_account: 10 in 15m, login_address: 50 in 15m, register: 30 in 15m, refresh: 20 in 15m, reset: 5 in 15m }
`;
const cheap = cheapPasswords();
let checks = 0;
const passwords: PasswordPool = {
  hash: (password) => cheap.hash(password),
  verify(password, stored) {
    checks++;
    return cheap.verify(password, stored);
  },
};
const OPTIONS = { schema: LIMITED, env: { BYLAW_RATE_LIMIT: 'on' }, passwords };
let last = 0;
/** Another address each time. */
const somewhere = (): string => `10.${(++last >> 16) & 255}.${(last >> 8) & 255}.${last & 255}`;
const from = (service: TestService, address: string) => service.anonymous.with({ 'X-Forwarded-For': address });
const wrong = (service: TestService, address: string, email: string) =>
  from(service, address).post('/api/auth/login', { email, password: 'wrong password' });
const times = async (n: number, work: (i: number) => Promise<Answer>): Promise<readonly string[]> => {
  const codes: string[] = [];
  for (let i = 0; i < n; i++) codes.push(codeOf(await work(i)));
  return codes;
};
const ATTACKERS = 16;
const BAD = '401 invalid_credentials';
const LIMIT = '429 rate_limited';
/** Makes a user through the command line, which has no limits. */
const person = async (service: TestService) => {
  const email = newEmail();
  await service.app.auth.admin.addUser({ email, password: PASSWORD, roles: ['member'] });
  return email;
};

describeOnOne(
  'limits',
  (service) => {
    test('the eleventh failed login of an account gets the time to wait, and so does the right password', async () => {
      const email = await person(service);
      expect(await times(11, () => wrong(service, somewhere(), email))).toEqual([...Array(10).fill(BAD), LIMIT]);
      const answer = await from(service, somewhere()).post('/api/auth/login', {
        email: email.toUpperCase(),
        password: PASSWORD,
      });
      expect(codeOf(answer)).toBe(LIMIT);
      const wait = Number(answer.headers.get('retry-after'));
      expect(wait).toBeGreaterThan(800);
      expect(wait).toBeLessThanOrEqual(900);
      expect(answer.headers.get('ratelimit-policy')).toBe('"login-account";q=10;w=900');
      expect(answer.headers.get('ratelimit')).toBe(`"login-account";r=0;t=${wait}`);
      expect(answer.headers.getSetCookie()).toEqual([]);
    });

    test('an unknown account has the same limit', async () => {
      const email = newEmail('nobody');
      expect(await times(11, () => wrong(service, somewhere(), email))).toEqual([...Array(10).fill(BAD), LIMIT]);
    });

    test('concurrent attempts learn no more than the limit, not even with the right password', async () => {
      const email = await person(service);
      const attempt = async (password: string) =>
        codeOf(await from(service, somewhere()).post('/api/auth/login', { email, password }));
      const wrongs = Array.from({ length: 60 }, (_, i) => attempt(`wrong password ${i}`));
      // The order of attempts is unknown; but one that is made after the first rejection is too late.
      const firstRefusal = Promise.any(wrongs.map(async (code) => expect(await code).toBe(LIMIT)));
      expect(await firstRefusal.then(() => attempt(PASSWORD))).toBe(LIMIT);
      const codes = await Promise.all(wrongs);
      expect(codes.filter((code) => code === BAD)).toHaveLength(10);
      expect(codes.filter((code) => code === LIMIT)).toHaveLength(50);
    });

    test('a stranger who uses up the attempts of an account does not keep its owner out', async () => {
      const email = await person(service);
      const home = somewhere();
      await login(from(service, home), email);
      const attack = somewhere();
      expect(await times(12, () => wrong(service, attack, email))).toEqual([...Array(10).fill(BAD), LIMIT, LIMIT]);
      expect(codeOf(await from(service, somewhere()).post('/api/auth/login', { email, password: PASSWORD }))).toBe(
        LIMIT,
      );
      await login(from(service, home), email);
      // Nor may the owner's own address guess without end.
      expect(await times(10, () => wrong(service, home, email))).toEqual(Array(10).fill(LIMIT));
      expect(codeOf(await from(service, home).post('/api/auth/login', { email, password: PASSWORD }))).toBe(LIMIT);
    });

    test('a network that an account was used from gets the answers and the work of any other', async () => {
      const seen = async (address: string, email: string) => {
        const before = checks;
        const answer = await wrong(service, address, email);
        return [codeOf(answer), answer.headers.get('ratelimit-policy'), checks - before];
      };
      /** A neighbor of the owner guesses, here and elsewhere; and a neighbor of an unknown address. */
      const guesses = async (email: string, home: string, elsewhere: readonly string[]) => {
        const places = [...elsewhere, ...Array<string>(12).fill(home), somewhere(), somewhere()];
        const answers: unknown[] = [];
        for (const place of places) answers.push(await seen(place, email));
        return answers;
      };
      for (const strangers of [0, 7, 12]) {
        const [home, email] = [somewhere(), await person(service)];
        await login(from(service, home), email);
        const elsewhere = Array.from({ length: strangers }, somewhere);
        const ofNobody = await guesses(newEmail('nobody'), somewhere(), elsewhere);
        expect(await guesses(email, home, elsewhere)).toEqual(ofNobody);
        expect(ofNobody.at(-1)![0 as never]).toBe(LIMIT);
      }
    });

    test('an address that failed fifty times fails for every account, and other addresses do not', async () => {
      const email = await person(service);
      const attack = somewhere();
      const codes = await times(51, () => wrong(service, attack, newEmail('guess')));
      expect(codes).toEqual([...Array(50).fill(BAD), LIMIT]);
      expect(codeOf(await from(service, attack).post('/api/auth/login', { email, password: PASSWORD }))).toBe(LIMIT);
      await login(from(service, somewhere()), email);
    });

    test('addresses of one IPv6 network count as one', async () => {
      const codes = await times(51, (i) => wrong(service, `2001:db8:1:2::${i + 1}`, newEmail('guess')));
      expect(codes).toEqual([...Array(50).fill(BAD), LIMIT]);
      expect(codeOf(await wrong(service, '2001:db8:1:3::1', newEmail('guess')))).toBe(BAD);
    });

    const many = 300;
    test(`${many} failed logins cost fifty password checks, and the rest none`, async () => {
      const email = await person(service);
      const attack = somewhere();
      const before = checks;
      const codes = new Map<string, number>();
      let left = many;
      const attacker = async () => {
        while (left-- > 0) {
          const code = codeOf(await wrong(service, attack, left % 2 ? email : newEmail('guess')));
          codes.set(code, (codes.get(code) ?? 0) + 1);
        }
      };
      await Promise.all(Array.from({ length: ATTACKERS }, attacker));
      expect([...codes.keys()].sort()).toEqual([BAD, LIMIT]);
      expect(codes.get(BAD)).toBeLessThanOrEqual(50);
      expect(codes.get(BAD)).toBeGreaterThanOrEqual(10);
      expect((codes.get(BAD) ?? 0) + (codes.get(LIMIT) ?? 0)).toBe(many);
      // Attempts that were running when the last one was used up do not get their result.
      expect(checks - before).toBeLessThanOrEqual(50 + ATTACKERS);
      await login(from(service, somewhere()), await person(service));
    });

    test('an address has a limit of registrations', async () => {
      const crowd = somewhere();
      const codes = await times(31, () =>
        from(service, crowd).post('/api/auth/register', { email: newEmail(), password: PASSWORD }),
      );
      expect(codes).toEqual([...Array(30).fill('201 undefined'), LIMIT]);
      await register(from(service, somewhere()));
    });

    test('an address has a limit of refreshes', async () => {
      const place = somewhere();
      const codes = await times(21, () => refresh(from(service, place), 'A'.repeat(43)));
      expect(codes).toEqual([...Array(20).fill('401 invalid_token'), LIMIT]);
    });

    test('requests for mails have a limit for the sender, and no answer shows that of the mailbox', async () => {
      const place = somewhere();
      const ask = (address: string, email: string) =>
        from(service, address).post('/api/auth/password/reset/request', { email });
      expect(await times(6, () => ask(place, newEmail()))).toEqual([...Array(5).fill('202 undefined'), LIMIT]);
      for (const email of [await person(service), newEmail('nobody')])
        expect(await times(8, () => ask(somewhere(), email))).toEqual(Array(8).fill('202 undefined'));
    });

    test('colleagues in one office verify their addresses, and wrong tokens of another hold none of them up', async () => {
      const office = from(service, somewhere());
      const colleagues = await Promise.all(
        Array.from({ length: 7 }, async () => {
          const email = newEmail();
          const user = { email, password: PASSWORD, roles: ['member'], isVerified: false };
          const { id } = await service.app.auth.admin.addUser(user);
          return { userId: id, email, client: (await login(office, email)).client };
        }),
      );
      const ask = (i: number) => colleagues[i]!.client.post('/api/auth/email/verify/request');
      expect(await times(7, ask)).toEqual(Array(7).fill('202 undefined'));
      const token = (i: number, purpose: Purpose) => issueProof(service.app.db, purpose, colleagues[i]!);
      const verify = (text: string) => office.post('/api/auth/email/verify/confirm', { token: text });
      const wrongs = await times(6, () => verify('A'.repeat(43)));
      expect(wrongs).toEqual([...Array(5).fill('422 validation_failed'), LIMIT]);
      const rights = await times(7, async (i) => verify(await token(i, 'verify_email')));
      expect(rights).toEqual(Array(7).fill('204 undefined'));
      const reset = { token: await token(0, 'reset_password'), password: 'an even longer phrase' };
      expect((await office.post('/api/auth/password/reset/confirm', reset)).status).toBe(204);
      expect((await office.post('/api/auth/password/reset/request', { email: newEmail() })).status).toBe(202);
    });

    test('an account has a limit of mails that verify its address, wherever they are asked for', async () => {
      const email = newEmail();
      await service.app.auth.admin.addUser({ email, password: PASSWORD, roles: ['member'], isVerified: false });
      const { access } = await login(from(service, somewhere()), email);
      const ask = () =>
        from(service, somewhere())
          .with({ Authorization: `Bearer ${access}` })
          .post('/api/auth/email/verify/request');
      expect(await times(6, ask)).toEqual([...Array(5).fill('202 undefined'), LIMIT]);
    });

    test('the limiter trusts the addresses of configured proxies only', async () => {
      // The test's proxy is 127.0.0.1 itself; what it adds at the end counts, not what the client wrote before.
      const email = newEmail('nobody');
      const place = somewhere();
      const codes = await times(51, (i) =>
        service.anonymous.post(
          '/api/auth/login',
          { email: newEmail('x'), password: 'wrong' },
          { 'X-Forwarded-For': `9.9.9.${i}, ${place}` },
        ),
      );
      expect(codes.at(-1)).toBe(LIMIT);
      expect(codeOf(await wrong(service, somewhere(), email))).toBe(BAD);
    });

    test('the counters name no user', async () => {
      const rows = await service.app.db.rows(raw('SELECT key FROM "_auth_limits"'));
      expect(rows.length).toBeGreaterThan(10);
      expect(JSON.stringify(rows)).not.toContain('@example');
    });
  },
  OPTIONS,
);

describeOnOne(
  'changing a password',
  (service) => {
    test('a password change has the limit of a login: a stolen session cannot guess', async () => {
      const { client } = await newPerson(service.anonymous);
      const guess = () =>
        client.post('/api/auth/password', { password: 'wrong password', new_password: 'a fine new phrase' });
      expect(await times(11, guess)).toEqual([...Array(10).fill(BAD), LIMIT]);
    });
  },
  OPTIONS,
);
