// @module-tag long
/**
 * No token, code, key or secret of an account or a second factor is in a log, another answer, a metric, the audit trail, a backup or
 * the data folder.
 */
import { randomBytes } from 'node:crypto';
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { afterAll, expect, test } from 'vitest';
import { type Answer, Client } from '../../support/client.ts';
import { fillDataFolder } from '../../support/embedded/embedded.ts';
import { run, serve } from '../../support/process.ts';
import { until } from '../../support/until.ts';
import { codeOfApp } from '../authenticator.ts';
import { SmtpServer, tokenIn } from '../mail/smtp-server.ts';
import { cookieOf, newEmail, newPerson, PASSWORD } from '../people.ts';

const SCHEMA = `
roles: { admin: {}, lead: { assigns: [member] }, member: {} }
register: { roles: [member] }
guests: true
mail: { otp: true }
oauth:
  company: { issuer: 'http://127.0.0.1:1', client_id: bylaw, client_secret_env: COMPANY_SECRET, scopes: [openid, email] }
collections:
  notes: { fields: { text: string }, access: { view: true, create: true } }
`;
const smtp = new SmtpServer();
await smtp.start();
const folder = await mkdtemp(join(tmpdir(), 'bylaw-secrets-'));
afterAll(async () => {
  smtp.close();
  await rm(folder, { recursive: true, force: true });
});

