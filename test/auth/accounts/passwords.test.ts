// @module-tag long
/** Passwords: which are accepted, how they are stored, what a flood does, and that timing does not reveal who is registered. */
import { hash, parseOptions } from '@node-rs/argon2';
import { describe, expect, test } from 'vitest';
import { createPasswordPool } from '../../../src/auth/accounts/passwords.ts';
import { Problem } from '../../../src/problem.ts';
import { param, sql } from '../../../src/sql.ts';
import { describeOnOne, type TestService } from '../../support/service.ts';
import { codeOf, login, newEmail, newPerson, PASSWORD, register, SCHEMA } from '../people.ts';

const tryPassword = async (service: TestService, password: string, email = newEmail()) => {
  const answer = await service.anonymous.send('POST', '/api/auth/register', {
    headers: { 'Content-Type': 'application/json' },
    raw: JSON.stringify({ email, password }),
  });
  return answer.status === 201 ? 'taken' : `${answer.body.errors[0].pointer} ${answer.body.errors[0].code}`;
};
const storedHash = async (service: TestService, id: string) =>
  (
    await service.app.db.rows(sql`SELECT password_hash FROM "_auth_accounts" WHERE user_id = ${param('uuid', id)}`)
  )[0]![0]!;

/** The cost of a login: milliseconds that passed, microseconds of a processor. */
interface Cost {
  readonly time: number;
  readonly processor: number;
}
/** The lower one: what disturbs only adds. */
const quartile = (costs: readonly Cost[], of: keyof Cost): number => {
  const values = costs.map((cost) => cost[of]);
  return values.sort((a, b) => a - b)[Math.floor(values.length / 4)]!;
};

