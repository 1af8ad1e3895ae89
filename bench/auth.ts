/**
 * Measures the cost of authentication. Logins a second; an access token with and without the memory
 * of verified ones; and what lists lose while 200 logins a second arrive. The service runs in a
 * separate process on PostgreSQL; rate limits are off.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { v7 } from 'uuid';
import { Auth } from '../src/auth/auth.ts';
import { authTables } from '../src/auth/auth-tables.ts';
import { SigningKeys } from '../src/auth/keys/signing-keys.ts';
import { AccessTokens } from '../src/auth/sessions/access-tokens.ts';
import { openDatabase } from '../src/database/open-database.ts';
import { applyMigration } from '../src/migrations/apply-migration.ts';
import { loadSchema } from '../src/schema/file/load-file.ts';
import { raw } from '../src/sql.ts';
import { isolatedUrl, startPostgres } from '../test/support/postgres.ts';
import { call } from './movies/client.ts';
import { load } from './support/load.ts';
import { median } from './support/measure.ts';
import { startBylaw } from './support/server.ts';

const SCHEMA = fileURLToPath(new URL('./servers/items.yaml', import.meta.url));
const LOGINS_A_SECOND = 200;
const TOKENS = 5_000;
const ROWS = 10_000;
const PERSON = { email: 'bench@example.com', password: 'seven-samurai-1954' };

const figure = (name: string, value: number, unit: string, digits = 1): void =>
  console.log(`  ${name.padEnd(58)} ${value.toFixed(digits).padStart(10)} ${unit}`);

async function fill(url: string): Promise<void> {
  const db = await openDatabase({ url });
  await db.run(
    raw(`INSERT INTO items (id, created_at, updated_at, title, status, score, pinned, owner_id)
      SELECT ('01900000-0000-7000-8000-' || lpad(to_hex(n), 12, '0'))::uuid, now(), now(), 'item ' || n, 'published', n, true, users.id
      FROM generate_series(1, ${ROWS}) n, users`),
  );
  await db.run(raw('ANALYZE items'));
  await db.close();
}

const logIn = (url: string): Promise<number> =>
  fetch(`${url}/api/auth/login`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(PERSON),
  }).then(async (answer) => {
    await answer.arrayBuffer();
    return answer.status;
  });

/** As many as the service takes, by eight clients at once. */
async function loginsASecond(url: string, seconds: number): Promise<number> {
  const began = performance.now();
  let done = 0;
  const client = async (): Promise<void> => {
    while (performance.now() - began < seconds * 1000) {
      if ((await logIn(url)) !== 200) throw new Error('a login failed');
      done++;
    }
  };
  await Promise.all(Array.from({ length: 8 }, client));
  return (done * 1000) / (performance.now() - began);
}

interface Arrivals {
  readonly statuses: Map<number, number>;
  stop(): Promise<void>;
}
/** On time, however slowly they are answered. */
function arrive(url: string): Arrivals {
  const statuses = new Map<number, number>();
  const open = new Set<Promise<void>>();
  const began = performance.now();
  let sent = 0;
  const timer = setInterval(() => {
    for (const due = ((performance.now() - began) / 1000) * LOGINS_A_SECOND; sent < due; sent++) {
      const one: Promise<void> = logIn(url)
        .then((status) => void statuses.set(status, (statuses.get(status) ?? 0) + 1))
        .finally(() => open.delete(one));
      open.add(one);
    }
  }, 5);
  return {
    statuses,
    async stop() {
      clearInterval(timer);
      await Promise.all(open);
    },
  };
}

