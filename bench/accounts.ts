/**
 * Measures accounts: a sign-in with a second factor next to one by the password, requests with an API key next to
 * requests with an access token, the memory of keys, and the mails that a killed server leaves. The service runs in a
 * process of its own on PostgreSQL; rate limits are off.
 */
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { Agent, type IncomingMessage, request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { Secret, TOTP } from 'otpauth';
import { createPasswordPool } from '../src/auth/accounts/passwords.ts';
import { KeyCallers } from '../src/auth/api-keys/key-callers.ts';
import { newKeyToken } from '../src/auth/api-keys/key-token.ts';
import { authTables } from '../src/auth/auth-tables.ts';
import type { Database } from '../src/database/contract.ts';
import { openDatabase } from '../src/database/open-database.ts';
import { applyMigration } from '../src/migrations/apply-migration.ts';
import { loadSchema } from '../src/schema/file/load-file.ts';
import { param, raw, sql, text } from '../src/sql.ts';
import { SmtpServer } from '../test/auth/mail/smtp-server.ts';
import { isolatedUrl, startPostgres } from '../test/support/postgres.ts';
import { call } from './movies/client.ts';
import type { Bench, BenchOptions } from './support/bench.ts';
import { load } from './support/load.ts';
import { judgeRounds, median, verdict } from './support/measure.ts';
import { processorTime } from './support/processor-time.ts';
import { type ServeOptions, type Server, serveArguments, startServer } from './support/server.ts';

const SCHEMA = fileURLToPath(new URL('./servers/accounts.yaml', import.meta.url));
const PASSWORD = 'seven-samurai-1954';
const KEYS = 1_000;
const MOST_MAILS = 100_000;
const KILLS = 3;
const ASKING = 32;
const LEAST_PAIRS = 16;

const start = (options: ServeOptions, smtp?: SmtpServer): Promise<Server> => {
  const [file, ...args] = serveArguments(options);
  return startServer(file!, args, { BYLAW_RATE_LIMIT: 'off', ...(smtp && { SMTP_URL: smtp.url }) });
};

// biome-ignore lint/suspicious/noExplicitAny: the shape is the API's
async function post(url: string, body: unknown, token?: string): Promise<any> {
  const answer = await call(url, { method: 'POST', body, ...(token !== undefined && { token }) });
  if (answer.status >= 300) throw new Error(`${url}: ${answer.status} ${JSON.stringify(answer.body)}`);
  return answer.body;
}

async function newPerson(url: string, email: string): Promise<string> {
  await post(`${url}/api/auth/register`, { email, password: PASSWORD });
  return (await post(`${url}/api/auth/login`, { email, password: PASSWORD })).access_token;
}

/** Its own work is little: that of a client must not count twice in a sign-in of two steps. */
const agent = new Agent({ keepAlive: true });

// biome-ignore lint/suspicious/noExplicitAny: the shape is the API's
async function signIn(url: string, path: string, body: object): Promise<any> {
  const text = JSON.stringify(body);
  const headers = { 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(text) };
  const [answer] = (await once(
    request(`${url}/api/auth/${path}`, { method: 'POST', agent, headers }).end(text),
    'response',
  )) as [IncomingMessage];
  const parts: Buffer[] = [];
  for await (const part of answer) parts.push(part as Buffer);
  const given = Buffer.concat(parts).toString();
  if (answer.statusCode !== 200) throw new Error(`${path}: ${answer.statusCode} ${given}`);
  return JSON.parse(given);
}

/** The time of one check of a password alone, in this process. */
async function argon2Ms(): Promise<number> {
  const pool = createPasswordPool();
  const stored = await pool.hash(PASSWORD);
  const times: number[] = [];
  for (let i = 0; i < 20; i++) {
    const began = performance.now();
    await pool.verify(PASSWORD, stored);
    times.push(performance.now() - began);
  }
  return median(times);
}

/**
 * Pairs of sign-ins, one after the other: both requests of one with a second factor, and the one request of one by the
 * password, which is one argon2 verification and the work of every sign-in.
 */
async function secondFactor(url: string, db: Database, seconds: number): Promise<void> {
  const [plain, enrolled] = ['plain@example.com', 'enrolled@example.com'];
  await newPerson(url, plain);
  const token = await newPerson(url, enrolled);
  const { secret } = await post(`${url}/api/auth/totp/enrol`, undefined, token);
  const totp = new TOTP({ secret: Secret.fromBase32(secret) });
  await post(`${url}/api/auth/totp/confirm`, { code: totp.generate() }, token);
  const first = (email: string) => signIn(url, 'login', { email, password: PASSWORD });
  const times: { readonly plain: number; readonly enrolled: number }[] = [];
  const round = async (): Promise<void> => {
    // A code works once; the bench does not wait for the next one.
    await db.run(raw('UPDATE "_auth_totp" SET last_step = 0'));
    const code = totp.generate();
    const began = performance.now();
    await first(plain);
    const between = performance.now();
    const { challenge } = await first(enrolled);
    await signIn(url, 'challenge', { challenge, method: 'totp', code });
    times.push({ plain: between - began, enrolled: performance.now() - between });
  };
  for (let i = 0; i < 20; i++) await round();
  times.length = 0;
  const end = performance.now() + seconds * 1_000;
  do await round();
  while (performance.now() < end);
  const values = times.map(({ plain: whole, enrolled: two }) => two / whole);
  const label = 'a sign-in with a second factor, both requests, by the time of one by password';
  judgeRounds({ label, values, atMost: 1.1 });
  const [one, two] = [median(times.map((each) => each.plain)), median(times.map((each) => each.enrolled))];
  const alone = await argon2Ms();
  console.log(
    `  ${one.toFixed(1)} ms by password, ${two.toFixed(1)} ms with a second factor; argon2 alone ${alone.toFixed(1)} ms`,
  );
}

/** Lists by turns with a key and with a token: the processor time of the server for a request. */
async function keyRequests(
  { url, process: { pid } }: Server,
  db: Database,
  { seconds, rounds }: BenchOptions,
): Promise<void> {
  const email = 'admin@example.com';
  const member = await newPerson(url, email);
  await db.run(raw(`UPDATE "users" SET roles = '{admin,member}' WHERE email = '${email}'`));
  const token = (await post(`${url}/api/auth/login`, { email, password: PASSWORD })).access_token as string;
  for (let i = 0; i < 30; i++) await post(`${url}/api/items`, { data: { title: `item ${i}` } }, member);
  const { secret } = await post(`${url}/api/auth/keys`, { name: 'bench', roles: ['member'] }, token);
  // Many short pairs: a difference of some percent is less than what a busy machine adds to one of them.
  const pairs = Math.max(rounds, LEAST_PAIRS);
  const each = Math.max(0.5, seconds / pairs / 2);
  const costs = async (bearer: string): Promise<number> => {
    const before = processorTime(pid!);
    const result = await load({
      url,
      request: () => ({ path: '/api/items' }),
      headers: { authorization: `Bearer ${bearer}` },
      connections: 16,
      seconds: each,
    });
    const strange = [...result.statuses.keys()].filter((status) => status !== 200);
    if (strange.length > 0) throw new Error(`a list was answered with ${strange.join(', ')}`);
    return (processorTime(pid!) - before) / (result.requestsPerSecond * result.seconds);
  };
  await costs(token);
  await costs(secret);
  const values: number[] = [];
  for (let i = 0; i < pairs; i++) {
    // The order changes, so that a machine that slows down favours neither.
    if (i % 2 === 0) {
      const byToken = await costs(token);
      values.push((await costs(secret)) / byToken);
    } else {
      const byKey = await costs(secret);
      values.push(byKey / (await costs(token)));
    }
  }
  judgeRounds({ label: 'a request with a key, by the time of one with a token', values, atMost: 1.02 });
}

/** In this process, on an embedded database: what the process keeps of a thousand keys in use. */
async function keyMemory(): Promise<void> {
  const { schema } = loadSchema({ file: SCHEMA, env: {} });
  if (schema === undefined) throw new Error('the schema of the bench has errors');
  const db = await openDatabase({});
  await applyMigration(db, schema, { systemTables: authTables });
  const ids = Array.from({ length: KEYS }, () => crypto.randomUUID());
  const tokens = ids.map((id) => ({ id, ...newKeyToken(id) }));
  for (const { id, hash } of tokens) {
    await db.run(sql`
      INSERT INTO "_auth_api_keys" (id, name, roles, publishable, bounds, secret_hash, created_at, last_used_at)
      VALUES (${param('uuid', id)}, 'of a bench', '{member}', false, '{"limit":{"items":["list"]}}', ${text(hash)}, now(), now())`);
  }
  const callers = new KeyCallers({ db, schema, ttl: () => 60_000 });
  await callers.authenticate(tokens[0]!.token);
  const heap = (): number => {
    for (let i = 0; i < 4; i++) globalThis.gc?.();
    return process.memoryUsage().heapUsed;
  };
  const before = heap();
  for (const { token } of tokens) await callers.authenticate(token);
  const kept = (heap() - before) / 1_048_576;
  // The tokens themselves are the clients'; the callers are used after the measurement, so that they are kept.
  await callers.authenticate(tokens[1]!.token);
  verdict(`the memory of ${KEYS} keys`, kept, { limit: 1, unit: 'MiB' });
  await db.close();
}

/** People whose passwords are of no concern. */
async function addPeople(db: Database, count: number): Promise<void> {
  await db.run(
    raw(`WITH made AS (
           INSERT INTO "users" (id, created_at, updated_at, email, roles, email_verified)
           SELECT gen_random_uuid(), now(), now(), 'mail' || n || '@example.com', '{member}', true FROM generate_series(1, ${count}) n
           RETURNING id)
         INSERT INTO "_auth_accounts" (user_id) SELECT id FROM made`),
  );
}

/** Asks for a mail to each address, and kills the server in between. Every 202 is a mail that arrives. */
async function outbox(db: Database, options: ServeOptions, count: number): Promise<void> {
  await addPeople(db, count);
  const smtp = new SmtpServer();
  await smtp.start();
  const arrived = new Set<string>();
  const collect = (): void => {
    for (const { to } of smtp.mails.splice(0)) arrived.add(to);
  };
  const accepted = new Set<string>();
  let next = 1;
  let server = await start(options, smtp);
  const ask = async (until: number): Promise<void> => {
    while (next <= until) {
      const email = `mail${next++}@example.com`;
      const body = JSON.stringify({ email });
      const sent = fetch(`${server.url}/api/auth/password/reset/request`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body,
      });
      const status = await sent.then((answer) => answer.arrayBuffer().then(() => answer.status)).catch(() => 0);
      if (status === 202) accepted.add(email);
    }
  };
  for (let kill = 1; kill <= KILLS; kill++) {
    const until = Math.floor((count * kill) / (KILLS + 1));
    const asking = Promise.all(Array.from({ length: ASKING }, () => ask(until)));
    // It ends while requests are being answered and mails are being sent.
    while (next < until - ASKING) await sleep(5);
    server.process.kill('SIGKILL');
    await asking;
    // The mails that it held are tried again after five minutes, which the bench does not wait for.
    await db.run(raw('UPDATE "_auth_outbox" SET due_at = now()'));
    collect();
    server = await start(options, smtp);
  }
  await Promise.all(Array.from({ length: ASKING }, () => ask(count)));
  const began = performance.now();
  const sentBefore = arrived.size;
  for (;;) {
    collect();
    const [cells] = await db.rows(raw('SELECT count(*) FROM "_auth_outbox"'));
    if (cells?.[0] === '0') break;
    await sleep(100);
  }
  collect();
  const rate = ((arrived.size - sentBefore) * 1_000) / (performance.now() - began);
  server.process.kill();
  smtp.close();
  const lost = [...accepted].filter((email) => !arrived.has(email)).length;
  console.log(
    `  ${accepted.size} requests were accepted, with ${KILLS} kills; then ${rate.toFixed(0)} mails/s left the outbox`,
  );
  verdict('mails that were lost', lost, { limit: 0, unit: 'mails' });
}

async function run(options: BenchOptions): Promise<void> {
  await keyMemory();
  const postgres = await startPostgres();
  if (postgres === undefined)
    throw new Error('this bench needs PostgreSQL: install its binaries or set TEST_DATABASE_URL');
  const data = mkdtempSync(join(tmpdir(), 'bylaw-bench-'));
  const databaseUrl = await isolatedUrl(postgres.url);
  const serving = { schema: SCHEMA, databaseUrl, data };
  const server = await start(serving);
  const db = await openDatabase({ url: databaseUrl });
  try {
    await secondFactor(server.url, db, options.seconds);
    await keyRequests(server, db, options);
    server.process.kill();
    await new Promise((resolve) => server.process.once('exit', resolve));
    await outbox(db, serving, Math.min(options.rows, MOST_MAILS));
  } finally {
    server.process.kill();
    await db.close();
    rmSync(data, { recursive: true, force: true });
    await postgres.stop();
  }
}

export default { name: 'accounts', question: 'what do keys, second factors and the outbox cost?', run } satisfies Bench;