describeOnOne(
  'passwords',
  (service) => {
    test.each([
      ['7 characters', 'gh#kq2v', '/password too_short'],
      ['8 characters', 'gh#kq2vz', 'taken'],
      ['7 characters outside the basic plane', '🦊🐻🐼🦁🐯🐨🐮', '/password too_short'],
      ['8 characters outside the basic plane', '🦊🐻🐼🦁🐯🐨🐮🐷', 'taken'],
      ['256 characters', `${'ab#d'.repeat(60)}gh#kq2vzgh#kq2vz`, 'taken'],
      ['257 characters', `${'ab#d'.repeat(60)}gh#kq2vzgh#kq2vz!`, '/password too_long'],
      ['as long as a body can be', 'x'.repeat(16_000), '/password too_long'],
      ['few characters that are many after NFKC', 'ﷺ'.repeat(15), '/password too_long'],
      ['a lone surrogate', 'gh#kq2vz\ud800', '/password invalid_value'],
      ['a NUL', 'gh#kq2vz\u0000', '/password invalid_value'],
      ['spaces inside', 'the quick brown wolf', 'taken'],
      ['a common one', 'password', '/password common_password'],
      ['a common one with a number', 'Password1', '/password common_password'],
      ['a common one with marks', 'P@ssw0rd!', '/password common_password'],
      ['a common one with a year', 'qwerty2024', '/password common_password'],
      ['a run', '12345678', '/password common_password'],
      ['a run of letters', 'abcdefgh', '/password common_password'],
      ['a run of keys', 'qwertyuiop', '/password common_password'],
      ['one character', 'aaaaaaaaaa', '/password common_password'],
      ['a common one in full width', 'ｐａｓｓｗｏｒｄ', '/password common_password'],
      ['a season', 'Summer2025!', '/password common_password'],
    ])('%s', async (_, password, expected) => {
      expect(await tryPassword(service, password)).toBe(expected);
    });
    test('a password made from the email address counts as common', async () => {
      expect(await tryPassword(service, 'rumpelstiltskin', 'rumpelstiltskin@example.org')).toBe(
        '/password common_password',
      );
      expect(await tryPassword(service, 'Rumpelstilz9', 'rumpelstilz@example.org')).toBe('/password common_password');
    });

    test('the same text in another Unicode form is the same password', async () => {
      const { email } = await register(service.anonymous, newEmail(), 'Ångström ﬁnds ½');
      await login(service.anonymous, email, 'A\u030angstro\u0308m finds 1\u20442');
      const other = await service.anonymous.post('/api/auth/login', { email, password: 'angström finds ½' });
      expect(codeOf(other)).toBe('401 invalid_credentials');
    });

    test('the accounts store argon2id hashes, each with its own salt', async () => {
      const [one, two] = [await register(service.anonymous), await register(service.anonymous)];
      const hashes = await Promise.all([one, two].map(({ id }) => storedHash(service, id)));
      expect(hashes[0]).not.toBe(hashes[1]);
      for (const each of hashes) {
        expect(each).toMatch(/^\$argon2id\$v=19\$/);
        expect(parseOptions(each)).toMatchObject({
          memoryCost: 19_456,
          timeCost: 2,
          parallelism: 1,
          outputLen: 32,
          saltLen: 16,
        });
      }
    });

    test('a login replaces a hash of weaker parameters, and keeps a present one', async () => {
      const { id, email } = await register(service.anonymous);
      const weak = await hash(PASSWORD, { memoryCost: 8_192, timeCost: 1 });
      await service.app.db.run(
        sql`UPDATE "_auth_accounts" SET password_hash = ${param('text', weak)} WHERE user_id = ${param('uuid', id)}`,
      );
      expect(codeOf(await service.anonymous.post('/api/auth/login', { email, password: 'wrong one' }))).toBe(
        '401 invalid_credentials',
      );
      expect(await storedHash(service, id)).toBe(weak);
      await login(service.anonymous, email);
      const strong = await storedHash(service, id);
      expect(parseOptions(strong)).toMatchObject({ memoryCost: 19_456, timeCost: 2 });
      await login(service.anonymous, email);
      expect(await storedHash(service, id)).toBe(strong);
    });

    test('an unknown email takes as long as a wrong password, within 10 %', async () => {
      const { email } = await register(service.anonymous);
      const costOf = async (name: string): Promise<Cost> => {
        const [began, before] = [performance.now(), process.cpuUsage()];
        const { status } = await service.anonymous.post('/api/auth/login', { email: name, password: 'wrong password' });
        const { user, system } = process.cpuUsage(before);
        expect(status).toBe(401);
        return { time: performance.now() - began, processor: user + system };
      };
      const difference = async (): Promise<number> => {
        const taken = { known: [] as Cost[], unknown: [] as Cost[] };
        for (let i = 0; i < 20; i++) {
          taken.known.push(await costOf(email));
          taken.unknown.push(await costOf(newEmail('stranger')));
        }
        const ratio = (of: keyof Cost) => quartile(taken.known, of) / quartile(taken.unknown, of);
        return Math.min(...(['time', 'processor'] as const).map((of) => Math.abs(Math.log(ratio(of)))));
      };
      // A machine that is busy with something else disturbs most measurements, and does not make two unequal costs equal.
      let least = Number.POSITIVE_INFINITY;
      for (let i = 0; i < 12 && least >= Math.log(1.1); i++) least = Math.min(least, await difference());
      expect(least).toBeLessThan(Math.log(1.1));
    });

    test('a flood of logins gets Retry-After for the excess, and lists are served meanwhile', async () => {
      const person = await newPerson(service.anonymous);
      let running = true;
      let lists = 0;
      const reading = (async () => {
        for (; running; lists++) expect((await person.client.get('/api/notes')).status).toBe(200);
      })();
      const memory = process.memoryUsage().rss;
      const body = { email: person.email, password: 'wrong password' };
      const flood = await Promise.all(
        Array.from({ length: 600 }, () => service.anonymous.post('/api/auth/login', body)),
      );
      running = false;
      await reading;
      const codes = Map.groupBy(flood, codeOf);
      expect([...codes.keys()].sort()).toEqual(['401 invalid_credentials', '429 rate_limited']);
      expect(codes.get('429 rate_limited')!.every((answer) => answer.headers.get('retry-after') === '1')).toBe(true);
      expect(codes.get('401 invalid_credentials')!.length).toBeGreaterThanOrEqual(64);
      expect(lists).toBeGreaterThan(1);
      expect(process.memoryUsage().rss - memory).toBeLessThan(300 * 1024 * 1024);
      await login(service.anonymous, person.email);
    });
  },
  { schema: SCHEMA, passwords: createPasswordPool() },
);

describe('the pool', () => {
  test('the pool runs and queues a bounded number, rejects the rest at once, and goes on afterwards', async () => {
    const pool = createPasswordPool({ running: 1, waiting: 3 });
    await pool.verify('a', undefined);
    const outcomes = await Promise.allSettled(Array.from({ length: 10 }, () => pool.hash('a password')));
    const refused = outcomes.filter((outcome) => outcome.status === 'rejected').map(({ reason }) => reason);
    expect(refused).toHaveLength(6);
    for (const reason of refused) expect(reason instanceof Problem && reason.code).toBe('rate_limited');
    expect(await pool.verify('a password', await pool.hash('a password'))).toEqual({ ok: true, rehash: false });
    expect(await pool.verify('another', await pool.hash('a password'))).toEqual({ ok: false, rehash: false });
    expect(await pool.verify('nobody has this one', undefined)).toEqual({ ok: false, rehash: false });
  });
});