/** In this process, without HTTP: what authentication adds to a request. */
async function verifyCost(): Promise<void> {
  const { schema } = loadSchema({ file: SCHEMA, env: {} });
  if (schema === undefined) throw new Error('the schema of the bench has errors');
  const db = await openDatabase({});
  await applyMigration(db, schema, { systemTables: authTables });
  const config = { baseUrl: 'http://127.0.0.1:8090', rateLimit: false };
  const tokens = await AccessTokens.open({
    signingKeys: new SigningKeys(db, undefined),
    issuer: () => config.baseUrl,
    lifetime: 900,
  });
  const expires = Math.floor(Date.now() / 1000) + 600;
  const sign = () => tokens.sign({ userId: v7(), sessionId: v7(), expires });
  const many = await Promise.all(Array.from({ length: TOKENS }, sign));
  const each = async (): Promise<number> => {
    const began = performance.now();
    for (const token of many) await tokens.verify(token);
    return ((performance.now() - began) * 1000) / TOKENS;
  };
  figure('verify a token, the first time', await each(), 'µs');
  await each();
  figure('verify a token, remembered', median([await each(), await each(), await each()]), 'µs', 2);

  const auth = await Auth.open({ db, schema, config });
  await auth.accounts.register({ ...PERSON, client: {} });
  const signedIn = await auth.accounts.login({ ...PERSON, client: {} });
  if (!('cookie' in signedIn)) throw new Error('the person of the bench has no second factor');
  const { body, cookie } = signedIn;
  const whole = async (name: 'authorization' | 'cookie', text: string): Promise<number> => {
    const bytes = Buffer.from(text);
    const rounds = 400_000;
    const began = performance.now();
    // A new text each time, as the header of a request is.
    for (let i = 0; i < rounds; i++) await auth.authenticator.authenticate({ [name]: bytes.toString('latin1') });
    return ((performance.now() - began) * 1000) / rounds;
  };
  figure(
    'authenticate a request by bearer, the session read once a second',
    await whole('authorization', `Bearer ${body.access_token}`),
    'µs',
    2,
  );
  figure(
    'authenticate a request by cookie, the session read once a second',
    await whole('cookie', cookie.value),
    'µs',
    2,
  );
  await auth.close();
  await db.close();
}

async function run({ seconds }: { readonly seconds: number }): Promise<void> {
  await verifyCost();
  const postgres = await startPostgres();
  if (postgres === undefined)
    throw new Error('this bench needs PostgreSQL: install its binaries or set TEST_DATABASE_URL');
  const data = mkdtempSync(join(tmpdir(), 'bylaw-bench-'));
  const databaseUrl = await isolatedUrl(postgres.url);
  const service = await startBylaw({ schema: SCHEMA, databaseUrl, data });
  try {
    const { url } = service;
    await call(`${url}/api/auth/register`, { method: 'POST', body: PERSON });
    await fill(databaseUrl);
    const token = (await call(`${url}/api/auth/login`, { method: 'POST', body: PERSON })).body.access_token as string;
    await loginsASecond(url, 1);
    figure('logins a second, eight clients', await loginsASecond(url, seconds), '/s');
    const lists = () =>
      load({
        url,
        request: () => ({ path: '/api/items?status=published' }),
        headers: { authorization: `Bearer ${token}` },
        connections: 16,
        seconds,
      });
    await lists();
    const alone = await lists();
    const arrivals = arrive(url);
    await sleep(500);
    const beside = await lists();
    await arrivals.stop();
    for (const [name, result] of [
      ['lists alone', alone],
      [`lists while ${LOGINS_A_SECOND} logins a second arrive`, beside],
    ] as const) {
      const strange = [...result.statuses.keys()].filter((status) => status !== 200);
      if (strange.length > 0) throw new Error(`${name}: lists were answered with ${strange.join(', ')}`);
      figure(name, result.requestsPerSecond, '/s', 0);
      figure(`${name}: p50`, result.p50, 'ms');
      figure(`${name}: p99`, result.p99, 'ms');
    }
    const answers = [...arrivals.statuses].map(([status, n]) => `${n} × ${status}`).join(', ');
    console.log(`  those logins: ${answers} (503: their queue is full)`);
  } finally {
    service.process.kill();
    await new Promise((resolve) => service.process.once('exit', resolve));
    rmSync(data, { recursive: true, force: true });
    await postgres.stop();
  }
}

export default { name: 'auth', question: 'what does knowing who asks cost?', run };
