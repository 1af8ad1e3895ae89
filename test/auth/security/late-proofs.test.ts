// @module-tag long
/** Proofs that were right when they were checked, of accounts that change before the proofs are used. */
import { createHash, randomBytes } from 'node:crypto';
import { afterAll, expect, test } from 'vitest';
import type { PasswordPool } from '../../../src/auth/accounts/passwords.ts';
import { issueProof } from '../../../src/auth/mail/email-tokens.ts';
import { keepCode } from '../../../src/auth/oauth/app-codes.ts';
import type { Database } from '../../../src/database/contract.ts';
import { type Sql, sql, text, uuid } from '../../../src/sql.ts';
import type { Answer } from '../../support/client.ts';
import { lockWaits } from '../../support/lock-waits.ts';
import { cheapPasswords, describeOnBoth, type TestService } from '../../support/service.ts';
import { until } from '../../support/until.ts';
import { newEnrolled } from '../authenticator.ts';
import { Browser } from '../oauth/identity-provider.ts';
import { CLIENT, ProviderDoubles, SECRET } from '../oauth/provider-doubles.ts';
import { codeOf, login, newEmail, newPerson, PASSWORD, SCHEMA, type Tokens } from '../people.ts';

const doubles = await ProviderDoubles.listen();
afterAll(() => doubles.close());
const OAUTH = `oauth:
  gitlab: { preset: gitlab, issuer: '${doubles.url}/gitlab', client_id: ${CLIENT}, client_secret: ${SECRET} }
`;
const START = '/api/auth/oauth/gitlab/start';
const NEXT = 'another long phrase';
const WRONG = '401 invalid_credentials';

/** Holds the next call that passes, until it is let go. */
class Gate {
  #held: { readonly reached: () => void; readonly released: Promise<void> } | undefined;

  /** Resolves once `work` is held; the returned function lets it go, and resolves as it does. */
  async hold<T>(work: () => Promise<T>): Promise<() => Promise<T>> {
    const [reached, released] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    this.#held = { reached: reached.resolve, released: released.promise };
    const done = work();
    await reached.promise;
    return () => {
      released.resolve();
      return done;
    };
  }

  async pass(): Promise<void> {
    const held = this.#held;
    this.#held = undefined;
    held?.reached();
    await held?.released;
  }
}

const verified = new Gate();
const begun = new Gate();
const inserted = new Gate();
const cheap = cheapPasswords();
/** The gate is behind the comparison. Hashes of `stale` count as weaker than those of today. */
const stale = new Set<string>();
const passwords: PasswordPool = {
  hash: (password) => cheap.hash(password),
  async verify(password, stored) {
    const { ok } = await cheap.verify(password, stored);
    await verified.pass();
    return { ok, rehash: ok && stale.has(stored ?? '') };
  },
};

/** The gates are before the beginning of a transaction, and before a statement outside of one that inserts a row. */
const watch = async (db: Database): Promise<Database> =>
  new Proxy(db, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name, target);
      if (typeof value !== 'function') return value;
      return async (...args: unknown[]) => {
        if (name === 'transaction') await begun.pass();
        if (name === 'run' && (args[0] as Sql).text.trimStart().startsWith('INSERT')) await inserted.pass();
        return Reflect.apply(value, target, args);
      };
    },
  });

type Person = Tokens & { readonly id: string; readonly email: string };
interface Change {
  readonly of: TestService;
  readonly person: Person;
}

const proofFor = (purpose: 'reset_password' | 'change_email', { of, person }: Change, newEmail?: string) =>
  issueProof(of.app.db, purpose, { userId: person.id, email: person.email }, newEmail);

const CHANGES: Readonly<Record<string, (change: Change) => Promise<Answer | unknown>>> = {
  'a new password by a mail': async (change) => {
    const token = await proofFor('reset_password', change);
    return change.of.anonymous.post('/api/auth/password/reset/confirm', { token, password: NEXT });
  },
  'a new password in a session': ({ person }) =>
    person.client.post('/api/auth/password', { password: PASSWORD, new_password: NEXT }),
  'a new address': async (change) =>
    change.of.anonymous.post('/api/auth/email/change/confirm', {
      token: await proofFor('change_email', change, newEmail('moved')),
    }),
  'a disabled account': ({ of, person }) => of.app.auth.admin.setDisabled(person.email, true),
  'a deleted account': ({ of, person }) => of.app.db.run(sql`DELETE FROM "users" WHERE id = ${uuid(person.id)}`),
};

async function countOf(service: TestService, table: Sql, { id }: Pick<Person, 'id'>): Promise<number> {
  const [cells] = await service.app.db.rows(sql`SELECT count(*) FROM ${table} WHERE user_id = ${uuid(id)}`);
  return Number(cells![0]);
}
const SESSIONS = sql`"_auth_sessions"`;
const CHALLENGES = sql`"_auth_challenges"`;

