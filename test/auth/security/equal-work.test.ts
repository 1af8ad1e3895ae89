/** Known and unknown addresses: the same answers, the same statements and the same hashes, so that time reveals none either. */
import { beforeAll, expect, test } from 'vitest';
import type { PasswordPool } from '../../../src/auth/accounts/passwords.ts';
import type { Database } from '../../../src/database/contract.ts';
import { currentCaller, SERVICE } from '../../../src/queued-caller.ts';
import { raw, type Sql } from '../../../src/sql.ts';
import type { Answer, Client } from '../../support/client.ts';
import { cheapPasswords, describeOnOne } from '../../support/service.ts';
import { newEmail, newPerson, PASSWORD, SCHEMA } from '../people.ts';

/** The work of requests; that of the service itself, such as sending mails, follows its own clock. */
let work: string[] = [];
const note = (what: string): void => {
  if (currentCaller() !== SERVICE) work.push(what);
};

/** Notes each statement before it is sent. */
function noted<T extends object>(db: T): T {
  return new Proxy(db, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name, target);
      if (typeof value !== 'function') return value;
      return (...args: unknown[]) => {
        if (name === 'rows' || name === 'run' || name === 'write') note((args[0] as Sql).text.replaceAll(/\s+/g, ' '));
        if (name !== 'transaction') return Reflect.apply(value, target, args);
        note('transaction');
        const [run, ...rest] = args as [(tx: object) => unknown, ...unknown[]];
        return Reflect.apply(value, target, [(tx: object) => run(noted(tx)), ...rest]);
      };
    },
  });
}

const cheap = cheapPasswords();
const passwords: PasswordPool = {
  hash(password) {
    note('argon2 hash');
    return cheap.hash(password);
  },
  verify(password, stored) {
    note('argon2 verify');
    return cheap.verify(password, stored);
  },
};

/** The length follows from the text, which a form shows the address in. */
const IGNORED = ['x-request-id', 'date', 'content-length'];

/** The parts of an answer that a stranger sees, and the work for it. */
async function seen(ask: () => Promise<Answer>) {
  work = [];
  const { status, text, headers } = await ask();
  const shown = [...headers].filter(([name]) => !IGNORED.includes(name));
  return { status, text: text.replace(/"request_id":"[^"]*"/, ''), headers: shown, work };
}

describeOnOne(
  'known and unknown addresses',
  (service) => {
    let known: string;
    let codeless: string;
    let passwordless: string;
    let disabled: string;
    beforeAll(async () => {
      const made = async () => (await newPerson(service.anonymous)).email;
      [known, codeless, passwordless, disabled] = [await made(), await made(), await made(), await made()];
      const { db, auth } = service.app;
      await db.run(
        raw(
          `UPDATE "_auth_accounts" SET password_hash = NULL FROM "users" WHERE id = user_id AND email = '${passwordless}'`,
        ),
      );
      await auth.admin.setDisabled(disabled, true);
      for (const address of [known, disabled])
        await auth.loginCodes.issue({
          id: '',
          kind: 'login',
          address,
          detail: {},
          attempt: 1,
          createdAt: '',
          language: undefined,
        });
    });

    const post = (path: string, body: object) => service.anonymous.post(`/api/auth/${path}`, body);
    const form = (page: string, fields: Record<string, string>) =>
      service.anonymous.send('POST', `/auth/${page}`, {
        headers: { 'Content-Type': 'application/x-www-form-urlencoded' },
        raw: new URLSearchParams(fields).toString(),
      });

    test.each<[string, (email: string) => Promise<Answer>, RegExp]>([
      ['a login', (email) => post('login', { email, password: 'a wrong password' }), /argon2 verify/],
      ['a request for a reset', (email) => post('password/reset/request', { email }), /INSERT INTO "_auth_outbox"/],
      ['a request for a code', (email) => post('otp/request', { email }), /INSERT INTO "_auth_outbox"/],
      ['a code', (email) => post('otp/confirm', { email, code: 'x' }), /UPDATE "_auth_otp"/],
      ['the form of a login', (email) => form('sign-in', { email: email, password: 'a wrong one' }), /argon2 verify/],
    ])('%s does the same work, and gives the same answer', async (_, ask, statement) => {
      // The first use of a part of the service may read a key.
      await ask(newEmail('nobody'));
      const unknown = await seen(() => ask(newEmail('nobody')));
      expect(unknown.work.filter((each) => statement.test(each))).toHaveLength(1);
      expect(unknown.work.filter((each) => each.startsWith('argon2')).length).toBeLessThan(2);
      const hide = (text: string, email: string) => text.replaceAll(email, '');
      for (const email of [known, codeless, passwordless, disabled]) {
        const found = await seen(() => ask(email));
        const { text, ...rest } = unknown;
        const plain = { ...found, text: hide(found.text, email) };
        expect([email, plain]).toEqual([email, { ...rest, text: text.replaceAll(/nobody[^"]*@example\.org/g, '') }]);
      }
    });

    test('a change to an address that another account has does the same work', async () => {
      const { client } = await newPerson(service.anonymous);
      const change = (email: string) => client.post('/api/auth/email/change/request', { email, password: PASSWORD });
      await change(newEmail('free'));
      const free = await seen(() => change(newEmail('free')));
      expect(free.status).toBe(202);
      expect(await seen(() => change(known))).toEqual(free);
    });
  },
  {
    schema: `${SCHEMA}mail: { otp: true }\nlimits: { login_address: 1000 in 15m, login_account: 1000 in 15m, reset: 1000 in 15m, refresh: 1000 in 15m }\n`,
    env: { BYLAW_RATE_LIMIT: 'on' },
    passwords,
    watch: async (db: Database) => noted(db),
  },
);

describeOnOne(
  'known and unknown networks',
  (service) => {
    let last = 0;
    const somewhere = () => service.anonymous.with({ 'X-Forwarded-For': `10.8.0.${++last}` });

    test.each<[string, (client: Client, email: string) => Promise<Answer>]>([
      ['a login', (client, email) => client.post('/api/auth/login', { email, password: 'a wrong password' })],
      ['a code', (client, email) => client.post('/api/auth/otp/confirm', { email, code: 'x' })],
      ['a request for a reset', (client, email) => client.post('/api/auth/password/reset/request', { email })],
    ])('%s does the same work at both, also beyond the limit of the account', async (_, ask) => {
      const home = somewhere();
      const { email } = await newPerson(home);
      /** The first two come from elsewhere; the limit is three. */
      const asked = async (address: string, neighbor: Client) => {
        const found: unknown[] = [];
        for (const client of [somewhere(), somewhere(), ...Array<Client>(5).fill(neighbor)]) {
          const { headers, ...rest } = await seen(() => ask(client, address));
          const shown = headers.filter(([name]) => !['retry-after', 'ratelimit'].includes(name));
          found.push({ ...rest, text: rest.text.replace(/in \d+ s/, ''), headers: shown });
        }
        return found;
      };
      // The first refusal of each limit is recorded once.
      await asked(newEmail('first'), somewhere());
      const unknown = await asked(newEmail('nobody'), somewhere());
      expect(await asked(email, home)).toEqual(unknown);
    });
  },
  {
    schema: `${SCHEMA.replace(/roles:/, 'proxies: [127.0.0.1]\nroles:')}mail: { otp: true }\nlimits: { login_account: 3 in 15m, reset: 3 in 15m }\n`,
    env: { BYLAW_RATE_LIMIT: 'on' },
    passwords,
    watch: async (db: Database) => noted(db),
  },
);