async function filesIn(path: string): Promise<readonly (readonly [string, Buffer])[]> {
  const entries = await readdir(path, { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
  return Promise.all(files.map(async (file) => [file, await readFile(file)] as const));
}

/** Enrols a second factor and logs in with it; returns its secrets by their names. */
async function useSecondFactor(
  client: Client,
  plain: (answer: Promise<Answer>) => Promise<Answer>,
): Promise<ReadonlyMap<string, string>> {
  const person = await newPerson(client);
  const { secret, uri } = (await person.client.post('/api/auth/totp/enrol')).body;
  const code = codeOfApp(secret);
  const codes: string[] = (await person.client.post('/api/auth/totp/confirm', { code })).body.recovery_codes;
  const { challenge } = (await client.post('/api/auth/login', { email: person.email, password: PASSWORD })).body;
  const answer = (body: object) => plain(client.post('/api/auth/challenge', { challenge, ...body }));
  await answer({ method: 'totp', code });
  await answer({ method: 'recovery', code: 'zzzzzzzzzz' });
  expect((await answer({ method: 'recovery', code: codes[0] })).status).toBe(200);
  for (const path of ['/metrics', '/api/auth/me', '/api/auth/sessions', '/openapi.json', '/readyz'])
    await plain(person.client.get(path));
  await plain(person.client.post('/api/auth/totp/enrol'));
  await plain(person.client.post('/api/auth/totp/recovery', { code: 'wrong' }));
  await plain(person.client.post('/api/auth/confirm', { code: codes[1] }));
  const recovery = codes.map((each, i) => [`recovery code ${i}`, each] as const);
  return new Map([['key of codes', secret], ['address of an app', uri], ['challenge', challenge], ...recovery]);
}

const unpacked = (bytes: Buffer): Buffer => (bytes[0] === 0x1f && bytes[1] === 0x8b ? gunzipSync(bytes) : bytes);

test('secrets are in the one answer or mail that gives them, and nowhere else', { timeout: 180_000 }, async () => {
  const [data, schema, backup] = [join(folder, 'data'), join(folder, 'bylaw.yaml'), join(folder, 'saved.backup')];
  await writeFile(schema, SCHEMA);
  const [keySecret, providerSecret, mailPassword] = ['base64', 'base64url', 'hex'].map((encoding) =>
    randomBytes(32).toString(encoding as BufferEncoding),
  ) as [string, string, string];
  const env = {
    BYLAW_KEY_SECRET: keySecret,
    COMPANY_SECRET: providerSecret,
    SMTP_URL: smtp.url.replace('//', `//robot:${mailPassword}@`),
  };
  const args = ['--schema', schema, '--data', data];
  await fillDataFolder(data);
  const server = await serve(args, env);
  const secrets = new Map<string, string>([
    ['key secret', keySecret],
    ['provider secret', providerSecret],
    ['mail password', mailPassword],
    ['password', PASSWORD],
  ]);
  /** Answers that may hold no secret. */
  const answers: Answer[] = [];
  const plain = async (answer: Promise<Answer>): Promise<Answer> => {
    answers.push(await answer);
    return answer;
  };
  const client = new Client(server.url);
  const post = (path: string, body: object, as = client) => as.post(`/api/auth/${path}`, body);
  const keepTokens = (name: string, answer: Answer): Client => {
    secrets.set(`access token of ${name}`, answer.body.access_token);
    secrets.set(`refresh token of ${name}`, answer.body.refresh_token);
    secrets.set(`cookie of ${name}`, cookieOf(answer, 'svc_session')!.split('=')[1]!);
    return client.with({ Authorization: `Bearer ${answer.body.access_token}` });
  };
  const newest = async (email: string, before: number) => {
    await until(`a mail to ${email}`, () => smtp.to(email).length > before);
    return smtp.to(email).at(-1)!;
  };
  /** Takes the token of the mail that the request causes. */
  async function mailed(name: string, email: string, request: () => Promise<Answer>): Promise<string> {
    const before = smtp.to(email).length;
    await plain(request());
    const token = tokenIn(await newest(email, before));
    secrets.set(name, token);
    return token;
  }

  const setup = /#token=([\w-]{43})/.exec(server.output())![1]!;
  const [adminEmail, email, invited, next] = [newEmail('admin'), newEmail(), newEmail('invited'), newEmail('next')];
  await plain(post('setup', { token: setup, email: adminEmail, password: PASSWORD }));
  const admin = keepTokens('admin', await post('login', { email: adminEmail, password: PASSWORD }));
  await plain(post('register', { email, password: PASSWORD }));
  const person = keepTokens('login', await post('login', { email, password: PASSWORD }));
  keepTokens('guest', await post('guest', {}));

  const verify = await mailed('verify', email, () => post('email/verify/request', {}, person));
  await plain(post('email/verify/confirm', { token: verify }));
  const link = await mailed('login link', email, () => post('otp/request', { email }));
  // Six digits alone are found by chance, in a number or a time.
  const code = /^(\d{6})$/m.exec(smtp.to(email).at(-1)!.source)![1]!;
  keepTokens('link', await post('otp/confirm', { token: link }));
  await plain(post('otp/confirm', { email, code }));
  const reset = await mailed('reset', email, () => post('password/reset/request', { email }));
  await plain(post('password/reset/confirm', { token: reset, password: PASSWORD }));
  const again = keepTokens('reset', await post('login', { email, password: PASSWORD }));
  await mailed('change', next, () => post('email/change/request', { email: next, password: PASSWORD }, again));
  await mailed('invitation', invited, () => admin.post('/api/users/invite', { email: invited, roles: ['member'] }));
  const key = await post('keys', { name: 'x', roles: ['member'] }, admin);
  secrets.set('API key', key.body.secret.slice(-49));
  const keyed = client.with({ Authorization: `Bearer ${key.body.secret}` });
  await plain(keyed.post('/api/notes', { data: { text: 'of a key' } }));
  await plain(keyed.get('/api/auth/me'));
  const rotated = await post(`keys/${key.body.data.id}/rotate`, {}, admin);
  secrets.set('rotated API key', rotated.body.secret.slice(-49));
  await plain(client.get(`/api/notes?token=${link}`));
  await plain(client.get(`/auth/reset?tokn=${reset}`));
  await plain(client.get('/api/auth/oauth/company/start'));
  await plain(post('login', { email, password: `${PASSWORD}!` }));
  for (const path of [
    '/metrics',
    '/api/auth/me',
    '/api/auth/sessions',
    '/api/auth/keys',
    '/api/users',
    '/openapi.json',
  ])
    await plain(admin.get(path));
  for (const path of ['/api/_audit?limit=100', '/api/_status', '/api/_schema', '/api/users/invites'])
    expect([path, (await plain(admin.get(path))).status]).toEqual([path, 200]);
  for (const [name, secret] of await useSecondFactor(client, plain)) secrets.set(name, secret);
  const mailQueue = await run({ args: ['mail', 'queue', '--data', data, '--schema', schema], env });
  const saved = await run({ args: ['backup', backup, '--data', data], env });
  expect([saved.code, saved.stderr]).toEqual([0, expect.any(String)]);
  expect(await server.stop()).toBe(0);
  const audit = await run({ args: ['audit', ...args], env });

  const [, , ...log] = server
    .output()
    .split('\n')
    .filter((line) => !line.includes('#token='));
  const places: readonly (readonly [string, Buffer])[] = [
    ['answers', Buffer.from(answers.map(({ text, headers }) => `${text}${JSON.stringify([...headers])}`).join('\n'))],
    ['output', Buffer.from([...log, server.log(), audit.stdout, audit.stderr, mailQueue.stdout].join('\n'))],
    ['backup', unpacked(await readFile(backup))],
    ...(await filesIn(data)),
  ];
  secrets.set('setup', setup);
  // The search finds what is there.
  const withEmail = places.filter(([, bytes]) => bytes.includes(email)).map(([place]) => place);
  expect(withEmail).toEqual(expect.arrayContaining(['answers', 'output', 'backup']));
  expect([...secrets.values()].every((secret) => secret.length > 9)).toBe(true);
  expect(secrets.size).toBeGreaterThan(30);
  expect(places.length).toBeGreaterThan(50);
  expect(audit.stdout).toContain('second_factor_enrolled');
  for (const [place, bytes] of places) {
    const found = [...secrets].filter(([, secret]) => bytes.includes(secret)).map(([name]) => name);
    expect([place, found]).toEqual([place, []]);
    // Private signing keys are wrapped.
    expect([place, /"d":"[\w-]{20}/.test(bytes.toString('latin1'))]).toEqual([place, false]);
  }
});