describeOnBoth(
  'late proofs',
  (service) => {
    const logIn = ({ email }: Person, password = PASSWORD): Promise<Answer> =>
      service.anonymous.post('/api/auth/login', { email, password });
    const form = ({ email }: Person): Promise<Answer> =>
      service.anonymous.send('POST', '/auth/sign-in', {
        headers: { 'Content-Type': 'application/x-www-form-urlencoded', Origin: service.url },
        raw: new URLSearchParams({ email, password: PASSWORD }).toString(),
      });

    test.each(Object.entries(CHANGES))('a password begins no session after %s', async (name, change) => {
      const person = await newPerson(service.anonymous);
      const release = await verified.hold(() => logIn(person));
      await change({ of: service, person });
      const before = await countOf(service, SESSIONS, person);
      const late = await release();
      expect([codeOf(late), late.headers.getSetCookie()]).toEqual([WRONG, []]);
      expect(await countOf(service, SESSIONS, person)).toBe(before);
      expect(before).toBe(name === 'a new password in a session' ? 1 : 0);
      const wrong = await logIn(person, 'a wrong phrase of tests');
      expect(late.body).toEqual({ ...wrong.body, request_id: late.body.request_id });
    });

    test('a password by the page begins no session after a new password', async () => {
      const person = await newPerson(service.anonymous);
      const release = await verified.hold(() => form(person));
      await CHANGES['a new password by a mail']!({ of: service, person });
      const late = await release();
      expect([late.status, late.headers.getSetCookie()]).toEqual([401, []]);
      expect(await countOf(service, SESSIONS, person)).toBe(0);
    });

    test('a password begins no session that wakes when the account is enabled', async () => {
      const person = await newPerson(service.anonymous);
      const release = await verified.hold(() => logIn(person));
      await service.app.auth.admin.setDisabled(person.email, true);
      expect(codeOf(await release())).toBe(WRONG);
      await service.app.auth.admin.setDisabled(person.email, false);
      expect(await countOf(service, SESSIONS, person)).toBe(0);
      const events = await service.app.auth.admin.audit({ userId: person.id, event: 'login_failed', limit: 9 });
      expect(events.map(({ detail }) => detail)).toEqual([{ reason: 'account_changed' }]);
      expect((await logIn(person)).status).toBe(200);
    });

    test.each(Object.entries(CHANGES))('a password asks for no second factor after %s', async (_, change) => {
      const person = await newEnrolled(service.anonymous);
      const release = await verified.hold(() => logIn(person));
      await change({ of: service, person });
      expect(codeOf(await release())).toBe(WRONG);
      expect(await countOf(service, CHALLENGES, person)).toBe(0);
    });

    test('a password with an old hash leaves the new password', async () => {
      const person = await newPerson(service.anonymous);
      const [cells] = await service.app.db.rows(sql`
        SELECT password_hash FROM "_auth_accounts" WHERE user_id = ${uuid(person.id)}`);
      stale.add(cells![0]!);
      const release = await verified.hold(() => logIn(person));
      await CHANGES['a new password by a mail']!({ of: service, person });
      expect(codeOf(await release())).toBe(WRONG);
      expect([codeOf(await logIn(person)), (await logIn(person, NEXT)).status]).toEqual([WRONG, 200]);
    });

    test('a password with an old hash signs in, and stores the new hash', async () => {
      const person = await newPerson(service.anonymous);
      const hash = async () =>
        (
          await service.app.db.rows(sql`SELECT password_hash FROM "_auth_accounts" WHERE user_id = ${uuid(person.id)}`)
        )[0]![0]!;
      const before = await hash();
      stale.add(before);
      expect((await logIn(person)).status).toBe(200);
      expect(await hash()).not.toBe(before);
      expect((await logIn(person)).status).toBe(200);
    });

    test('a password gives no new password', async () => {
      const person = await newPerson(service.anonymous);
      const release = await verified.hold(() =>
        person.client.post('/api/auth/password', { password: PASSWORD, new_password: 'a phrase of a thief' }),
      );
      await CHANGES['a new password by a mail']!({ of: service, person });
      const late = await release();
      expect([codeOf(late), late.body.errors[0].pointer]).toEqual([WRONG, '/password']);
      expect([codeOf(await logIn(person, 'a phrase of a thief')), (await logIn(person, NEXT)).status]).toEqual([
        WRONG,
        200,
      ]);
    });

    test.each([
      ['confirms no sign-in', 'POST', '/api/auth/confirm', {}, 'sign_in_confirmed'],
      ['removes no second factor', 'DELETE', '/api/auth/totp', {}, 'second_factor_removed'],
      [
        'asks for no change of the address',
        'POST',
        '/api/auth/email/change/request',
        { email: newEmail('thief') },
        'email_change_requested',
      ],
    ])('a password %s', async (_, method, path, more, event) => {
      const person = await newEnrolled(service.anonymous);
      const json = { password: PASSWORD, ...more };
      const release = await verified.hold(() => person.client.send(method, path, { json }));
      // The session goes on.
      await CHANGES['a new password in a session']!({ of: service, person });
      const late = await release();
      expect([codeOf(late), late.body.errors[0].pointer]).toEqual([WRONG, '/password']);
      expect((await person.client.get('/api/auth/me')).body.second_factor).toBe('used');
      expect(await service.app.auth.admin.audit({ userId: person.id, event, limit: 1 })).toEqual([]);
    });

    test('an identity begins no session after it is unlinked', async () => {
      doubles.next = { sub: 'late', email: newEmail('late'), verified: true };
      const signIn = async () => JSON.parse((await new Browser().follow(`${service.url}${START}`)).text);
      const { user } = await signIn();
      const release = await begun.hold(signIn);
      // As by the first proof of the address.
      await service.app.db.run(sql`DELETE FROM "_auth_identities" WHERE user_id = ${uuid(user.id)}`);
      await service.app.auth.admin.setDisabled(user.email, true);
      await service.app.auth.admin.setDisabled(user.email, false);
      expect((await release()).code).toBe('invalid_credentials');
      expect(await countOf(service, SESSIONS, user)).toBe(0);
    });

    test('a code of an app is void after the sessions of its user ended', async () => {
      const [person, admin] = [await newPerson(service.anonymous), await service.user('admin')];
      const verifier = randomBytes(32).toString('base64url');
      const challenge = createHash('sha256').update(verifier).digest('base64url');
      const code = await keepCode(service.app.db, person.id, challenge);
      const exchange = () => service.anonymous.post('/api/auth/oauth/exchange', { code, verifier });
      const release = await begun.hold(exchange);
      expect((await admin.client.delete(`/api/users/${person.id}/sessions`)).status).toBe(204);
      expect(codeOf(await release())).toBe(WRONG);
      expect(await countOf(service, SESSIONS, person)).toBe(0);
    });

    test.each(['a new address', 'a disabled account', 'a deleted account'])(
      'a code by mail begins no session after %s',
      async (change) => {
        const person = await newPerson(service.anonymous);
        const mail = { id: '', kind: 'login', address: person.email, detail: {}, attempt: 1, createdAt: '' } as const;
        const secrets = await service.app.auth.loginCodes.issue({ ...mail, language: undefined });
        const release = await begun.hold(() =>
          service.anonymous.post('/api/auth/otp/confirm', { token: secrets!.token }),
        );
        await CHANGES[change]!({ of: service, person });
        expect(codeOf(await release())).toBe(WRONG);
        expect(await countOf(service, SESSIONS, person)).toBe(0);
      },
    );

    test.each<[string, object, Gate]>([
      ['auth/passkeys/options', {}, inserted],
      ['auth/totp/enrol', {}, inserted],
      ['auth/keys', { name: 'late', roles: ['member'] }, begun],
      ['users/invite', { email: newEmail('late'), roles: ['guest'] }, begun],
    ])('a session whose user is deleted makes nothing by /api/%s', async (path, body, gate) => {
      const person = await service.user('lead');
      const release = await gate.hold(() => person.client.post(`/api/${path}`, body));
      await service.app.db.run(sql`DELETE FROM "users" WHERE id = ${uuid(person.id)}`);
      expect(codeOf(await release())).toBe('401 unauthenticated');
    });

    if (service.kind === 'postgres')
      test.each([
        [
          'password',
          (id: string) => sql`UPDATE "_auth_accounts" SET password_hash = ${text('other')} WHERE user_id = ${uuid(id)}`,
        ],
        ['account', (id: string) => sql`UPDATE "users" SET disabled = true WHERE id = ${uuid(id)}`],
      ])('a password waits for a transaction that changes the %s', async (_, changing) => {
        const { db } = service.app;
        const person = await newPerson(service.anonymous);
        const [changed, waits] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
        const change = db.transaction(async (tx) => {
          await tx.run(changing(person.id));
          changed.resolve();
          await waits.promise;
        });
        await changed.promise;
        const late = logIn(person);
        await until('the login waits', async () => (await lockWaits(db)) > 0);
        waits.resolve();
        await change;
        expect(codeOf(await late)).toBe(WRONG);
        expect(await countOf(service, SESSIONS, person)).toBe(1);
        expect((await login(service.anonymous, (await newPerson(service.anonymous)).email)).access).toBeDefined();
      });
  },
  { schema: `${SCHEMA}\nmail: { otp: true }\n${OAUTH}`, passwords, watch },
);
