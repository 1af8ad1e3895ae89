// @module-tag long
/** `bylaw` as an operator runs it: real processes, on a folder and on PostgreSQL. */
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { mkdtemp, rm, stat, writeFile } from 'node:fs/promises';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { getHeapStatistics } from 'node:v8';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { openDatabase } from '../../src/database/open-database.ts';
import { raw } from '../../src/sql.ts';
import { FeedClient } from '../changes/feed-client.ts';
import { Client } from '../support/client.ts';
import { fillDataFolder } from '../support/embedded/embedded.ts';
import { isolatedUrl } from '../support/postgres.ts';
import { childrenOf, run, runInChild, type Server, serve } from '../support/process.ts';
import { until } from '../support/until.ts';

const SCHEMA = join(import.meta.dirname, '../support/bylaw.yaml');
const ADMIN = { BYLAW_ADMIN_EMAIL: 'admin@example.org', BYLAW_ADMIN_PASSWORD: 'a password of tests' };
const EMAIL = ADMIN.BYLAW_ADMIN_EMAIL;

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'bylaw-cli-'));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

const login = (url: string, email = EMAIL, password = ADMIN.BYLAW_ADMIN_PASSWORD) =>
  new Client(url).post('/api/auth/login', { email, password });
async function clientAt(url: string): Promise<Client> {
  const { body } = await login(url);
  return new Client(url, { Authorization: `Bearer ${body.access_token}` });
}

describe('the command line', () => {
  test.each([
    [[], 2, 'bylaw: '],
    [['sevre'], 2, 'did you mean `serve`'],
    [['serve', '--prot', '1'], 2, 'did you mean `--port`'],
    [['serve', '--port', 'x'], 2, '--port'],
    [['serve', '--workers', '2'], 2, '--database-url'],
    [['serve', 'extra'], 2, 'extra'],
  ] as [string[], number, string][])(
    '`bylaw` reports the error of %j before it starts',
    async (args, code, message) => {
      // The first is the whole of a process.
      const ended = await (args.length === 0 ? runInChild : run)({ args });
      expect(ended.code).toBe(code);
      expect(ended.stdout + ended.stderr).toContain(message);
      expect(ended.stderr).not.toMatch(/ {4}at /);
    },
  );

  test('`bylaw serve` reports a port in use', async () => {
    const other = createServer().listen(0, '127.0.0.1');
    await once(other, 'listening');
    const { port } = other.address() as AddressInfo;
    await fillDataFolder(join(folder, 'unused'));
    const ended = await runInChild({
      args: ['serve', '--schema', SCHEMA, '--data', join(folder, 'unused'), '--port', String(port)],
    });
    other.close();
    expect([ended.code, ended.stdout, ended.stderr]).toEqual([
      1,
      '',
      `bylaw serve: port ${port} of 127.0.0.1 is in use by another program; choose another with --port (or PORT), or a free one with --port 0\n`,
    ]);
  });

  test('`bylaw serve --prove` does not start with a refuted statement', async () => {
    const file = join(folder, 'refuted.yaml');
    await writeFile(
      file,
      `guests: true
collections:
  posts:
    fields: { title: string }
    access: { list: true }
prove: [{ never: 'guest can list posts', why: 'private' }]
`,
    );
    const ended = await run({ args: ['serve', '--schema', file, '--data', join(folder, 'unused'), '--prove'] });
    expect([ended.code, ended.stdout]).toEqual([1, '']);
    expect(ended.stderr).toContain(
      `${file}:6: the statement \`never: guest can list posts\` does not hold (private); \`bylaw prove\` prints a counterexample\n`,
    );
  });

  test('`bylaw serve` reports an unknown environment variable', async () => {
    const { code, stderr } = await run({ args: ['serve', '--schema', SCHEMA], env: { BYLAW_DATTA: 'x' } });
    expect([code, stderr]).toEqual([2, expect.stringContaining('did you mean `BYLAW_DATA`')]);
  });

  test('`bylaw serve` reports a schema with errors', async () => {
    const file = join(folder, 'bad.yaml');
    await writeFile(
      file,
      'collections:\n  posts:\n    fields: { title: string }\n    access: { list: \'@record.titel = "x"\' }\n',
    );
    const { code, stderr } = await run({ args: ['serve', '--schema', file, '--data', join(folder, 'never')] });
    expect(code).not.toBe(0);
    expect(stderr).toMatch(/titel[\s\S]*\^{5,}/);
    await expect(stat(join(folder, 'never'))).rejects.toThrow('ENOENT');
  });
});

