// @module-tag long
/** `bylaw user`, `bylaw keys` and `bylaw audit`, as processes, beside a running server and without one. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { Client } from '../support/client.ts';
import { fillDataFolder } from '../support/embedded/embedded.ts';
import { isolatedUrl } from '../support/postgres.ts';
import { run, type Server, serve } from '../support/process.ts';
import { until } from '../support/until.ts';
import { newEnrolled } from './authenticator.ts';
import { partsOf } from './forge.ts';
import { codeOf, login, newEmail, PASSWORD, register } from './people.ts';

const SCHEMA = join(import.meta.dirname, '../support/bylaw.yaml');

describe.each(['embedded', 'postgres'] as const)('commands (%s)', (kind) => {
  const skip = kind === 'postgres' && inject('postgresUrl') === '';
  let folder: string;
  let where: readonly string[];
  let server: Server;
  let client: Client;
  beforeAll(async () => {
    if (skip) return;
    folder = await mkdtemp(join(tmpdir(), 'bylaw-auth-'));
    if (kind === 'embedded') await fillDataFolder(join(folder, 'data'));
    where = [
      ...['--data', join(folder, 'data')],
      ...(kind === 'embedded' ? [] : ['--database-url', await isolatedUrl(inject('postgresUrl'))]),
    ];
    server = await serve(['--schema', SCHEMA, ...where]);
    client = new Client(server.url);
  });
  afterAll(async () => {
    await server?.end('SIGKILL');
    if (folder !== undefined) await rm(folder, { recursive: true, force: true });
  });
  const bylaw = (args: readonly string[], stdin?: string) =>
    run({ args: [...args, '--schema', SCHEMA, ...where], ...(stdin === undefined ? {} : { stdin }) });

  test.skipIf(skip)('the user commands add, assign roles, disable and enable', async () => {
    const email = newEmail('operator');
    const added = await bylaw(
      ['user', 'add', email, '--role', 'editor', '--role', 'member', '--password-stdin'],
      `${PASSWORD}\n`,
    );
    expect([added.code, added.stderr.includes('error')]).toEqual([0, false]);
    expect(JSON.parse(added.stdout)).toMatchObject({ email, email_verified: true, roles: ['editor', 'member'] });
    expect(added.stdout).not.toContain(PASSWORD);
    const person = await login(client, email);
    const changed = await bylaw(['user', 'roles', email, '--add', 'admin', '--remove', 'editor']);
    expect(JSON.parse(changed.stdout).roles).toEqual(['member', 'admin']);
    expect((await person.client.get('/api/auth/me')).body.user.roles).toEqual(['member', 'admin']);
    expect((await bylaw(['user', 'disable', email])).code).toBe(0);
    await until('the user is out', async () => (await person.client.get('/api/auth/me')).status === 401);
    expect((await bylaw(['user', 'enable', email])).code).toBe(0);
    await login(client, email);
  });

  test.skipIf(skip)('user email changes the address, and ends the sessions', async () => {
    const [{ email }, other, to] = [await register(client), await register(client), newEmail('moved')];
    const person = await login(client, email);
    const moved = await bylaw(['user', 'email', email, '--to', to.toUpperCase()]);
    expect([moved.code, JSON.parse(moved.stdout)]).toMatchObject([0, { email: to, email_verified: true }]);
    await until('the session is over', async () => (await person.client.get('/api/auth/me')).status === 401);
    await login(client, to);
    const { stdout } = await bylaw(['audit', '--event', 'email_changed', '--json']);
    const events = stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line));
    expect(events.find(({ event }) => event === 'email_changed')).toMatchObject({ detail: { from: email, to } });
    for (const [args, code, said] of [
      [['user', 'email', to], 2, 'expected --to ADDRESS'],
      [['user', 'email', to, '--to', 'nobody'], 1, 'email'],
      [['user', 'email', to, '--to', other.email], 1, 'email'],
      [['user', 'email', email, '--to', newEmail('other')], 1, 'no user has the email'],
    ] as const) {
      const ended = await bylaw(args);
      expect([ended.code, ended.stdout]).toEqual([code, '']);
      expect(ended.stderr).toContain(said);
    }
  });

  test.skipIf(skip)('user second-factor resets that of a user who has lost it', async () => {
    const person = await newEnrolled(client);
    const first = await client.post('/api/auth/login', { email: person.email, password: PASSWORD });
    expect(first.body.methods).toEqual(['totp', 'recovery']);
    const ended = await bylaw(['user', 'second-factor', person.email, '--reset']);
    expect([ended.code, JSON.parse(ended.stdout).email]).toEqual([0, person.email]);
    await login(client, person.email);
    const again = await bylaw(['user', 'second-factor', person.email, '--reset']);
    expect([again.code, again.stderr]).toEqual([1, 'bylaw user second-factor: the user has no second factor\n']);
  });

  test.skipIf(skip).each<[string, string[], string | undefined, number, string]>([
    ['no --reset', ['user', 'second-factor', 'x@example.org'], undefined, 2, '--reset'],
    ['nobody', ['user', 'roles', 'nobody@example.org', '--add', 'admin'], undefined, 1, 'no user'],
    ['a weak password', ['user', 'add', 'weak@example.org', '--password-stdin'], 'password1', 1, 'guessed'],
    [
      'a role that is none',
      ['user', 'add', 'role@example.org', '--role', 'boss', '--password-stdin'],
      PASSWORD,
      1,
      '`boss`',
    ],
    ['an address that is none', ['user', 'add', 'nobody', '--password-stdin'], PASSWORD, 1, 'email'],
    ['the password on the command line', ['user', 'add', 'x@example.org'], undefined, 2, 'standard input'],
    ['an unknown verb', ['user', 'remove', 'x@example.org'], undefined, 2, 'expected one of'],
    ['no change', ['user', 'roles', 'x@example.org'], undefined, 2, '--add'],
    ['a flag of another verb', ['user', 'disable', 'x@example.org', '--role', 'admin'], undefined, 2, '--role'],
    ['keys without a verb', ['keys'], undefined, 2, 'keys rotate'],
    ['audit with a bad limit', ['audit', '--limit', '0'], undefined, 2, '--limit'],
  ])('%s', async (_, args, stdin, code, said) => {
    const ended = await bylaw(args, stdin);
    expect([ended.code, ended.stdout]).toEqual([code, '']);
    expect(ended.stderr).toContain(said);
    expect(ended.stderr).not.toMatch(/ {4}at |argon2/);
  });

  test.skipIf(skip)(
    'keys rotate lets the running server sign with the new key, and take both',
    { timeout: 60_000 },
    async () => {
      const { email } = await register(client);
      const old = await login(client, email);
      const { code, stdout } = await bylaw(['keys', 'rotate']);
      const kid = /the new key is ([\w-]{43})/.exec(stdout)?.[1];
      expect([code, kid]).toEqual([0, expect.any(String)]);
      expect(stdout).toMatch(/; it signs in 2 seconds, when every server has it\n$/);
      let fresh = old;
      await until('the new key signs', async () => {
        fresh = await login(client, email);
        return partsOf(fresh.access).header.kid === kid;
      });
      for (const each of [old, fresh]) expect((await each.client.get('/api/auth/me')).status).toBe(200);
    },
  );

  test.skipIf(skip)('mail prints the waiting mails, retries them, and sends a test', async () => {
    const [queue, retry] = [await bylaw(['mail', 'queue']), await bylaw(['mail', 'retry'])];
    expect([queue.code, queue.stdout, retry.stdout]).toEqual([0, '', 'mails that are sent again: 0\n']);
    const sent = await bylaw(['mail', 'test', 'operator@example.org']);
    expect([sent.code, sent.stdout]).toEqual([0, expect.stringMatching(/^sent to \S+mail\n$/)]);
    const bad = await bylaw(['mail', 'test', 'nobody']);
    expect([bad.code, bad.stdout, bad.stderr]).toEqual([1, '', 'bylaw mail test: expected an email address\n']);
  });

  test.skipIf(skip)(
    'audit shows logins, addresses, failures and changes, and no secret',
    { timeout: 60_000 },
    async () => {
      const { email } = await register(client.with({ 'User-Agent': 'a browser of tests' }));
      const person = await login(client.with({ 'User-Agent': 'second "browser"', 'X-Request-Id': 'the-login' }), email);
      expect(codeOf(await client.post('/api/auth/login', { email, password: 'a wrong secret' }))).toBe(
        '401 invalid_credentials',
      );
      expect((await person.client.post('/api/auth/logout')).status).toBe(204);
      await bylaw(['user', 'roles', email, '--add', 'editor']);
      const { stdout } = await bylaw(['audit', '--user', email, '--json']);
      const rows = stdout
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line));
      expect(rows.map(({ event }) => event)).toEqual(['register', 'login', 'login_failed', 'logout', 'roles_changed']);
      expect(rows[1]).toMatchObject({
        email,
        ip: '127.0.0.1',
        user_agent: 'second "browser"',
        request_id: 'the-login',
        session_id: expect.any(String),
      });
      expect(rows[2]).toMatchObject({ detail: { reason: 'wrong_password' }, session_id: null });
      expect(rows[4].detail).toEqual({ from: ['member'], to: ['member', 'editor'] });
      const plain = await bylaw(['audit', '--limit', '1000']);
      expect(plain.stdout.split('\n').filter((line) => line.includes(email))).toHaveLength(5);
      for (const secret of [PASSWORD, 'a wrong secret', person.access, person.refresh, person.cookie.split('=')[1]!]) {
        expect(stdout + plain.stdout).not.toContain(secret);
      }
      const failed = await bylaw(['audit', '--event', 'login_failed', '--json', '--limit', '1']);
      expect(JSON.parse(failed.stdout)).toMatchObject({ event: 'login_failed', email });
    },
  );
});