describe.each(['embedded', 'postgres'] as const)('serve (%s)', (kind) => {
  const skip = kind === 'postgres' && inject('postgresUrl') === '';
  let where: readonly string[];
  let server: Server;
  beforeAll(async () => {
    if (skip) return;
    if (kind === 'embedded') await fillDataFolder(join(folder, 'data'));
    where =
      kind === 'embedded'
        ? ['--data', join(folder, 'data')]
        : ['--database-url', await isolatedUrl(inject('postgresUrl'))];
    server = await serve(['--schema', SCHEMA, ...where], ADMIN);
  });
  afterAll(async () => {
    await server?.end('SIGKILL');
  });
  const succeed = async (...args: readonly string[]): Promise<void> => {
    const { code, stderr } = await run({ args: [...args, '--schema', SCHEMA, ...where] });
    expect([code, stderr]).toEqual([0, '']);
  };

  test.skipIf(skip)('the ready line has the address, and that there are no limits', () => {
    const place = kind === 'embedded' ? `embedded database in ${join(folder, 'data')}` : 'PostgreSQL at ';
    expect(server.line).toMatch(/^bylaw listening on http:\/\/127\.0\.0\.1:[1-9]\d+ \(/);
    expect(server.line).toContain(place);
    expect(server.line).toContain('rate limits are OFF');
  });

  // The suites in this process hash more cheaply.
  test.skipIf(skip || kind === 'embedded')('passwords are hashed at their full cost', async () => {
    const db = await openDatabase({ url: where.at(-1)! });
    const hashes = await db.rows(raw('SELECT password_hash FROM "_auth_accounts"'));
    await db.close();
    expect(hashes).toContainEqual([expect.stringMatching(/^\$argon2id\$v=19\$m=19456,t=2,p=1\$/)]);
  });

  test.skipIf(skip || process.platform !== 'linux')('a process that serves bounds the memory that it keeps', () => {
    const settings = readFileSync(`/proc/${server.pid}/environ`, 'utf8').split('\0');
    expect(settings).toEqual(expect.arrayContaining(['MALLOC_TRIM_THRESHOLD_=1048576', 'MALLOC_ARENA_MAX=2']));
    const isLarge = getHeapStatistics().heap_size_limit > 3 * 1_073_741_824;
    const options = readFileSync(`/proc/${server.pid}/cmdline`, 'utf8').split('\0');
    if (isLarge) expect(options).toContain(`--max-semi-space-size=${kind === 'embedded' ? 16 : 32}`);
  });

  test.skipIf(skip)('a start creates the first admin once', async () => {
    expect(server.output().split('\n')).toHaveLength(2);
    expect((await login(server.url)).body.user.roles.toSorted()).toEqual(['admin', 'member']);
  });

  test.skipIf(skip)('commands use the database of the server', async () => {
    const add = await run({
      args: ['user', 'add', 'cli@example.org', '--role', 'member', '--password-stdin', '--schema', SCHEMA, ...where],
      stdin: 'another long password\n',
    });
    expect([add.code, add.stderr]).toEqual([0, '']);
    const { status, body } = await login(server.url, 'cli@example.org', 'another long password');
    expect(status).toBe(200);
    const client = new Client(server.url, { Authorization: `Bearer ${body.access_token}` });
    expect((await client.get('/api/vault')).status).toBe(403);
    await succeed('user', 'roles', 'cli@example.org', '--add', 'admin');
    await until('the role is given', async () => (await client.get('/api/vault')).status === 200);
    await succeed('user', 'disable', 'cli@example.org');
    await until('the user is out', async () => (await client.get('/api/vault')).status === 401);
    const wrong = await run({
      args: ['user', 'add', 'cli@example.org', '--password-stdin', '--schema', SCHEMA, ...where],
      stdin: 'another long password',
    });
    expect([wrong.code, wrong.stderr]).toEqual([1, expect.stringContaining('bylaw user add:')]);
  });

  test.skipIf(skip)('`migrate plan` is empty, and `explain` gives reasons', async () => {
    const plan = await run({ args: ['migrate', 'plan', '--schema', SCHEMA, ...where] });
    expect([plan.code, plan.stdout]).toEqual([0, expect.stringContaining('nothing to do')]);
    const client = await clientAt(server.url);
    const { id } = (await client.post('/api/posts', { data: { title: 't' } })).body.data;
    const { code, stdout, stderr } = await run({
      args: ['explain', 'posts', 'read', '--as', EMAIL, '--record', id, '--schema', SCHEMA, ...where],
    });
    expect([code, stderr]).toEqual([0, '']);
    expect(stdout).toContain('it depends on the record');
    expect(stdout).toContain('allowed because `@record.author = @request.auth.id` is true');
    expect(stdout).toMatch(/false +@record\.status = "published"/);
    const wrong = await run({ args: ['explain', 'post', 'reed', '--schema', SCHEMA, ...where] });
    expect([wrong.code, wrong.stdout]).toEqual([2, '']);
    expect(wrong.stderr).toContain('unknown collection `post`; did you mean `posts`?');
    expect(wrong.stderr).toContain('unknown action `reed`; did you mean `read`?');
    expect(stdout).toMatch(/SQL:\n.*SELECT[\s\S]*plan:\n.*(?:Scan|Limit)/);
  });

  test.skipIf(skip)('the log has a line of JSON for each request, without secrets', async () => {
    const client = await clientAt(server.url);
    const headers = { Cookie: 'svc_session=secret-cookie', 'X-Request-Id': 'the-logged-one' };
    await client.get('/api/posts?title=secret-query-value', headers);
    await until('the request is logged', () => /the-logged-one.*\n/.test(server.log()));
    const lines = server
      .log()
      .split('\n')
      .slice(0, -1)
      .filter((line) => line !== '')
      .map((line) => JSON.parse(line));
    expect(lines.find(({ path, status }) => path === '/api/posts' && status === 200)).toMatchObject({
      method: 'GET',
      level: 'info',
      request_id: expect.any(String),
    });
    expect(server.log()).not.toMatch(/secret-query-value|secret-cookie|a password of tests|eyJ/);
  });

  test.skipIf(skip)(
    'SIGTERM finishes running requests and exits with 0, and a new start finds all records',
    async () => {
      const client = await clientAt(server.url);
      const creates = Array.from({ length: 30 }, (_, i) =>
        client.post('/api/counters', { data: { name: `last ${i}` } }),
      );
      await Promise.race(creates);
      const ending = server.end('SIGTERM');
      const answers = await Promise.allSettled(creates);
      expect(await ending).toBe(0);
      const made = answers.flatMap((answer) =>
        answer.status === 'fulfilled' && answer.value.status === 201 ? [answer.value.body.data.id as string] : [],
      );
      server = await serve(['--schema', SCHEMA, ...where], ADMIN);
      const again = await clientAt(server.url);
      const ids = (await again.get('/api/counters?limit=100')).body.data.map(({ id }: { id: string }) => id);
      expect(made.filter((id) => !ids.includes(id))).toEqual([]);
      expect(made.length).toBeGreaterThan(0);
    },
  );
});

test('a data folder has one server', async () => {
  const data = join(folder, 'data');
  const server = await serve(['--schema', SCHEMA, '--data', data]);
  try {
    const second = await runInChild({ args: ['serve', '--schema', SCHEMA, '--data', data, '--port', '0'] });
    expect([second.code, second.stderr]).toEqual([1, expect.stringContaining(data)]);
    expect((await stat(join(data, 'admin.sock'))).mode & 0o077).toBe(0);
    // The command means the schema that its caller means, not the one of that name beside the server.
    await writeFile(join(folder, 'other.yaml'), 'collections: { extras: { fields: { name: string } } }');
    const plan = await run({
      args: ['migrate', 'plan', '--data', data],
      env: { BYLAW_SCHEMA: 'other.yaml' },
      cwd: folder,
    });
    expect([plan.code, plan.stdout]).toEqual([0, expect.stringContaining('create table "extras"')]);
  } finally {
    await server.stop();
  }
  const alone = await run({ args: ['keys', 'rotate', '--schema', SCHEMA, '--data', data] });
  expect([alone.code, alone.stderr]).toEqual([0, '']);
});

test.skipIf(inject('postgresUrl') === '')(
  'several workers of which none can start end with the reason of the first',
  async () => {
    const url = await isolatedUrl(inject('postgresUrl'));
    const serveTwo = (schema: string, port: number) =>
      runInChild({ args: ['serve', '--workers', '2', '--port', `${port}`, '--schema', schema, '--database-url', url] });
    const missing = await serveTwo(join(folder, 'no-such.yaml'), 0);
    expect([missing.code, missing.stdout]).toEqual([2, '']);
    expect(missing.stderr).toMatch(/no-such\.yaml/);
    const other = createServer().listen(0, '127.0.0.1');
    await once(other, 'listening');
    const { port } = other.address() as AddressInfo;
    const taken = await serveTwo(SCHEMA, port);
    other.close();
    expect([taken.code, taken.stderr]).toEqual([1, expect.stringContaining(`port ${port} of 127.0.0.1 is in use`)]);
  },
);

const MOST_STREAMS = 4;
const serveByTwo = async (schema = SCHEMA) =>
  serve(['--schema', schema, '--workers', '2', '--database-url', await isolatedUrl(inject('postgresUrl'))], ADMIN);

test.skipIf(inject('postgresUrl') === '').each(['1', '2'])(
  'the token of a start with %s workers makes an admin, once',
  async (workers) => {
    const url = await isolatedUrl(inject('postgresUrl'));
    const server = await serve(['--schema', SCHEMA, '--workers', workers, '--database-url', url]);
    try {
      await until('the line is printed', async () => server.output().split('\n').length > 2);
      const [, site, token] = / (http\S+)\/auth\/setup#token=([\w-]{43})\n$/.exec(server.output())!;
      expect(site).toBe(server.url);
      const statuses: number[] = [];
      for (let i = 0; i < 6; i++) {
        const body = { token, email: `first${i}@example.org`, password: 'a password of tests' };
        const { status } = await new Client(server.url, { Connection: 'close' }).post('/api/auth/setup', body);
        statuses.push(status);
      }
      expect(statuses).toEqual([201, 404, 404, 404, 404, 404]);
      expect(server.log()).not.toContain(token);
      expect(server.output().split('\n')).toHaveLength(3);
    } finally {
      await server.stop();
    }
  },
);

test.skipIf(inject('postgresUrl') === '')('several workers behind one port', async () => {
  const schema = join(folder, 'feeds.yaml');
  const text = readFileSync(SCHEMA, 'utf8').replace('  counters:\n', '  counters:\n    changes: true\n');
  await writeFile(schema, `${text}\nlimits: { feeds: { user: ${MOST_STREAMS} } }\n`);
  const server = await serveByTwo(schema);
  try {
    expect(server.line).toContain('2 workers');
    const clients = await Promise.all(Array.from({ length: 4 }, () => clientAt(server.url)));
    const made = await Promise.all(
      Array.from({ length: 40 }, (_, i) =>
        clients[i % 4]!.post('/api/counters', { data: { name: `${i}` } }, { Connection: 'close' }),
      ),
    );
    expect(made.map(({ status }) => status)).toEqual(made.map(() => 201));
    const { text } = await clients[0]!.get('/metrics');
    expect(text).toMatch(/route="\/api\/:collection",status="201"\} 40/);

    // The streams of a user are counted over both.
    const open = async (): Promise<string> => {
      const { headers } = new FeedClient(clients[0]!, '/api/counters/changes');
      return (await headers)['content-type']!;
    };
    const stream = 'text/event-stream';
    const opened = [];
    for (let i = 0; i <= MOST_STREAMS; i++) opened.push(await open());
    expect(opened).toEqual([...Array(MOST_STREAMS).fill(stream), 'application/problem+json']);
    process.kill(childrenOf(server.pid)[0]!, 'SIGKILL');
    await until('the places of the killed worker are free', async () => (await open()) === stream);
  } finally {
    expect(await server.stop()).toBe(0);
  }
});

test.skipIf(inject('postgresUrl') === '')(
  'a connection that a worker had not taken when it was killed is served by another, and so are those that follow',
  async () => {
    const server = await serveByTwo();
    try {
      const [victim] = childrenOf(server.pid);
      process.kill(victim!, 'SIGSTOP');
      let answered = 0;
      const requests = Array.from({ length: 8 }, async () => {
        const { status } = await new Client(server.url).get('/healthz', { Connection: 'close' });
        answered++;
        return status;
      });
      await until('all but one are answered', async () => answered === 7);
      // The primary has handed it to the stopped worker.
      await sleep(100);
      expect(answered).toBe(7);
      process.kill(victim!, 'SIGKILL');
      expect(await Promise.all(requests)).toEqual(Array(8).fill(200));
      expect(server.log()).toContain('a worker exited (SIGKILL)');
    } finally {
      expect(await server.stop()).toBe(0);
    }
  },
);
